-- What a batch changes about its epoch. Returns the mark that may be told once this is committed.
-- $1 node_id, $2 epoch, $3 round, $4 floor, $5 last, $6 cut (microseconds since 1970), $7 stored and $8 unstored seqs as
-- multiranges, $9 time of the latest stored record or null
WITH next AS (
  SELECT e.received + $7::int4multirange AS received,
         e.lost + $8::int4multirange - $7::int4multirange AS lost,
         timestamptz 'epoch' + $6::int8 * interval '1 microsecond' AS cut_at
  FROM store.epoch e WHERE node_id = $1::int4 AND epoch = $2::uuid
), marked AS (
  SELECT *, store.mark(received, lost) AS mark FROM next
)
UPDATE store.epoch e SET
  received = m.received,
  lost = m.lost,
  round = greatest(e.round, $3::int4),
  floor = greatest(e.floor, $4::int4),
  last_seq = greatest(e.last_seq, $5::int4),
  tail = greatest(e.tail, $5::int4),
  tail_at = CASE WHEN $5::int4 >= e.tail THEN greatest(e.tail_at, m.cut_at) ELSE e.tail_at END,
  last_at = greatest(e.last_at, timestamptz 'epoch' + $9::int8 * interval '1 microsecond'),
  complete_at = CASE
    WHEN $5::int4 >= e.tail AND m.mark >= $5::int4 THEN greatest(e.complete_at, e.tail_at, m.cut_at)
    WHEN m.mark >= e.tail THEN greatest(e.complete_at, e.tail_at)
    WHEN m.mark >= $5::int4 THEN greatest(e.complete_at, m.cut_at)
    ELSE e.complete_at END,
  seen_at = now(),
  -- An agent that was given up and is here after all.
  closed_at = CASE WHEN e.close_cause = 'abandoned' THEN NULL ELSE e.closed_at END,
  close_cause = nullif(e.close_cause, 'abandoned')
FROM marked m
WHERE e.node_id = $1::int4 AND e.epoch = $2::uuid
RETURNING m.mark, e.round
