-- Rows of an epoch whose seq it never received. $1 node_id, $2 epoch, $3 context_ids, $4 start of the epoch in microseconds since 1970
SELECT r.view, r.seq, (extract(epoch FROM r.at) * 1000000)::float8 - $4::float8 AS at
FROM (
  SELECT 'container_events' AS view, seq, received_at AS at FROM store.container_event
  WHERE node_id = $1 AND context_id = ANY ($3::int4[])
  UNION ALL
  SELECT 'relist_changes', seq, window_to FROM store.relist_change WHERE node_id = $1 AND context_id = ANY ($3::int4[])
  UNION ALL
  SELECT 'findings', seq, detected_at FROM store.finding WHERE node_id = $1 AND context_id = ANY ($3::int4[])
) r
JOIN store.epoch e ON e.node_id = $1 AND e.epoch = $2
WHERE NOT e.received @> r.seq
ORDER BY r.seq LIMIT 20
