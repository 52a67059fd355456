-- The state of the epochs of plain batches, which the caller has locked with their nodes. A plain batch declares nothing lost that is not known
-- already, fills no gap, has a context that is stored, is of the latest epoch of its node, leaves no earlier one open, and is not forged.
-- $1 cluster_id, then arrays: node, epoch, first, last, context_no, whether the batch may change attributed epochs, the seqs that it declares lost
-- (as multiranges)
SELECT g.place::int4 AS place, k.*
FROM unnest($2::text[], $3::uuid[], $4::int4[], $5::int4[], $6::int4[], $7::bool[], $8::text[])
  WITH ORDINALITY AS g (name, epoch, first, last, context_no, may_change, declared, place)
JOIN store.node n ON n.cluster_id = $1::int2 AND n.name = g.name
JOIN store.epoch e ON e.node_id = n.node_id AND e.epoch = g.epoch,
LATERAL store.known_of_batch(e, n, g.first, g.last, g.context_no) AS k
WHERE k.context_id IS NOT NULL AND NOT k.fills_gap AND NOT k.is_superseded AND isempty(g.declared::int4multirange - e.received - e.lost)
  AND (g.may_change OR NOT e.is_attributed)
  AND NOT EXISTS (SELECT FROM store.epoch o WHERE o.node_id = e.node_id AND o.closed_at IS NULL AND o.incarnation < e.incarnation)
