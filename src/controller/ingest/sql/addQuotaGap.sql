-- Adds seqs to the gap of what a node stored no rows for because it had stored as many as it may in a day: one for each epoch and day. The
-- database's clock says which day it is.
-- $1 node_id, $2 epoch, $3 and $4 the time of these seqs (microseconds since 1970), $5 records that were not stored: those not declared lost yet
-- count, $6 seqs that were just declared lost, as multiranges
INSERT INTO store.gap AS g (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at, from_seq, to_seq, records)
SELECT md5(e.epoch::text || ':over_quota:' || (now() AT TIME ZONE 'UTC')::date)::uuid, e.node_id, e.cluster_id, e.epoch, 'seq', 'over_quota',
       timestamptz 'epoch' + $3::int8 * interval '1 microsecond', timestamptz 'epoch' + $4::int8 * interval '1 microsecond',
       lower(s.seqs), upper(s.seqs) - 1, store.count_seqs(s.seqs)
FROM store.epoch e, LATERAL (SELECT $5::int4multirange - e.lost + $6::int4multirange AS seqs) s
WHERE e.node_id = $1::int4 AND e.epoch = $2::uuid AND NOT isempty(s.seqs)
ON CONFLICT (node_id, gap_id) DO UPDATE SET
  from_at = least(g.from_at, excluded.from_at), to_at = greatest(g.to_at, excluded.to_at),
  from_seq = least(g.from_seq, excluded.from_seq), to_seq = greatest(g.to_seq, excluded.to_seq),
  records = g.records + excluded.records, filled_at = NULL
