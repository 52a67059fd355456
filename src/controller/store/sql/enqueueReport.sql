-- The report of a node must be written: at once, or when the next refresh is due.
-- $1 node_id, $2 cluster_id, $3 urgent
INSERT INTO store.report_queue (node_id, cluster_id, due_at, urgent)
VALUES ($1, $2, now() + CASE WHEN $3::bool THEN interval '0' ELSE interval '4 hours' END, $3::bool)
ON CONFLICT (node_id) DO UPDATE SET
  version = report_queue.version + 1,
  due_at = least(report_queue.due_at, excluded.due_at),
  urgent = report_queue.urgent OR excluded.urgent
WHERE excluded.urgent OR report_queue.due_at > excluded.due_at
