-- The nodes of the cluster named $1 that have a report, or would have one in Kubernetes.
SELECT n.node_id FROM store.node n
JOIN store.cluster c ON c.cluster_id = n.cluster_id
LEFT JOIN store.report r ON r.node_id = n.node_id
WHERE c.name = $1 AND r.node_deleted_at IS NULL
ORDER BY n.name COLLATE "C";
