-- The latest recorded condition of each node, by the time that is kept with the node: the history may be long. $1 cluster_id
SELECT n.name, k.status, k.reason, k.message, (extract(epoch FROM k.at) * 1000000)::int8::text AS at,
       k.pleg_seen_ago_ms::float8 AS "seenAgoMs", k.threshold_ms::float8 AS "thresholdMs"
FROM store.node n
CROSS JOIN LATERAL (
  SELECT * FROM store.node_condition k
  WHERE k.node_id = n.node_id AND k.at = n.pleg_condition_at AND k.day = (n.pleg_condition_at AT TIME ZONE 'UTC')::date
  LIMIT 1
) k
WHERE n.cluster_id = $1
