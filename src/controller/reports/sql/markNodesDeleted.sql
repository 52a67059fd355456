-- The Nodes named $2 of cluster $1 were deleted from Kubernetes. Their history stays.
UPDATE store.report r SET node_deleted_at = now(), written_at = NULL, status_digest = NULL, recheck_at = NULL
FROM store.node n
WHERE n.node_id = r.node_id AND r.cluster_id = $1 AND n.name = ANY ($2::text[]) AND r.node_deleted_at IS NULL;
