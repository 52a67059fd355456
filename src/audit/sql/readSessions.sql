-- The sessions of an epoch and what is stored of their events. Times are microseconds since the epoch began.
-- $1 node_id, $2 epoch, $3 context_ids, $4 up to seq, $5 start of the epoch in microseconds since 1970
SELECT s.session_no, (extract(epoch FROM s.opened_at) * 1000000)::float8 - $5::float8 AS opened,
       (extract(epoch FROM s.armed_at) * 1000000)::float8 - $5::float8 AS armed,
       (extract(epoch FROM s.closed_at) * 1000000)::float8 - $5::float8 AS closed,
       s.events::int4 AS events, s.replayed::int4 AS replayed,
       (extract(epoch FROM v.first) * 1000000)::float8 - $5::float8 AS first_event,
       v.events AS stored_events, v.replayed AS stored_replayed, l.created_ns::text AS first_live_ns
FROM store.stream_session s
CROSS JOIN LATERAL (
  SELECT min(v.received_at) AS first, count(*)::int4 AS events, count(*) FILTER (WHERE v.flags & 256 <> 0)::int4 AS replayed
  FROM store.container_event v
  WHERE v.node_id = s.node_id AND v.context_id = ANY ($3::int4[]) AND v.seq <= $4
    AND v.received_at BETWEEN s.opened_at AND coalesce(s.closed_at, 'infinity')
    AND v.day BETWEEN (s.opened_at AT TIME ZONE 'UTC')::date AND coalesce((s.closed_at AT TIME ZONE 'UTC')::date, 'infinity')
) v
LEFT JOIN LATERAL (
  SELECT v.created_ns
  FROM store.container_event v
  WHERE v.node_id = s.node_id AND v.context_id = ANY ($3::int4[]) AND v.seq <= $4 AND v.flags & 256 = 0
    AND v.received_at BETWEEN s.opened_at AND coalesce(s.closed_at, 'infinity')
    AND v.day BETWEEN (s.opened_at AT TIME ZONE 'UTC')::date AND coalesce((s.closed_at AT TIME ZONE 'UTC')::date, 'infinity')
  ORDER BY v.seq LIMIT 1
) l ON true
WHERE s.node_id = $1 AND s.epoch = $2
ORDER BY s.opened_at
