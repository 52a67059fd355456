-- Locks an epoch and the node's earlier epochs that are still open, in key order, and returns which seqs of a batch are new.
-- $1 cluster_id, $2 node, $3 epoch, $4 incarnation, $5 first, $6 last, $7 context_no
WITH locked AS MATERIALIZED (
  SELECT e.*
  FROM store.epoch e
  WHERE e.node_id = (SELECT node_id FROM store.node WHERE cluster_id = $1::int2 AND name = $2::text)
    AND (e.epoch = $3::uuid OR (e.closed_at IS NULL AND e.incarnation < $4::int4))
  ORDER BY e.node_id, e.epoch
  FOR UPDATE
), present AS (
  SELECT *, CASE WHEN $6::int4 < $5::int4 THEN '{}'
                 ELSE int4multirange(int4range($5::int4, $6::int4, '[]')) - received END AS fresh
  FROM locked WHERE epoch = $3::uuid
)
SELECT p.node_id AS "nodeId",
       (extract(epoch FROM p.started_at) * 1000000)::float8 AS "startedAt",
       (extract(epoch FROM now()) * 1000000)::float8 AS now,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('from', lower(r), 'to', upper(r) - 1) ORDER BY r), '[]')
        FROM unnest(p.fresh) AS r) AS fresh,
       p.fresh && p.lost AS "fillsGap",
       ARRAY(SELECT l.epoch::text FROM locked l WHERE l.epoch <> p.epoch ORDER BY l.incarnation) AS earlier,
       x.context_id AS "contextId"
FROM present p
LEFT JOIN store.context x ON x.node_id = p.node_id AND x.epoch = p.epoch AND x.context_no = $7::int4
