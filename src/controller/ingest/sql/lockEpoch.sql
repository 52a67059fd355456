-- Locks an epoch and the node's earlier epochs that are still open, in key order, and returns what is known of it for a batch.
-- A batch that may not write what was signed changes no attributed epoch: neither its own (`is_forgery`) nor an earlier one, which it cannot close.
-- $1 cluster_id, $2 node, $3 epoch, $4 first, $5 last, $6 context_no, $7 whether the batch may change attributed epochs
WITH own AS (
  SELECT e.node_id, e.incarnation
  FROM store.epoch e
  WHERE e.epoch = $3::uuid AND e.node_id = (SELECT node_id FROM store.node WHERE cluster_id = $1::int2 AND name = $2::text)
), locked AS MATERIALIZED (
  SELECT e.*, e AS whole
  FROM store.epoch e
  WHERE e.node_id = (SELECT node_id FROM own)
    AND (e.epoch = $3::uuid OR (e.closed_at IS NULL AND e.incarnation < (SELECT incarnation FROM own)))
  ORDER BY e.node_id, e.epoch
  FOR UPDATE
)
SELECT k.*, p.is_attributed AND NOT $7::bool AS is_forgery,
       ARRAY(SELECT l.epoch::text FROM locked l WHERE l.epoch <> p.epoch AND ($7::bool OR NOT l.is_attributed) ORDER BY l.incarnation) AS earlier
FROM locked p
JOIN store.node n ON n.node_id = p.node_id,
LATERAL store.known_of_batch(p.whole, n, $4::int4, $5::int4, $6::int4) AS k
WHERE p.epoch = $3::uuid
