-- The reports of nodes must be written: each at once, or when its next refresh is due.
-- $1 cluster_id, then arrays: node_id, urgent
INSERT INTO store.report_queue (node_id, cluster_id, due_at, urgent)
SELECT u.node_id, $1::int2, now() + CASE WHEN u.urgent THEN interval '0' ELSE interval '4 hours' END, u.urgent
FROM unnest($2::int4[], $3::bool[]) AS u (node_id, urgent)
-- A row that is queued before that does not change: a conflict would lock it for nothing.
WHERE u.urgent OR NOT EXISTS (SELECT FROM store.report_queue q WHERE q.node_id = u.node_id AND q.due_at <= now() + interval '4 hours')
ORDER BY u.node_id
ON CONFLICT (node_id) DO UPDATE SET
  version = report_queue.version + 1,
  due_at = least(report_queue.due_at, excluded.due_at),
  urgent = report_queue.urgent OR excluded.urgent
WHERE excluded.urgent OR report_queue.due_at > excluded.due_at
