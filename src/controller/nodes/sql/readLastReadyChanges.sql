-- The latest recorded change of the Ready condition of each node. $1 cluster_id
SELECT n.name, (extract(epoch FROM r.at) * 1000000)::int8 AS at, r.status, r.reason, r.causes
FROM store.node n
CROSS JOIN LATERAL (SELECT * FROM store.ready_change r WHERE r.node_id = n.node_id ORDER BY r.at DESC LIMIT 1) r
WHERE n.cluster_id = $1
