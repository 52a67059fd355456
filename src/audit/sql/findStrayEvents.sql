-- Events that no session of their epoch can have received. $1 node_id, $2 epoch, $3 context_ids, $4 up to seq,
-- $5 start of the epoch in microseconds since 1970
SELECT v.seq, (extract(epoch FROM v.received_at) * 1000000)::float8 - $5::float8 AS received,
       store.event_type_name(v.flags & 255) AS type
FROM store.container_event v
WHERE v.node_id = $1 AND v.context_id = ANY ($3::int4[]) AND v.seq <= $4 AND NOT EXISTS (
  SELECT FROM store.stream_session s
  WHERE s.node_id = $1 AND s.epoch = $2 AND v.received_at BETWEEN s.opened_at AND coalesce(s.closed_at, 'infinity'))
ORDER BY v.seq LIMIT 20
