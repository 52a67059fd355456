-- Closes earlier epochs of a node that its spool no longer holds: what is missing of them will never arrive. If a later batch
-- brings some of it after all, it is stored and shrinks the gap.
-- $1 node_id, $2 the epochs locked by the caller, $3 those of them that the spool holds, $4 the last seq of each
WITH held AS (
  SELECT * FROM unnest($3::uuid[], $4::int4[]) AS u (epoch, last)
), kept AS (
  UPDATE store.epoch e SET last_seq = held.last
  FROM held
  WHERE e.node_id = $1::int4 AND e.epoch = ANY ($2::uuid[]) AND e.epoch = held.epoch AND e.last_seq < held.last
), ended AS (
  SELECT e.*, int4multirange(int4range(1, e.last_seq + 1)) - e.received - e.lost AS missing
  FROM store.epoch e
  WHERE e.node_id = $1::int4 AND e.epoch = ANY ($2::uuid[]) AND e.closed_at IS NULL
    AND NOT EXISTS (SELECT FROM held WHERE held.epoch = e.epoch)
), gap AS (
  INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at, from_seq, to_seq, records)
  SELECT md5(epoch::text || ':' || lower(r) || ':' || upper(r) - 1)::uuid, node_id, cluster_id, epoch, 'seq', 'store_lost',
         CASE WHEN upper(received) <= lower(r) THEN last_record_at ELSE started_at END, now(),
         lower(r), upper(r) - 1, upper(r) - lower(r)
  FROM ended, unnest(missing) AS r
  ON CONFLICT DO NOTHING
)
UPDATE store.epoch e SET
  lost = e.lost + ended.missing,
  closed_at = now(),
  close_cause = CASE WHEN isempty(ended.missing) THEN 'released' ELSE 'store_lost' END
FROM ended
WHERE e.node_id = ended.node_id AND e.epoch = ended.epoch
RETURNING e.epoch::text AS epoch
