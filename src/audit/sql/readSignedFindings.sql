-- Findings as they were signed: times are microseconds since the epoch began. `fits`: whether columns that follow from others do.
-- $1 node_id, $2 context_ids, $3 after seq, $4 up to seq, $5 start of the epoch in microseconds since 1970
SELECT f.seq, f.context_id, f.day = (f.detected_at AT TIME ZONE 'UTC')::date AS fits,
       (extract(epoch FROM f.detected_at) * 1000000)::float8 - $5::float8 AS detected_at,
       (extract(epoch FROM f.window_from) * 1000000)::float8 - $5::float8 AS window_from,
       (extract(epoch FROM f.window_to) * 1000000)::float8 - $5::float8 AS window_to,
       (extract(epoch FROM f.occurred_at) * 1000000)::float8 - $5::float8 AS occurred_at,
       f.finding_id, f.kind, f.event_type, f.cause, f.container_id, f.lateness_us, f.delivery_us, f.proof
FROM store.finding f
WHERE f.node_id = $1 AND f.context_id = ANY ($2::int4[]) AND f.seq > $3 AND f.seq <= $4
ORDER BY f.seq
