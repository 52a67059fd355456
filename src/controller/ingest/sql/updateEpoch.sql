-- Applies a batch to its epoch. Returns the acked seq, which may be published once this is committed.
-- $1 node_id, $2 epoch, $3 ack_generation, $4 last, $5 when the batch was cut (microseconds since 1970), $6 stored and $7 unstored
-- seqs as multiranges, $8 time of the latest stored record or null, $9 and $10 times of the first and the last stored scrape or null
WITH next AS (
  SELECT e.received + $6::int4multirange AS received,
         e.lost + $7::int4multirange - $6::int4multirange AS lost,
         timestamptz 'epoch' + $5::int8 * interval '1 microsecond' AS cut_at
  FROM store.epoch e WHERE node_id = $1::int4 AND epoch = $2::uuid
), acked AS (
  SELECT *, store.acked_seq(received, lost) AS acked_seq FROM next
)
UPDATE store.epoch e SET
  received = a.received,
  lost = a.lost,
  ack_generation = greatest(e.ack_generation, $3::int4),
  last_seq = greatest(e.last_seq, $4::int4),
  last_batch_seq = greatest(e.last_batch_seq, $4::int4),
  last_batch_at = CASE WHEN $4::int4 >= e.last_batch_seq THEN greatest(e.last_batch_at, a.cut_at) ELSE e.last_batch_at END,
  last_record_at = greatest(e.last_record_at, timestamptz 'epoch' + $8::int8 * interval '1 microsecond'),
  complete_through = CASE
    WHEN $4::int4 >= e.last_batch_seq AND a.acked_seq >= $4::int4 THEN greatest(e.complete_through, e.last_batch_at, a.cut_at)
    WHEN a.acked_seq >= e.last_batch_seq THEN greatest(e.complete_through, e.last_batch_at)
    WHEN a.acked_seq >= $4::int4 THEN greatest(e.complete_through, a.cut_at)
    ELSE e.complete_through END,
  kubelet_seen_from = least(e.kubelet_seen_from, timestamptz 'epoch' + $9::int8 * interval '1 microsecond'),
  kubelet_seen_to = greatest(e.kubelet_seen_to, timestamptz 'epoch' + $10::int8 * interval '1 microsecond'),
  last_seen = now(),
  -- The agent came back after it was given up.
  closed_at = CASE WHEN e.close_cause = 'abandoned' THEN NULL ELSE e.closed_at END,
  close_cause = nullif(e.close_cause, 'abandoned')
FROM acked a
WHERE e.node_id = $1::int4 AND e.epoch = $2::uuid
RETURNING a.acked_seq, e.ack_generation
