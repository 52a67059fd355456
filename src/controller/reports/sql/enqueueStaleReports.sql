-- Queues the reports of cluster $1 that may have changed with time alone: those that call an agent reporting that is
-- silent for more than $2 ms, those of agents that report again, and those that are due for a recheck.
INSERT INTO store.report_queue AS q (node_id, cluster_id, due_at, urgent)
SELECT r.node_id, r.cluster_id, now(), coalesce(r.recheck_at > now(), true)
FROM store.report r
JOIN store.node n ON n.node_id = r.node_id
LEFT JOIN store.report_condition c ON c.node_id = r.node_id AND c.type = 'AgentReporting'
WHERE r.cluster_id = $1 AND r.written_at IS NOT NULL
  AND (r.recheck_at <= now() OR (c.status = 'True') = (n.last_seen < now() - $2 * interval '1 millisecond'))
ON CONFLICT (node_id) DO UPDATE SET version = q.version + 1, due_at = excluded.due_at, urgent = q.urgent OR excluded.urgent
WHERE q.due_at > excluded.due_at;
