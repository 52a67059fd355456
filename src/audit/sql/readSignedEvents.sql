-- Events as they were signed: times are microseconds since the epoch began. `fits`: whether columns that follow from others do.
-- $1 node_id, $2 context_ids, $3 after seq, $4 up to seq, $5 start of the epoch in microseconds since 1970
SELECT v.seq, v.context_id, v.day = (v.received_at AT TIME ZONE 'UTC')::date AS fits,
       (extract(epoch FROM v.received_at) * 1000000)::float8 - $5::float8 AS received_at,
       v.container_key, v.created_ns, v.flags
FROM store.container_event v
WHERE v.node_id = $1 AND v.context_id = ANY ($2::int4[]) AND v.seq > $3 AND v.seq <= $4
ORDER BY v.seq
