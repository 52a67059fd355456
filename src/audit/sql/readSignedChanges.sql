-- Changes as they were signed: times are microseconds since the epoch began. `fits`: whether columns that follow from others do.
-- $1 node_id, $2 context_ids, $3 after seq, $4 up to seq, $5 start of the epoch in microseconds since 1970
SELECT h.seq, h.context_id, true AS fits,
       (extract(epoch FROM h.window_from) * 1000000)::float8 - $5::float8 AS window_from,
       (extract(epoch FROM h.window_to) * 1000000)::float8 - $5::float8 AS window_to,
       h.container_key, h.pleg_events, h.states
FROM store.relist_change h
WHERE h.node_id = $1 AND h.context_id = ANY ($2::int4[]) AND h.seq > $3 AND h.seq <= $4
ORDER BY h.seq
