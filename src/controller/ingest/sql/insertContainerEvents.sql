-- $1 node_id, $2 ctx_id, $3 cluster_id, then arrays: seq, at (microseconds since 1970), created_ns, obj, bits
INSERT INTO store.event (at, created_ns, obj, day, node_id, ctx_id, seq, cluster_id, bits)
SELECT t.at, u.created_ns, u.obj, (t.at AT TIME ZONE 'UTC')::date, $1::int4, $2::int4, u.seq, $3::int2, u.bits
FROM unnest($4::int4[], $5::int8[], $6::int8[], $7::int8[], $8::int2[]) AS u (seq, at, created_ns, obj, bits),
     LATERAL (SELECT timestamptz 'epoch' + u.at * interval '1 microsecond' AS at) AS t
ON CONFLICT DO NOTHING
