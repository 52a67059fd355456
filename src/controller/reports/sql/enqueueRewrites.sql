-- The reports of the Nodes named $2 in cluster $1, which exist, must be written, even if nothing changed since the last write. While no agent was ever
-- seen on a Node, its report is due in $3 ms and after others: its agent may be starting.
WITH asked AS (
  SELECT node_id, cluster_id, last_seen FROM store.node WHERE cluster_id = $1 AND name = ANY ($2::text[])
), reset AS (
  UPDATE store.report r SET status_digest = NULL, written_at = NULL, node_deleted_at = NULL FROM asked WHERE r.node_id = asked.node_id
)
INSERT INTO store.report_queue AS q (node_id, cluster_id, due_at, urgent)
SELECT node_id, cluster_id, now() + CASE WHEN last_seen IS NULL THEN $3 ELSE 0 END * interval '1 millisecond', last_seen IS NOT NULL
FROM asked
ON CONFLICT (node_id) DO UPDATE SET version = q.version + 1, due_at = least(q.due_at, excluded.due_at),
  urgent = q.urgent OR excluded.urgent;
