-- Events that no session of their epoch can have received. $1 node_id, $2 epoch, $3 context_ids, $4 up to seq,
-- $5 start of the epoch in microseconds since 1970
WITH session AS MATERIALIZED (
  SELECT s.opened_at, coalesce(s.closed_at, 'infinity') AS closed_at FROM store.stream_session s WHERE s.node_id = $1 AND s.epoch = $2
), moment AS (
  SELECT s.opened_at AS at, NULL::int4 AS seq, NULL::int4 AS flags, s.closed_at FROM session s
  UNION ALL
  SELECT v.received_at, v.seq, v.flags, NULL FROM store.container_event v
  WHERE v.node_id = $1 AND v.context_id = ANY ($3::int4[]) AND v.seq <= $4
), event AS (
  SELECT m.at, m.seq, m.flags, max(m.closed_at) OVER (ORDER BY m.at, m.seq NULLS FIRST) AS until FROM moment m
)
SELECT e.seq, (extract(epoch FROM e.at) * 1000000)::float8 - $5::float8 AS received, store.event_type_name(e.flags & 255) AS type
FROM event e
WHERE e.seq IS NOT NULL AND (e.until IS NULL OR e.at > e.until)
ORDER BY e.seq LIMIT 20
