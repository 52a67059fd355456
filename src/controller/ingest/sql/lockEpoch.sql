-- Locks an epoch and the node's earlier epochs that are still open, in key order, and returns which seqs of a batch are new.
-- A batch that may not write what was signed changes no attributed epoch: neither its own nor an earlier one, which it cannot close.
-- $1 cluster_id, $2 node, $3 epoch, $4 first, $5 last, $6 context_no, $7 whether the batch may change attributed epochs
WITH own AS (
  SELECT e.node_id, e.incarnation
  FROM store.epoch e
  WHERE e.epoch = $3::uuid AND e.node_id = (SELECT node_id FROM store.node WHERE cluster_id = $1::int2 AND name = $2::text)
), locked AS MATERIALIZED (
  SELECT e.*
  FROM store.epoch e
  WHERE e.node_id = (SELECT node_id FROM own)
    AND (e.epoch = $3::uuid OR (e.closed_at IS NULL AND e.incarnation < (SELECT incarnation FROM own)))
  ORDER BY e.node_id, e.epoch
  FOR UPDATE
), present AS (
  SELECT *, CASE WHEN $5::int4 < $4::int4 THEN '{}'
                 ELSE int4multirange(int4range($4::int4, $5::int4, '[]')) - received END AS fresh
  FROM locked WHERE epoch = $3::uuid
)
SELECT p.node_id AS "nodeId",
       (extract(epoch FROM p.started_at) * 1000000)::float8 AS "startedAt",
       (extract(epoch FROM now()) * 1000000)::float8 AS now,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('from', lower(r), 'to', upper(r) - 1) ORDER BY r), '[]')
        FROM unnest(p.fresh) AS r) AS fresh,
       p.fresh && p.lost AS "fillsGap",
       ARRAY(SELECT l.epoch::text FROM locked l WHERE l.epoch <> p.epoch AND ($7::bool OR NOT l.is_attributed) ORDER BY l.incarnation) AS earlier,
       p.is_attributed AND NOT $7::bool AS "isForgery",
       x.context_id AS "contextId", p.incarnation,
       p.incarnation < n.incarnation AS "isSuperseded",
       coalesce(upper(p.received) - 1, 0) AS "receivedThrough",
       store.plausible_seq(p.last_seq, p.last_new_at) AS "plausibleSeq",
       CASE WHEN n.rows_day = (now() AT TIME ZONE 'UTC')::date THEN n.day_rows ELSE 0 END AS "rowsToday"
FROM present p
JOIN store.node n ON n.node_id = p.node_id
LEFT JOIN store.context x ON x.node_id = p.node_id AND x.epoch = p.epoch AND x.context_no = $6::int4
