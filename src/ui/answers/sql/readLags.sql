-- For how long the kubelet's own status and the API server showed the state before a start or stop of a container: of the findings of the node $1 from $2 to
-- $3 that are about one, and of what was followed after a fallback and shown late; the latest $4 of each, these first. While its pod is read, as far as that
-- is known now. is_read: that is still so.
WITH found AS (
  SELECT f.finding_id, f.day, f.at
  FROM (
    SELECT f.finding_id, f.day, least(coalesce(f.occurred_at, f.window_to), f.detected_at) AS at
    FROM store.finding f
    WHERE f.node_id = $1 AND f.day >= ($2::timestamptz AT TIME ZONE 'UTC')::date AND f.detected_at >= $2
      AND f.kind IN ('missed', 'late', 'kubelet_late', 'unobservable') AND f.event_type IN ('STARTED', 'STOPPED') AND f.container_name <> ''
  ) f
  WHERE f.at BETWEEN $2 AND $3
  ORDER BY f.at DESC LIMIT $4
), lag AS (
  SELECT f.finding_id, f.kind, f.event_type, o.at, f.container_id, f.pod_uid, f.pod_namespace, f.pod_name,
         f.container_name, f.kubelet_knew, f.kubelet_why, f.kubelet_at_least_ms, f.kubelet_at_most_ms,
         coalesce(f.lag_min_ms, store.not_negative(extract(epoch FROM w.stale_read_at - w.latest_at)::float8 * 1000)) AS lag_min_ms, f.lag_max_ms, f.lag_reason,
         w.finding_id IS NOT NULL AS is_read
  FROM found o
  JOIN store.finding_detail f ON f.node_id = $1 AND f.finding_id = o.finding_id AND f.day = o.day
  LEFT JOIN store.status_lag_watch w ON w.node_id = f.node_id AND w.finding_id = f.finding_id AND f.lag_reason IS NULL
  WHERE num_nonnulls(f.kubelet_knew, f.lag_min_ms, f.lag_max_ms, f.lag_reason, w.finding_id) > 0
    -- The runtime took the change back.
    AND NOT (f.kind = 'kubelet_late' AND f.resolved_at IS NOT NULL AND f.kubelet_at_most_ms IS NULL)
), fallback AS (
  SELECT l.*
  FROM store.status_lag_detail l
  -- It was read for at most 15 minutes.
  WHERE l.node_id = $1 AND l.container_id IS NOT NULL AND l.at BETWEEN $2 AND $3::timestamptz + interval '20 minutes' AND l.happened_at BETWEEN $2 AND $3
    AND (l.lag_max_ms IS NULL OR l.lag_max_ms > 2000)
  ORDER BY l.happened_at DESC LIMIT $4
)
SELECT finding_id AS "findingId", kind, event_type AS "eventType", at,
       container_id AS id, pod_uid AS "podUid", pod_namespace AS "podNamespace", pod_name AS "podName", container_name AS name,
       kubelet_knew AS "kubeletKnew", kubelet_why AS "kubeletWhy", kubelet_at_least_ms AS "kubeletAtLeastMs", kubelet_at_most_ms AS "kubeletAtMostMs",
       lag_min_ms AS "lagMinMs", lag_max_ms AS "lagMaxMs", lag_reason AS "lagReason", is_read AS "isRead"
FROM lag
UNION ALL
SELECT NULL, NULL, event_type, happened_at, container_id, NULL, pod_namespace, pod_name, container_name, NULL, NULL, NULL, NULL,
       lag_min_ms, lag_max_ms, lag_reason, is_read
FROM fallback
ORDER BY at DESC
LIMIT $4;
