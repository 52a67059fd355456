-- The Nodes of cluster $1 that are named in $2 ($3 true), or all others ($3 false), were deleted from Kubernetes. Their history stays; a
-- Node without any leaves nothing behind.
WITH forgotten AS (
  DELETE FROM store.node n
  WHERE n.cluster_id = $1 AND (n.name = ANY ($2::text[])) = $3::bool AND n.last_seen IS NULL
    AND NOT EXISTS (SELECT FROM store.node_condition k WHERE k.node_id = n.node_id)
    AND NOT EXISTS (SELECT FROM store.epoch e WHERE e.node_id = n.node_id)
  RETURNING n.node_id
), dequeued AS (
  DELETE FROM store.report_queue q USING forgotten f WHERE q.node_id = f.node_id
), unconditioned AS (
  DELETE FROM store.report_condition c USING forgotten f WHERE c.node_id = f.node_id
), unreported AS (
  DELETE FROM store.report r USING forgotten f WHERE r.node_id = f.node_id
)
INSERT INTO store.report AS r (node_id, cluster_id, node_deleted_at)
SELECT n.node_id, n.cluster_id, now()
FROM store.node n
LEFT JOIN store.report known ON known.node_id = n.node_id
WHERE n.cluster_id = $1 AND (n.name = ANY ($2::text[])) = $3::bool AND known.node_deleted_at IS NULL
  AND (known.node_id IS NOT NULL OR n.last_seen IS NULL) AND n.node_id NOT IN (SELECT node_id FROM forgotten)
ON CONFLICT (node_id) DO UPDATE SET node_deleted_at = excluded.node_deleted_at, written_at = NULL, status_digest = NULL, recheck_at = NULL;
