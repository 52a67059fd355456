-- An epoch whose agent ran after everything that is known of the epochs that superseded it: agents of a node run one after the other, so
-- those are not its successors. It becomes the latest again. A backlog of an epoch that ended may be stored long after its successor was last
-- seen: so its batch was also sealed after they began, by the clock of its agent. An epoch of an earlier machine of the same name stays
-- superseded. `overtakes`: there are such epochs, and not only a Node that was registered again while its agent ran. $1 node_id, $2 epoch
WITH node AS (
  SELECT node_id, incarnation, replaced_at FROM store.node WHERE node_id = $1::int4 FOR UPDATE
), own AS (
  SELECT e.node_id, e.epoch, e.incarnation AS before, node.incarnation + 1 AS after
  FROM store.epoch e JOIN node USING (node_id)
  WHERE e.epoch = $2::uuid AND e.incarnation < node.incarnation AND coalesce(e.last_seen >= node.replaced_at, true)
    AND NOT EXISTS (
      SELECT FROM store.epoch x
      WHERE x.node_id = e.node_id AND x.incarnation > e.incarnation
        AND (x.last_seen >= e.last_seen - store.silent_after() OR x.started_at >= e.last_batch_at))
), state AS (
  UPDATE store.node_state s SET incarnation = own.after FROM own WHERE s.node_id = own.node_id AND s.incarnation = own.before
)
UPDATE store.epoch e SET incarnation = own.after, closed_at = NULL, close_cause = NULL
FROM own
WHERE e.node_id = own.node_id AND e.epoch = own.epoch
RETURNING e.incarnation,
          EXISTS (SELECT FROM store.epoch x WHERE x.node_id = own.node_id AND x.incarnation > own.before) AS overtakes
