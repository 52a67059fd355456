-- The findings of the node $1 of what happened from $2 to $3, the latest $4, these first.
SELECT f.finding_id AS id, f.kind, f.event_type AS "eventType", nullif(f.cause, '') AS cause,
       to_char(m.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at,
       to_char(f.window_from AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "from",
       to_char(f.window_to AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "to",
       to_char(f.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "occurredAt",
       to_char(f.detected_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "detectedAt",
       (SELECT to_char(min(u.at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') FROM store.finding_update u
        WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved') AS "resolvedAt",
       f.container_id AS "containerId", f.container_name IS NULL OR f.container_name = '' AS "isSandbox", f.pod_uid AS "podUid",
       f.pod_namespace AS "podNamespace", f.pod_name AS "podName", f.container_name AS "containerName"
FROM store.finding f
CROSS JOIN LATERAL (SELECT coalesce(f.occurred_at, f.window_to, f.detected_at) AS at) m
WHERE f.node_id = $1 AND f.day >= ($2::timestamptz AT TIME ZONE 'UTC')::date AND f.detected_at >= $2
  AND m.at BETWEEN $2 AND $3
ORDER BY m.at DESC, f.finding_id DESC
LIMIT $4;
