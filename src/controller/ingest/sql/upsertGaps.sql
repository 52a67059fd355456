-- A gap is recorded when it opens and again when it closes, perhaps by a later incarnation; the order does not matter.
-- $1 cluster_id, then arrays: node_id, epoch, gap_id, scope, cause, from, to (microseconds since 1970)
INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at)
SELECT u.gap_id, u.node_id, $1::int2, u.epoch, min(u.scope), min(u.cause),
       timestamptz 'epoch' + min(u.from_us) * interval '1 microsecond',
       timestamptz 'epoch' + max(u.to_us) * interval '1 microsecond'
FROM unnest($2::int4[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::int8[], $8::int8[]) AS u (node_id, epoch, gap_id, scope, cause, from_us, to_us)
GROUP BY u.node_id, u.epoch, u.gap_id
ORDER BY u.node_id, u.gap_id
ON CONFLICT (node_id, gap_id) DO UPDATE SET
  from_at = least(gap.from_at, excluded.from_at),
  to_at = greatest(gap.to_at, excluded.to_at)
