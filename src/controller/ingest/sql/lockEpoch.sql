-- Locks an epoch and the node's earlier lives that are still open, in key order, and tells what of a batch is new.
-- $1 cluster_id, $2 node, $3 epoch, $4 life, $5 first, $6 last, $7 ctx_no
WITH locked AS MATERIALIZED (
  SELECT e.*
  FROM store.epoch e
  WHERE e.node_id = (SELECT node_id FROM store.node WHERE cluster_id = $1::int2 AND name = $2::text)
    AND (e.epoch = $3::uuid OR (e.closed_at IS NULL AND e.life < $4::int4))
  ORDER BY e.node_id, e.epoch
  FOR UPDATE
), ours AS (
  SELECT *, CASE WHEN $6::int4 < $5::int4 THEN '{}'
                 ELSE int4multirange(int4range($5::int4, $6::int4, '[]')) - received END AS fresh
  FROM locked WHERE epoch = $3::uuid
)
SELECT o.node_id,
       (extract(epoch FROM o.base_at) * 1000000)::int8::text AS base,
       (extract(epoch FROM now()) * 1000000)::int8::text AS now,
       ARRAY(SELECT lower(r) FROM unnest(o.fresh) AS r ORDER BY r) AS fresh_from,
       ARRAY(SELECT upper(r) - 1 FROM unnest(o.fresh) AS r ORDER BY r) AS fresh_to,
       o.fresh && o.lost AS refills,
       ARRAY(SELECT l.epoch::text FROM locked l WHERE l.epoch <> o.epoch ORDER BY l.life) AS earlier,
       x.ctx_id
FROM ours o
LEFT JOIN store.context x ON x.node_id = o.node_id AND x.epoch = o.epoch AND x.ctx_no = $7::int4
