-- The gaps of an epoch in which there was no stream or no watch of the kubelet's own status, and an event that was received within each: the next one after its begin. Times are
-- microseconds since the epoch began. Gaps and events are sorted together, so that the work does not grow with their product.
-- $1 node_id, $2 epoch, $3 context_ids, $4 up to seq, $5 start of the epoch in microseconds since 1970
WITH gap AS MATERIALIZED (
  SELECT g.gap_id, g.scope, g.cause, g.from_at, g.to_at FROM store.gap g
  WHERE g.node_id = $1 AND g.epoch = $2 AND g.scope IN ('stream', 'agent', 'kubelet_status')
), moment AS (
  SELECT g.from_at AS at, NULL::timestamptz AS received_at, g.gap_id FROM gap g
  UNION ALL
  SELECT v.received_at, v.received_at, NULL FROM store.container_event v
  WHERE v.node_id = $1 AND v.context_id = ANY ($3::int4[]) AND v.seq <= $4
), next AS (
  SELECT m.gap_id, min(m.received_at) OVER (ORDER BY m.at DESC, m.received_at NULLS FIRST ROWS UNBOUNDED PRECEDING) AS at FROM moment m
)
SELECT g.gap_id, g.scope, g.cause, (extract(epoch FROM g.from_at) * 1000000)::float8 - $5::float8 AS from_at,
       (extract(epoch FROM g.to_at) * 1000000)::float8 - $5::float8 AS to_at,
       CASE WHEN n.at < coalesce(g.to_at, 'infinity') THEN (extract(epoch FROM n.at) * 1000000)::float8 - $5::float8 END AS event_inside
FROM gap g
JOIN next n ON n.gap_id = g.gap_id
ORDER BY g.from_at
