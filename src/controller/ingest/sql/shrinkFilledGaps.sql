-- Records arrived after they were declared lost: shrinks the gaps of their epoch to what is still missing. One over quota may span gaps of
-- other causes, whose records are not its own.
-- $1 node_id, $2 epoch
WITH missing AS (
  SELECT g.gap_id, store.count_seqs(e.lost * int4multirange(int4range(g.from_seq, g.to_seq, '[]'))) AS records
  FROM store.gap g JOIN store.epoch e ON e.node_id = g.node_id AND e.epoch = g.epoch
  WHERE g.node_id = $1::int4 AND g.epoch = $2::uuid AND g.scope = 'seq' AND g.filled_at IS NULL
)
UPDATE store.gap g
SET records = m.records, filled_at = CASE WHEN m.records = 0 THEN now() END
FROM missing m
WHERE g.node_id = $1::int4 AND g.gap_id = m.gap_id AND m.records < g.records
