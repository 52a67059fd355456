-- Rows of a node that no epoch of it can have: with a seq that no record has, without a context of an epoch, or in another cluster. $1 node_id
SELECT r.view, count(*)::int4 AS rows, min(r.seq) AS first_seq
FROM (
  SELECT 'container_events' AS view, seq, context_id, cluster_id FROM store.container_event WHERE node_id = $1
  UNION ALL
  SELECT 'relist_changes', seq, context_id, cluster_id FROM store.relist_change WHERE node_id = $1
  UNION ALL
  SELECT 'relists', seq, context_id, cluster_id FROM store.relist_minute WHERE node_id = $1
  UNION ALL
  SELECT 'findings', seq, context_id, cluster_id FROM store.finding WHERE node_id = $1
  UNION ALL
  SELECT 'mode_changes', seq, context_id, cluster_id FROM store.mode_change WHERE node_id = $1
) r
JOIN store.node n ON n.node_id = $1
LEFT JOIN (store.context x JOIN store.epoch e ON e.node_id = x.node_id AND e.epoch = x.epoch) ON x.node_id = $1 AND x.context_id = r.context_id
WHERE x.context_id IS NULL OR r.seq < 1 OR r.seq > 2147483646 OR r.cluster_id <> n.cluster_id
GROUP BY r.view
ORDER BY r.view
