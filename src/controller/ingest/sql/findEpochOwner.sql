-- The node that an epoch belongs to for ever. $1 epoch
SELECT c.name AS cluster, n.name AS node
FROM store.epoch e JOIN store.node n USING (node_id) JOIN store.cluster c ON c.cluster_id = n.cluster_id
WHERE e.epoch = $1::uuid
