-- Mode changes as they were signed: times are microseconds since the epoch began. `fits`: whether columns that follow from others do.
-- $1 node_id, $2 context_ids, $3 after seq, $4 up to seq, $5 start of the epoch in microseconds since 1970
SELECT c.seq, c.context_id, c.day = (c.at AT TIME ZONE 'UTC')::date AS fits,
       (extract(epoch FROM c.at) * 1000000)::float8 - $5::float8 AS at,
       (extract(epoch FROM c.not_before) * 1000000)::float8 - $5::float8 AS not_before,
       c.model, c.from_mode, c.to_mode, c.reason, c.proof
FROM store.mode_change c
WHERE c.node_id = $1 AND c.context_id = ANY ($2::int4[]) AND c.seq > $3 AND c.seq <= $4
ORDER BY c.seq
