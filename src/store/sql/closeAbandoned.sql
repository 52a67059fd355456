-- Closes epochs that have not reported for $1 days: the node will not come back, and neither will what is missing.
WITH ended AS (
  SELECT e.*, int4multirange(int4range(1, e.last_seq + 1)) - e.received - e.lost AS missing
  FROM store.epoch e
  WHERE e.closed_at IS NULL AND e.last_stored_at < now() - $1::int4 * interval '1 day'
  ORDER BY e.node_id, e.epoch
  FOR UPDATE
), gap AS (
  INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at, from_seq, to_seq, records)
  SELECT md5(epoch::text || ':' || lower(r) || ':' || upper(r) - 1)::uuid, node_id, cluster_id, epoch, 'seq', 'abandoned',
         CASE WHEN upper(received) <= lower(r) THEN last_record_at ELSE started_at END, last_stored_at,
         lower(r), upper(r) - 1, upper(r) - lower(r)
  FROM ended, unnest(missing) AS r
  ON CONFLICT DO NOTHING
)
UPDATE store.epoch e SET lost = e.lost + ended.missing, closed_at = now(), close_cause = 'abandoned'
FROM ended
WHERE e.node_id = ended.node_id AND e.epoch = ended.epoch
