-- The keys of a cluster's nodes that are valid, and for how many seconds they still are: the clocks of controllers do not count. $1 cluster_id
SELECT n.name AS node, encode(k.public_key, 'hex') AS "publicKey", extract(epoch FROM k.expires_at - now())::float8 AS "validFor"
FROM store.node_key k JOIN store.node n USING (node_id)
WHERE k.cluster_id = $1::int2 AND k.expires_at > now()
