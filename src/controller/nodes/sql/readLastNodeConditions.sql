-- The latest recorded condition of each node, by the time that is kept with the node: the history may be long. $1 cluster_id
SELECT n.name, (extract(epoch FROM k.at) * 1000000)::int8 AS at, k.status, k.reason, k.message, k.pleg_seen_ago_ms, k.threshold_ms
FROM store.node n
CROSS JOIN LATERAL (
  SELECT * FROM store.node_condition k
  WHERE k.node_id = n.node_id AND k.at = n.pleg_condition_at AND k.day = (n.pleg_condition_at AT TIME ZONE 'UTC')::date
  LIMIT 1
) k
WHERE n.cluster_id = $1
