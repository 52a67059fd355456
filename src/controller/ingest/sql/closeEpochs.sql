-- Closes earlier epochs of a node that its spool no longer holds: what is missing of them will never arrive. If a later batch
-- brings some of it after all, it is stored and shrinks the gap.
-- A last seq that cannot be is not believed: a batch of its own epoch will say it.
-- Returns the closed epochs, how many holes each has, and what they are if those of all are more than the node may store rows for: then they have
-- no gaps yet.
-- $1 node_id, $2 the epochs locked by the caller, $3 those of them that the spool holds, $4 the last seq of each, $5 how many rows the node
-- may still store
WITH held AS (
  SELECT * FROM unnest($3::uuid[], $4::int4[]) AS u (epoch, last)
), kept AS (
  UPDATE store.epoch e SET last_seq = held.last
  FROM held
  WHERE e.node_id = $1::int4 AND e.epoch = ANY ($2::uuid[]) AND e.epoch = held.epoch AND e.last_seq < held.last
    AND held.last <= store.plausible_seq(e.last_seq, e.last_new_at)
), ended AS (
  SELECT e.*, int4multirange(int4range(1, e.last_seq + 1)) - e.received - e.lost AS missing
  FROM store.epoch e
  WHERE e.node_id = $1::int4 AND e.epoch = ANY ($2::uuid[]) AND e.closed_at IS NULL
    AND NOT EXISTS (SELECT FROM held WHERE held.epoch = e.epoch)
), hole AS (
  SELECT node_id, cluster_id, epoch, r, CASE WHEN upper(received) <= lower(r) THEN last_record_at ELSE started_at END AS from_at
  FROM ended, unnest(missing) AS r
), gap AS (
  INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at, from_seq, to_seq, records)
  SELECT md5(epoch::text || ':' || lower(r) || ':' || upper(r) - 1)::uuid, node_id, cluster_id, epoch, 'seq', 'store_lost', from_at, now(),
         lower(r), upper(r) - 1, upper(r) - lower(r)
  FROM hole
  WHERE (SELECT count(*) FROM hole) <= $5::int4
  ON CONFLICT DO NOTHING
)
UPDATE store.epoch e SET
  lost = e.lost + ended.missing,
  closed_at = now(),
  close_cause = CASE WHEN isempty(ended.missing) THEN 'released' ELSE 'store_lost' END
FROM ended
WHERE e.node_id = ended.node_id AND e.epoch = ended.epoch
RETURNING e.epoch,
          (SELECT count(*)::int4 FROM hole h WHERE h.epoch = e.epoch) AS holes,
          CASE WHEN (SELECT count(*) FROM hole) > $5::int4 THEN nullif(ended.missing, '{}') END AS surplus,
          (SELECT (extract(epoch FROM min(h.from_at)) * 1000000)::float8 FROM hole h WHERE h.epoch = e.epoch) AS "from"
