-- Stores a change of a Node's Ready condition, and keeps the latest one with the node: changes may be stored in any order.
-- $1 cluster_id, $2 name of the node, $3 at (microseconds since 1970), $4 status, $5 reason, $6 message, $7 pleg_seen_ago_ms,
-- $8 threshold_ms, $9 whether it says that PLEG is not healthy
WITH inserted AS (
  INSERT INTO store.node_condition (at, day, node_id, cluster_id, status, reason, message, pleg_seen_ago_ms, threshold_ms)
  SELECT t.at, (t.at AT TIME ZONE 'UTC')::date, n.node_id, $1::int2, $4, $5, $6, $7::int8, $8::int8
  FROM store.node n, LATERAL (SELECT timestamptz 'epoch' + $3::int8 * interval '1 microsecond' AS at) AS t
  WHERE n.cluster_id = $1 AND n.name = $2
  ON CONFLICT DO NOTHING
  RETURNING node_id, at
)
UPDATE store.node n SET pleg_condition_at = i.at, is_pleg_unhealthy = $9
FROM inserted i
WHERE n.node_id = i.node_id AND (n.pleg_condition_at IS NULL OR n.pleg_condition_at < i.at)
