-- The latest events that a stream missed: node, event, pod, container and the cause of the finding.
SELECT node, event_type, pod_namespace || '/' || pod_name AS pod, CASE WHEN is_sandbox THEN '(sandbox)' ELSE coalesce(nullif(container_name, ''), '(name unknown)') END AS container,
       cause, to_char(detected_at, 'HH24:MI:SS') AS detected
FROM plegwatch.findings
WHERE cluster = 'demo' AND kind = 'missed' AND resolved_at IS NULL
ORDER BY detected_at DESC
LIMIT 8;
