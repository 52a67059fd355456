-- Puts a node back to the latest of the epochs that are left, which is open if a successor closed it, and makes its report due. $1 node_id
WITH latest AS (
  SELECT e.epoch, e.incarnation, x.context_no, x.context_id
  FROM store.epoch e JOIN store.node m ON m.node_id = e.node_id
  LEFT JOIN LATERAL (
    SELECT * FROM store.context x WHERE x.node_id = e.node_id AND x.epoch = e.epoch ORDER BY x.context_no DESC LIMIT 1
  ) x ON true
  WHERE e.node_id = $1::int4 AND coalesce(e.last_seen >= m.replaced_at, true)
  ORDER BY e.incarnation DESC LIMIT 1
), opened AS (
  UPDATE store.epoch e SET closed_at = NULL, close_cause = NULL
  FROM latest WHERE e.node_id = $1::int4 AND e.epoch = latest.epoch AND e.close_cause <> 'abandoned'
), node AS (
  UPDATE store.node n SET
    -- Above that of every agent of an earlier machine, until one of the present machine reports.
    incarnation = coalesce((SELECT incarnation FROM latest),
                           (SELECT max(e.incarnation) + 1 FROM store.epoch e WHERE e.node_id = $1::int4), 0),
    context_no = coalesce((SELECT context_no FROM latest), 0),
    context_id = (SELECT context_id FROM latest),
    last_seen = (SELECT max(e.last_seen) FROM store.epoch e
                 WHERE e.node_id = $1::int4 AND coalesce(e.last_seen >= n.replaced_at, true))
  WHERE n.node_id = $1::int4
  RETURNING n.node_id, n.cluster_id
)
INSERT INTO store.report_queue (node_id, cluster_id, due_at, urgent)
SELECT node_id, cluster_id, now(), true FROM node
ON CONFLICT (node_id) DO UPDATE SET version = report_queue.version + 1, due_at = now(), urgent = true
