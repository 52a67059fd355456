-- Nodes of cluster $1 under whose name agents of several boots run at the same time; at most $2.
SELECT n.name AS node, jsonb_agg(to_jsonb(b) ORDER BY b.started_at, b.boot_id) AS boots
FROM store.node n CROSS JOIN LATERAL store.boots_at_once(n.node_id) AS b
WHERE n.cluster_id = $1::int2 AND n.last_seen > now() - interval '1 hour'
GROUP BY n.node_id
ORDER BY n.name COLLATE "C"
LIMIT $2::int4
