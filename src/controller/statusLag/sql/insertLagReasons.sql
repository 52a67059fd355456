-- Records why findings that are not watched have no lag.
-- $1 node_id, $2 cluster_id, then arrays: finding_id, at (microseconds since 1970), reason
INSERT INTO store.finding_update (finding_id, node_id, cluster_id, day, what, at, note)
SELECT u.finding_id, $1::int4, $2::int2, (t.at AT TIME ZONE 'UTC')::date, 'lag_reason', t.at, u.reason
FROM unnest($3::uuid[], $4::int8[], $5::text[]) AS u (finding_id, at, reason),
     LATERAL (SELECT timestamptz 'epoch' + u.at * interval '1 microsecond' AS at) AS t
ON CONFLICT DO NOTHING
