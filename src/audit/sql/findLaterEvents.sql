-- The misses of an epoch whose event another incarnation of the agent received after the end of their window, each with the earliest such
-- event. Times are microseconds since the epoch began. A container's key is made of its id as in src/protocol/containerKey.ts.
-- $1 node_id, $2 epoch, $3 context_ids, $4 up to seq, $5 start of the epoch in microseconds since 1970
WITH missed AS MATERIALIZED (
  SELECT f.finding_id, f.event_type, coalesce(f.window_to, f.detected_at) AS until,
         ('x' || encode(substr(sha256(convert_to(f.container_id, 'UTF8')), 1, 8), 'hex'))::bit(64)::int8 AS container_key
  FROM store.finding f
  WHERE f.node_id = $1 AND f.context_id = ANY ($3::int4[]) AND f.seq <= $4 AND f.kind = 'missed' AND f.container_id IS NOT NULL
)
SELECT m.finding_id, (extract(epoch FROM min(v.received_at)) * 1000000)::float8 - $5::float8 AS at
FROM missed m
JOIN store.container_event v ON v.node_id = $1 AND v.container_key = m.container_key
  AND store.event_type_name(v.flags & 255) = m.event_type AND v.received_at > m.until
  AND v.day >= (SELECT min((until AT TIME ZONE 'UTC')::date) - 1 FROM missed)
JOIN store.context x ON x.context_id = v.context_id AND x.epoch <> $2
GROUP BY m.finding_id
