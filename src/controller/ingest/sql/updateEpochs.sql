-- Applies batches to their epochs, one batch to each. Returns the acked seqs, which may be published once this is committed.
-- Arrays: $1 node_id, $2 epoch, $3 ack_generation, $4 last, $5 when the batch was sealed (microseconds since 1970), $6 stored and $7 unstored
-- seqs as multiranges, $8 time of the latest stored record or null, $9 and $10 times of the first and the last stored scrape or null,
-- $11 the latest time up to which a stored minute says that everything is decided, or null,
-- $12 the wall clock of the node when the batch was sealed (microseconds since 1970), $13 whether it has records, $14 whether the
-- node signed it
--
-- When its agent ran is known on the clock of the epoch. The shortest delay of its batches is the best that is known of how that relates to
-- the database's: a batch that waited has a longer one. It grows by 500 ppm, for which the two may drift apart, and what was
-- known is void once the clocks of the node moved against each other, as when one of them was set.
WITH given AS (
  SELECT u.*, u.stored_seqs::int4multirange AS stored, u.unstored_seqs::int4multirange AS unstored,
         timestamptz 'epoch' + u.sealed_us * interval '1 microsecond' AS sealed_at
  FROM unnest($1::int4[], $2::uuid[], $3::int4[], $4::int4[], $5::int8[], $6::text[], $7::text[], $8::int8[], $9::int8[], $10::int8[],
              $11::int8[], $12::int8[], $13::bool[], $14::bool[])
    AS u (node_id, epoch, ack_generation, last, sealed_us, stored_seqs, unstored_seqs, record_us, scraped_from_us, scraped_to_us, decided_us,
          wall_us, has_records, is_signed)
), next AS (
  SELECT g.*, e.received + g.stored AS received, e.lost + g.unstored - g.stored AS lost, clock.delay_us, clock.moved_us,
         CASE WHEN g.sealed_at > e.last_batch_at AND abs(clock.moved_us - e.clock_moved_us) > 1000000 THEN clock.delay_us
              ELSE least(clock.delay_us, e.delay_us + greatest(0, extract(epoch FROM g.sealed_at - e.last_batch_at) * 500)::int8) END AS least_delay_us
  FROM given g
  JOIN store.epoch e ON e.node_id = g.node_id AND e.epoch = g.epoch,
       LATERAL (SELECT (extract(epoch FROM now() - g.sealed_at) * 1000000)::int8 AS delay_us, g.wall_us - g.sealed_us AS moved_us) AS clock
), acked AS (
  SELECT *, store.acked_seq(received, lost) AS acked_seq FROM next
)
UPDATE store.epoch e SET
  received = a.received,
  lost = a.lost,
  ack_generation = greatest(e.ack_generation, a.ack_generation),
  last_seq = greatest(e.last_seq, a.last),
  last_batch_seq = greatest(e.last_batch_seq, a.last),
  last_batch_at = CASE WHEN a.last >= e.last_batch_seq THEN greatest(e.last_batch_at, a.sealed_at) ELSE e.last_batch_at END,
  last_record_at = greatest(e.last_record_at, timestamptz 'epoch' + a.record_us * interval '1 microsecond'),
  complete_through = CASE
    WHEN a.last >= e.last_batch_seq AND a.acked_seq >= a.last THEN greatest(e.complete_through, e.last_batch_at, a.sealed_at)
    WHEN a.acked_seq >= e.last_batch_seq THEN greatest(e.complete_through, e.last_batch_at)
    WHEN a.acked_seq >= a.last THEN greatest(e.complete_through, a.sealed_at)
    ELSE e.complete_through END,
  kubelet_seen_from = least(e.kubelet_seen_from, timestamptz 'epoch' + a.scraped_from_us * interval '1 microsecond'),
  kubelet_seen_to = greatest(e.kubelet_seen_to, timestamptz 'epoch' + a.scraped_to_us * interval '1 microsecond'),
  decided_through = greatest(e.decided_through, timestamptz 'epoch' + a.decided_us * interval '1 microsecond'),
  delay_us = a.least_delay_us,
  clock_moved_us = CASE WHEN a.sealed_at < e.last_batch_at THEN e.clock_moved_us ELSE a.moved_us END,
  last_seen = greatest(CASE WHEN e.delay_us IS NOT NULL THEN e.last_seen END, a.sealed_at + a.least_delay_us * interval '1 microsecond'),
  last_stored_at = now(),
  last_new_at = CASE WHEN a.has_records THEN now() ELSE e.last_new_at END,
  is_attributed = e.is_attributed AND a.is_signed,
  -- The agent came back after it was given up.
  closed_at = CASE WHEN e.close_cause = 'abandoned' THEN NULL ELSE e.closed_at END,
  close_cause = nullif(e.close_cause, 'abandoned')
FROM acked a
WHERE e.node_id = a.node_id AND e.epoch = a.epoch
RETURNING e.node_id, a.acked_seq, e.ack_generation
