-- The nodes that have a report, or would have one in Kubernetes: of the clusters named $1; null for every cluster.
SELECT n.node_id, n.name AS node, c.name AS cluster FROM store.node n
JOIN store.cluster c ON c.cluster_id = n.cluster_id
LEFT JOIN store.report r ON r.node_id = n.node_id
WHERE ($1::text[] IS NULL OR c.name = ANY ($1)) AND r.node_deleted_at IS NULL
ORDER BY c.name COLLATE "C", n.name COLLATE "C";
