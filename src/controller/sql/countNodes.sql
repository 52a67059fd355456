-- How many nodes of cluster $1 have each mode, stream state and condition, as their reports say; an agent of which nothing was stored
-- for more than $2 ms is silent.
WITH reported AS MATERIALIZED (
  SELECT n.node_id, coalesce(s.mode, 'Unknown') AS mode, coalesce(s.stream_state, 'Unknown') AS stream_state
  FROM store.node n
  JOIN store.report r ON r.node_id = n.node_id AND r.node_deleted_at IS NULL
  LEFT JOIN store.node_state s ON s.node_id = n.node_id AND s.incarnation = n.incarnation
    AND n.last_seen >= now() - $2 * interval '1 millisecond'
  WHERE n.cluster_id = $1
), stated AS (
  SELECT c.type, c.status, c.reason FROM reported JOIN store.report_condition c USING (node_id)
)
SELECT 'mode' AS of, mode AS value, '' AS status, count(*)::int4 AS nodes FROM reported GROUP BY mode
UNION ALL
SELECT 'stream', stream_state, '', count(*)::int4 FROM reported GROUP BY stream_state
UNION ALL
SELECT 'agent', reason, '', count(*)::int4 FROM stated WHERE type = 'AgentReporting' GROUP BY reason
UNION ALL
SELECT 'condition', type, status, count(*)::int4 FROM stated GROUP BY type, status;
