-- Stored misses that the events of a batch resolve, each with the earliest such event: the runtime announced the transition
-- after all, to another incarnation of the node's agent. An incarnation resolves its own misses, so only those of others count.
--
-- An event resolves a miss if it was received after the end of the miss's window. It need not be after the detection, which is
-- `--missed-after` (30 s) later: the clocks of two incarnations, each of which counts from its own start, may differ by that much.
-- Whether the event is replayed, the second of its type, or later found to be spurious makes no difference, as within one
-- incarnation. A miss that is already resolved is returned only where this event is earlier.
--
-- Most nodes have no miss at all, so that is checked first. OFFSET 0 keeps each event on the index of the misses
-- (finding_missed), however many other findings the node has.
-- $1 node_id, $2 epoch, $3 first day of the misses (since 1970), then arrays of the events: container_id, event_type,
-- received_at (microseconds since 1970)
SELECT f.finding_id::text AS finding_id, min(u.at)::text AS at
FROM unnest($4::text[], $5::text[], $6::int8[]) AS u (container_id, event_type, at)
CROSS JOIN LATERAL (SELECT timestamptz 'epoch' + u.at * interval '1 microsecond' AS at) AS t
CROSS JOIN LATERAL (
  SELECT f.finding_id
  FROM store.finding f
  JOIN store.context x ON x.context_id = f.context_id AND x.epoch <> $2::uuid
  WHERE f.node_id = $1::int4 AND f.kind = 'missed' AND f.day >= date '1970-01-01' + $3::int4
    AND f.container_id = u.container_id AND f.event_type = u.event_type AND coalesce(f.window_to, f.detected_at) < t.at
    AND NOT EXISTS (
      SELECT FROM store.finding_update r
      WHERE r.node_id = $1::int4 AND r.finding_id = f.finding_id AND r.what = 'resolved' AND r.at <= t.at
        AND r.day >= date '1970-01-01' + $3::int4)
  OFFSET 0
) AS f
WHERE EXISTS (
  SELECT FROM store.finding f
  WHERE f.node_id = $1::int4 AND f.kind = 'missed' AND f.day >= date '1970-01-01' + $3::int4)
GROUP BY f.finding_id
