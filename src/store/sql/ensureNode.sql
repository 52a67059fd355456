-- Adds a node unless it exists. $1 cluster_id, $2 name, $3 node_uid
INSERT INTO store.node (cluster_id, name, node_uid)
SELECT $1::int2, $2::text, nullif($3::text, '')
WHERE NOT EXISTS (SELECT FROM store.node WHERE cluster_id = $1 AND name = $2)
ON CONFLICT (cluster_id, name) DO NOTHING
