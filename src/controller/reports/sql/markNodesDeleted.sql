-- The nodes of cluster $1 named in $2 have left Kubernetes. Their history stays.
UPDATE store.report r SET gone_at = now(), written_at = NULL, shown = NULL, recheck_at = NULL
FROM store.node n
WHERE n.node_id = r.node_id AND r.cluster_id = $1 AND n.name = ANY ($2::text[]) AND r.gone_at IS NULL;
