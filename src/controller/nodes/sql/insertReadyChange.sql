-- Stores a change of a Node's Ready condition. $1 cluster_id, $2 name of the node, $3 at (microseconds since 1970), $4 status, $5 reason, $6 causes
INSERT INTO store.ready_change (node_id, cluster_id, at, status, reason, causes)
SELECT n.node_id, $1::int2, timestamptz 'epoch' + $3::int8 * interval '1 microsecond', $4::text, $5::text, $6::text[]
FROM store.node n WHERE n.cluster_id = $1::int2 AND n.name = $2
ON CONFLICT DO NOTHING
