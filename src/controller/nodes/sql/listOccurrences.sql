-- Reasons for an Event on a Node of cluster $1: fallbacks, and misses without another one of the node in the day before, of the last $2 ms.
WITH w AS (SELECT now() - $2 * interval '1 millisecond' AS since)
SELECT n.name AS node, false AS is_miss,
       concat_ws(', ', m.reason, store.fallback_consequence(m.to_mode, m.reason, x.kubelet_version)) AS detail, m.at
FROM w
JOIN store.mode_change m ON m.cluster_id = $1 AND m.day >= (w.since AT TIME ZONE 'UTC')::date AND m.at > w.since
JOIN store.node n ON n.node_id = m.node_id
LEFT JOIN store.context x ON x.context_id = m.context_id
WHERE m.to_mode IN ('Fallback', 'HintDisabled')
UNION ALL
SELECT n.name, true, concat_ws(' ', f.event_type, 'of', coalesce(nullif(f.pod_namespace || '/' || f.pod_name, ''), f.container_id)),
       f.detected_at
FROM w
JOIN store.finding f ON f.cluster_id = $1 AND f.kind = 'missed' AND f.day >= (w.since AT TIME ZONE 'UTC')::date AND f.detected_at > w.since
JOIN store.node n ON n.node_id = f.node_id
WHERE NOT EXISTS (
  SELECT FROM store.finding b
  WHERE b.node_id = f.node_id AND b.kind = 'missed' AND b.day >= (f.detected_at AT TIME ZONE 'UTC')::date - 1
    AND (b.detected_at, b.seq) < (f.detected_at, f.seq) AND b.detected_at > f.detected_at - interval '1 day'
)
ORDER BY at
