-- Locks nodes and the epochs of their batches as far as nobody else has locked them, without waiting. Returns what became of each batch: `locked`;
-- `busy` if somebody else has its node or its epoch; `held` if it was busy before and the session that has them is no controller's, whose locks last only while
-- it commits; or `unknown` if one of them is not there yet. No later statement of this transaction waits long for a lock or runs for long: others wait
-- behind it.
-- The transaction that has locked a row stands in its xmax, if it is one: where several have, or a savepoint that was released, it stays busy. A
-- controller's session has the name that src/store/store.ts gives it, to which a pooler may add. To ask takes longer than most locks of a controller
-- last. $1 cluster_id, then arrays: node, epoch, whether it was busy before
WITH given AS (
  SELECT * FROM unnest($2::text[], $3::uuid[], $4::bool[]) WITH ORDINALITY AS u (name, epoch, was_busy, place)
), node AS MATERIALIZED (
  SELECT n.node_id, n.name FROM store.node n
  WHERE n.cluster_id = $1::int2 AND n.name = ANY ($2::text[])
  ORDER BY n.node_id
  FOR NO KEY UPDATE SKIP LOCKED
), own AS MATERIALIZED (
  SELECT e.node_id, e.epoch FROM store.epoch e
  WHERE (e.node_id, e.epoch) IN (SELECT n.node_id, g.epoch FROM node n JOIN given g USING (name))
  ORDER BY e.node_id, e.epoch
  FOR UPDATE SKIP LOCKED
), stranger AS MATERIALIZED (
  SELECT l.transactionid AS xid FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
  WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
    AND (a.application_name LIKE 'plegwatch controller%') IS NOT TRUE
)
SELECT CASE WHEN own.epoch IS NOT NULL THEN 'locked' WHEN e.epoch IS NULL THEN 'unknown'
            WHEN g.was_busy AND EXISTS (SELECT FROM stranger WHERE xid IN (k.xmax, e.xmax)) THEN 'held' ELSE 'busy' END AS state,
       set_config('lock_timeout', '2s', true) AS lock_timeout, set_config('statement_timeout', '10s', true) AS statement_timeout
FROM given g
LEFT JOIN store.node k ON k.cluster_id = $1::int2 AND k.name = g.name
LEFT JOIN store.epoch e ON e.node_id = k.node_id AND e.epoch = g.epoch
LEFT JOIN own ON own.node_id = k.node_id AND own.epoch = g.epoch
ORDER BY g.place
