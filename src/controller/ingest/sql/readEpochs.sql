-- What is known of the epochs of batches, which the caller has locked with their nodes. `isPlain`: the batch declares nothing lost that is not known
-- already, fills no gap, is of the latest epoch of its node, leaves no earlier one open, and is not forged.
-- $1 cluster_id, then arrays: node, epoch, first, last, context_no, whether the batch may change attributed epochs, the seqs that it declares lost
-- (as multiranges)
SELECT g.place::int4 AS place, e.node_id AS "nodeId",
       (extract(epoch FROM e.started_at) * 1000000)::float8 AS "startedAt",
       (extract(epoch FROM now()) * 1000000)::float8 AS now,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('from', lower(r), 'to', upper(r) - 1) ORDER BY r), '[]') FROM unnest(s.fresh) AS r) AS fresh,
       x.context_id AS "contextId", e.incarnation,
       coalesce(upper(e.received) - 1, 0) AS "receivedThrough",
       store.plausible_seq(e.last_seq, e.last_new_at) AS "plausibleSeq",
       CASE WHEN n.rows_day = (now() AT TIME ZONE 'UTC')::date THEN n.day_rows ELSE 0 END AS "rowsToday",
       x.context_id IS NOT NULL AND isempty(g.declared::int4multirange - e.received - e.lost) AND NOT s.fresh && e.lost
         AND e.incarnation >= n.incarnation AND (g.may_change OR NOT e.is_attributed)
         AND NOT EXISTS (SELECT FROM store.epoch o WHERE o.node_id = e.node_id AND o.closed_at IS NULL AND o.incarnation < e.incarnation)
         AS "isPlain"
FROM unnest($2::text[], $3::uuid[], $4::int4[], $5::int4[], $6::int4[], $7::bool[], $8::text[])
  WITH ORDINALITY AS g (name, epoch, first, last, context_no, may_change, declared, place)
JOIN store.node n ON n.cluster_id = $1::int2 AND n.name = g.name
JOIN store.epoch e ON e.node_id = n.node_id AND e.epoch = g.epoch
LEFT JOIN store.context x ON x.node_id = e.node_id AND x.epoch = e.epoch AND x.context_no = g.context_no,
LATERAL (SELECT CASE WHEN g.last < g.first THEN '{}' ELSE int4multirange(int4range(g.first, g.last, '[]')) - e.received END AS fresh) AS s
ORDER BY g.place
