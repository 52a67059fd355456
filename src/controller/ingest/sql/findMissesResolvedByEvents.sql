-- Misses that the events of a batch take back, each with the earliest of them: the runtime announced it after all, to another
-- life of the node's agent. A life takes back its own misses itself, so only those of other lives are looked at.
--
-- An event is after a miss where it was received after the end of the miss's window. It need not be after the verdict, which
-- falls `--confirm` (30 s) later, in a life that was there all the time: by so much the clocks of two lives may disagree, each
-- of which counts from a base of its own. Whether the event is replayed, the second of its kind, or found to be spurious later
-- makes no difference, as in one life. What is resolved already is told again only where this event is earlier.
--
-- Most nodes have no miss at all: that is asked first. OFFSET 0 keeps each event on the index of the misses (finding_missed),
-- whatever else was found on the node.
-- $1 node_id, $2 epoch, $3 first day of the misses (since 1970), then arrays of the events: container_id, event_type, at
-- (microseconds since 1970)
SELECT f.finding_id::text AS finding, min(u.at)::text AS at
FROM unnest($4::text[], $5::text[], $6::int8[]) AS u (container_id, event_type, at)
CROSS JOIN LATERAL (SELECT timestamptz 'epoch' + u.at * interval '1 microsecond' AS at) AS t
CROSS JOIN LATERAL (
  SELECT f.finding_id
  FROM store.finding f
  JOIN store.context x ON x.ctx_id = f.ctx_id AND x.epoch <> $2::uuid
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
