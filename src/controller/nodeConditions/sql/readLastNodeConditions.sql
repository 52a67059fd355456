-- The latest recorded condition of each node. $1 cluster_id
SELECT DISTINCT ON (k.node_id) n.name, k.status, k.message, (extract(epoch FROM k.at) * 1000000)::int8::text AS at
FROM store.node_condition k
JOIN store.node n ON n.node_id = k.node_id
WHERE k.cluster_id = $1
ORDER BY k.node_id, k.at DESC
