-- Reasons for an Event in cluster $1 of the last $2 ms: on a Node, fallbacks, and misses without another one of the node in the day before; with $3 on a
-- pod, each end of a container that no event announced or that the kubelet was late to notice.
WITH w AS (SELECT now() - $2 * interval '1 millisecond' AS since),
f AS (
  SELECT n.name AS node, f.* FROM w
  JOIN store.finding f ON f.cluster_id = $1 AND f.kind IN ('missed', 'kubelet_late') AND f.day >= (w.since AT TIME ZONE 'UTC')::date AND f.detected_at > w.since
  JOIN store.node n ON n.node_id = f.node_id
)
SELECT n.name AS node, 'fallback' AS kind, NULL AS pod_namespace, NULL AS pod_name, NULL AS pod_uid,
       concat_ws(', ', m.reason, store.fallback_consequence(m.to_mode, m.reason, x.kubelet_version)) AS detail, m.at
FROM w
JOIN store.mode_change m ON m.cluster_id = $1 AND m.day >= (w.since AT TIME ZONE 'UTC')::date AND m.at > w.since
JOIN store.node n ON n.node_id = m.node_id
LEFT JOIN store.context x ON x.context_id = m.context_id
WHERE m.to_mode IN ('Fallback', 'HintDisabled')
UNION ALL
SELECT f.node, 'miss', NULL, NULL, NULL,
       concat_ws(' ', f.event_type, 'of', coalesce(nullif(f.pod_namespace || '/' || f.pod_name, ''), f.container_id)), f.detected_at
FROM f
WHERE f.kind = 'missed' AND NOT EXISTS (
  SELECT FROM store.finding b
  WHERE b.node_id = f.node_id AND b.kind = 'missed' AND b.day >= (f.detected_at AT TIME ZONE 'UTC')::date - 1
    AND (b.detected_at, b.seq) < (f.detected_at, f.seq) AND b.detected_at > f.detected_at - interval '1 day'
)
UNION ALL
SELECT f.node, CASE f.kind WHEN 'missed' THEN 'end_missed' ELSE 'end_shown_late' END, f.pod_namespace, f.pod_name, f.pod_uid,
       concat_ws(' ', 'container', f.container_name, 'had ended',
                 CASE WHEN f.occurred_at IS NOT NULL
                      THEN 'at ' || to_char(f.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
                      ELSE 'by ' || to_char(f.window_to AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') END), f.detected_at
FROM f
WHERE $3::bool AND f.event_type = 'STOPPED' AND f.container_name <> '' AND f.pod_name IS NOT NULL AND f.pod_uid IS NOT NULL
  -- An agent says it, and it becomes a part of a path.
  AND f.pod_namespace ~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'
ORDER BY at
