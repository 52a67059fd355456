-- The events that the agent of the node $2 of the cluster $1 received from $3 to $4, the latest $5, these first.
SELECT to_char(e.received_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at,
       to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "createdAt",
       e.event_type AS type, e.replayed,
       'exit ' || coalesce(e.exit_code::text, '?') || ' ' || e.exit_reason AS exit, e.container_id AS "containerId", e.is_sandbox AS "isSandbox", e.pod_uid AS "podUid",
       e.pod_namespace AS "podNamespace", e.pod_name AS "podName", e.container_name AS "containerName"
FROM plegwatch.container_events e
WHERE e.cluster = $1 AND e.node = $2
  AND e.day BETWEEN ($3::timestamptz AT TIME ZONE 'UTC')::date AND ($4::timestamptz AT TIME ZONE 'UTC')::date
  AND e.received_at BETWEEN $3 AND $4
ORDER BY e.received_at DESC, e.seq DESC
LIMIT $5;
