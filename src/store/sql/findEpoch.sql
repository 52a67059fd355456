-- The node of an epoch, which is locked, and not its node before it: ingest locks them in this order. $1 cluster, $2 node, $3 epoch
SELECT n.node_id FROM store.node n
JOIN store.cluster c ON c.cluster_id = n.cluster_id
JOIN store.epoch e ON e.node_id = n.node_id
WHERE c.name = $1 AND n.name = $2 AND e.epoch::text = lower($3) FOR UPDATE OF e
