-- The changes that lists of the node $2 of the cluster $1 showed from $3 to $4, the latest $5, these first.
SELECT to_char(h.window_from AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "from",
       to_char(h.window_to AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "to",
       h.old_state AS "oldState", h.new_state AS "newState", h.container_id AS "containerId", h.is_sandbox AS "isSandbox",
       h.pod_uid AS "podUid", h.pod_namespace AS "podNamespace", h.pod_name AS "podName", h.container_name AS "containerName"
FROM plegwatch.relist_changes h
WHERE h.cluster = $1 AND h.node = $2
  AND h.day BETWEEN ($3::timestamptz AT TIME ZONE 'UTC')::date - 1 AND ($4::timestamptz AT TIME ZONE 'UTC')::date + 1
  AND h.window_to BETWEEN $3 AND $4
ORDER BY h.window_to DESC, h.seq DESC
LIMIT $5;
