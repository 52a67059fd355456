-- $1 cluster_id, then arrays: node_id, finding_id, what, at (microseconds since 1970), note
INSERT INTO store.finding_update (finding_id, node_id, cluster_id, day, what, at, note)
SELECT u.finding_id, u.node_id, $1::int2, (t.at AT TIME ZONE 'UTC')::date, u.what, t.at, u.note
FROM unnest($2::int4[], $3::uuid[], $4::text[], $5::int8[], $6::text[]) AS u (node_id, finding_id, what, at, note),
     LATERAL (SELECT timestamptz 'epoch' + u.at * interval '1 microsecond' AS at) AS t
ON CONFLICT DO NOTHING
