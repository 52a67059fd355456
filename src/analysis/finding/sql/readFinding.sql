-- The findings with the id $1: one, unless a node used the id of another one. $2 clusters, $3 node; null for all.
SELECT f.cluster, f.node, f.finding_id, f.kind, f.event_type, f.cause, f.container_id, f.pod_uid, f.pod_namespace, f.pod_name,
       f.container_name,
       to_char(f.window_from AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS window_from,
       to_char(f.window_to AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS window_to,
       to_char(f.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS occurred_at,
       to_char(f.detected_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS detected_at,
       to_char(f.resolved_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS resolved_at,
       f.lateness_ms, f.delivery_ms, f.lag_min_ms, f.lag_max_ms, f.lag_anomalous, f.lag_reason, f.mode,
       f.runtime_name, f.runtime_version, f.kubelet_version, f.epoch, f.seq, f.proof
FROM plegwatch.findings f
WHERE f.finding_id = $1 AND ($2::text[] IS NULL OR f.cluster = ANY ($2)) AND ($3::text IS NULL OR f.node = $3)
ORDER BY f.detected_at, f.cluster, f.node
LIMIT 100;
