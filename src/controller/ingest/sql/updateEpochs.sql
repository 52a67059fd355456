-- Applies batches to their epochs, one batch to each. Returns the acked seqs, which may be published once this is committed.
-- Arrays: $1 node_id, $2 epoch, $3 ack_generation, $4 last, $5 when the batch was sealed (microseconds since 1970), $6 stored and $7 unstored
-- seqs as multiranges, $8 time of the latest stored record or null, $9 and $10 times of the first and the last stored scrape or null,
-- $11 the latest time up to which a stored minute says that everything is decided, or null,
-- $12 the wall clock of the node when the batch was sealed (microseconds since 1970), $13 whether it has records, $14 whether the
-- node signed it, and of the head of its record chain, null where none is to be stored: $15 the seq that the chain begins at, $16 when its last record was
-- (microseconds since the epoch began), $17 digests and signature, $18 a hint for each record of the batch; and what the agent knows if everything
-- until this batch is stored, null where it says nothing: $19 up to when everything is decided, $20 the time of the last scrape
--
-- When its agent ran is known on the clock of the epoch. The shortest delay of its batches is the best that is known of how that relates to
-- the database's: a batch that waited has a longer one. It grows by 500 ppm, for which the two may drift apart, and what was
-- known is void once the clocks of the node moved against each other, as when one of them was set.
WITH given AS (
  SELECT u.*, u.stored_seqs::int4multirange AS stored, u.unstored_seqs::int4multirange AS unstored,
         timestamptz 'epoch' + u.sealed_us * interval '1 microsecond' AS sealed_at
  FROM unnest($1::int4[], $2::uuid[], $3::int4[], $4::int4[], $5::int8[], $6::text[], $7::text[], $8::int8[], $9::int8[], $10::int8[],
              $11::int8[], $12::int8[], $13::bool[], $14::bool[], $15::int4[], $16::int8[], $17::bytea[], $18::bytea[], $19::int8[], $20::int8[])
    AS u (node_id, epoch, ack_generation, last, sealed_us, stored_seqs, unstored_seqs, record_us, scraped_from_us, scraped_to_us, decided_us,
          wall_us, has_records, is_signed, head_from, head_us, head, hints, said_decided_us, said_scraped_us)
), next AS (
  SELECT g.*, e.cluster_id, e.head_seq AS old_seq, e.head_from AS old_from, e.head_us AS old_us, e.head AS old_head, e.head_hints AS old_hints, h.*, e.received + g.stored AS received, e.lost + g.unstored - g.stored AS lost, clock.delay_us, clock.moved_us,
         CASE WHEN g.sealed_at > e.last_batch_at AND abs(clock.moved_us - e.clock_moved_us) > 1000000 THEN clock.delay_us
              ELSE least(clock.delay_us, e.delay_us + greatest(0, extract(epoch FROM g.sealed_at - e.last_batch_at) * 500)::int8) END AS least_delay_us
  FROM given g
  JOIN store.epoch e ON e.node_id = g.node_id AND e.epoch = g.epoch,
       LATERAL (SELECT (extract(epoch FROM now() - g.sealed_at) * 1000000)::int8 AS delay_us, g.wall_us - g.sealed_us AS moved_us) AS clock,
       LATERAL (
         SELECT g.head IS NOT NULL AND g.last > coalesce(e.head_seq, 0) AS is_latest_head,
                g.head IS NOT NULL AND e.head_from IS NOT NULL AND g.head_from <> e.head_from AS is_other_chain,
                g.head IS NOT NULL AND g.last > e.head_seq AND (g.last - e.head_kept_seq >= 256
                  OR date_trunc('hour', e.head_kept_at, 'UTC') < date_trunc('hour', now(), 'UTC')) AS is_kept_head,
                CASE WHEN g.head_from = e.head_from AND g.last - octet_length(g.hints) = e.head_seq THEN e.head_hints ELSE '' END || g.hints
                  AS all_hints) AS h
), kept AS (
  -- If two chains meet, the last head of the earlier one is kept too.
  INSERT INTO store.signed_head (node_id, epoch, seq, from_seq, cluster_id, record_us, head, hints)
  SELECT node_id, epoch, last, head_from, cluster_id, head_us, head, all_hints FROM next WHERE is_kept_head OR (is_other_chain AND NOT is_latest_head)
  UNION ALL
  SELECT node_id, epoch, old_seq, old_from, cluster_id, old_us, old_head, old_hints FROM next WHERE is_other_chain AND is_latest_head
  ON CONFLICT DO NOTHING
), acked AS (
  SELECT n.*, CASE WHEN n.acked_seq >= n.last THEN n.said_decided_us END AS known_decided_us,
         CASE WHEN n.acked_seq >= n.last THEN n.said_scraped_us END AS known_scraped_us
  FROM (SELECT *, store.acked_seq(received, lost) AS acked_seq FROM next) n
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
  kubelet_seen_to = greatest(e.kubelet_seen_to, timestamptz 'epoch' + greatest(a.scraped_to_us, a.known_scraped_us) * interval '1 microsecond'),
  decided_through = greatest(e.decided_through, timestamptz 'epoch' + greatest(a.decided_us, a.known_decided_us) * interval '1 microsecond'),
  delay_us = a.least_delay_us,
  clock_moved_us = CASE WHEN a.sealed_at < e.last_batch_at THEN e.clock_moved_us ELSE a.moved_us END,
  last_seen = greatest(CASE WHEN e.delay_us IS NOT NULL THEN e.last_seen END, a.sealed_at + a.least_delay_us * interval '1 microsecond'),
  last_stored_at = now(),
  last_new_at = CASE WHEN a.has_records THEN now() ELSE e.last_new_at END,
  is_attributed = e.is_attributed AND a.is_signed,
  head_seq = CASE WHEN a.is_latest_head THEN a.last ELSE e.head_seq END,
  head_from = CASE WHEN a.is_latest_head THEN a.head_from ELSE e.head_from END,
  head_us = CASE WHEN a.is_latest_head THEN a.head_us ELSE e.head_us END,
  head = CASE WHEN a.is_latest_head THEN a.head ELSE e.head END,
  head_hints = CASE WHEN a.is_kept_head THEN '' WHEN a.is_latest_head THEN a.all_hints ELSE e.head_hints END,
  head_kept_seq = CASE WHEN a.is_kept_head THEN a.last WHEN a.head IS NOT NULL THEN coalesce(e.head_kept_seq, 0) ELSE e.head_kept_seq END,
  head_kept_at = CASE WHEN a.is_kept_head THEN now() WHEN a.head IS NOT NULL THEN coalesce(e.head_kept_at, now()) ELSE e.head_kept_at END,
  -- The agent came back after it was given up.
  closed_at = CASE WHEN e.close_cause = 'abandoned' THEN NULL ELSE e.closed_at END,
  close_cause = nullif(e.close_cause, 'abandoned')
FROM acked a
WHERE e.node_id = a.node_id AND e.epoch = a.epoch
RETURNING e.node_id, a.acked_seq, e.ack_generation
