-- The reports that are due in cluster $1, changes before refreshes, without nodes written less than $2 ms ago. At most $3.
SELECT q.node_id, q.version::text AS version, n.name AS node
FROM store.report_queue q
JOIN store.node n ON n.node_id = q.node_id
LEFT JOIN store.report r ON r.node_id = q.node_id
WHERE q.cluster_id = $1 AND q.due_at <= now()
  AND (r.written_at IS NULL OR r.written_at <= now() - $2 * interval '1 millisecond')
ORDER BY q.urgent DESC, q.due_at
LIMIT $3;
