-- The sessions of an epoch and what is stored of their events. Times are microseconds since the epoch began. Sessions follow on each
-- other, so an event is of the last one that was opened before it: sorted together, the work does not grow with their product.
-- $1 node_id, $2 epoch, $3 context_ids, $4 up to seq, $5 start of the epoch in microseconds since 1970
WITH session AS MATERIALIZED (
  SELECT s.session_no, s.opened_at, s.armed_at, s.closed_at, s.events, s.replayed FROM store.stream_session s WHERE s.node_id = $1 AND s.epoch = $2
), moment AS (
  SELECT s.opened_at AS at, NULL::int4 AS seq, NULL::int4 AS flags, NULL::int8 AS created_ns, s.session_no FROM session s
  UNION ALL
  SELECT v.received_at, v.seq, v.flags, v.created_ns, NULL FROM store.container_event v
  WHERE v.node_id = $1 AND v.context_id = ANY ($3::int4[]) AND v.seq <= $4
), event AS (
  SELECT m.at, m.seq, m.flags, m.created_ns, max(m.session_no) OVER (ORDER BY m.at, m.seq NULLS FIRST) AS session_no FROM moment m
), received AS (
  SELECT e.session_no, min(e.at) AS first, count(*)::int4 AS events, count(*) FILTER (WHERE e.flags & 256 <> 0)::int4 AS replayed,
         (array_agg(e.created_ns ORDER BY e.seq) FILTER (WHERE e.flags & 256 = 0))[1] AS first_live_ns
  FROM event e
  JOIN session s ON s.session_no = e.session_no AND e.at <= coalesce(s.closed_at, 'infinity')
  WHERE e.seq IS NOT NULL
  GROUP BY e.session_no
)
SELECT s.session_no, (extract(epoch FROM s.opened_at) * 1000000)::float8 - $5::float8 AS opened,
       (extract(epoch FROM s.armed_at) * 1000000)::float8 - $5::float8 AS armed,
       (extract(epoch FROM s.closed_at) * 1000000)::float8 - $5::float8 AS closed,
       s.events, s.replayed,
       (extract(epoch FROM r.first) * 1000000)::float8 - $5::float8 AS first_event,
       coalesce(r.events, 0) AS stored_events, coalesce(r.replayed, 0) AS stored_replayed, r.first_live_ns
FROM session s
LEFT JOIN received r ON r.session_no = s.session_no
ORDER BY s.opened_at
