-- Stored misses that the events of a batch resolve, each with the earliest such event: the runtime announced the transition
-- after all, to another incarnation of the node's agent. An incarnation resolves its own misses, so only those of others count.
--
-- An event resolves a miss if it was received after the end of the miss's window. It need not be after the detection, which is
-- `--missed-after` (30 s) later: the clocks of two incarnations, each of which counts from its own start, may differ by that much.
-- Whether the event is replayed, the second of its type, or later found to be spurious makes no difference, as within one
-- incarnation. A miss that is already resolved is returned only where this event is earlier.
--
-- Most nodes have no miss at all, so that is checked first. The limits keep each kind of event on the index of the misses (finding_missed),
-- however many other findings the node has, and bound the work however many misses of one container an agent has sent.
-- $1 node_id, $2 epoch, $3 first day of the misses (since 1970), then arrays of the events: container_id, event_type,
-- received_at (microseconds since 1970)
WITH given AS (
  SELECT u.container_id, u.event_type, array_agg(t.at) AS received, max(t.at) AS last
  FROM unnest($4::text[], $5::text[], $6::int8[]) AS u (container_id, event_type, us)
  CROSS JOIN LATERAL (SELECT timestamptz 'epoch' + u.us * interval '1 microsecond' AS at) AS t
  GROUP BY u.container_id, u.event_type
), candidate AS (
  SELECT f.finding_id, (SELECT min(r) FROM unnest(g.received) AS r WHERE r > f.window_end) AS at
  FROM given g
  CROSS JOIN LATERAL (
    SELECT f.finding_id, coalesce(f.window_to, f.detected_at) AS window_end
    FROM store.finding f
    JOIN store.context x ON x.context_id = f.context_id AND x.epoch <> $2::uuid
    WHERE f.node_id = $1::int4 AND f.kind = 'missed' AND f.day >= date '1970-01-01' + $3::int4
      AND f.container_id = g.container_id AND f.event_type = g.event_type AND coalesce(f.window_to, f.detected_at) < g.last
    ORDER BY f.detected_at DESC LIMIT 1000
  ) AS f
  WHERE EXISTS (
    SELECT FROM store.finding f
    WHERE f.node_id = $1::int4 AND f.kind = 'missed' AND f.day >= date '1970-01-01' + $3::int4)
  LIMIT 10000
)
SELECT c.finding_id, (extract(epoch FROM c.at) * 1000000)::float8 AS at
FROM candidate c
-- Not NOT EXISTS: that may compare every candidate with every resolution of the node.
WHERE c.at IS NOT NULL AND (
  SELECT true FROM store.finding_update r
  WHERE r.node_id = $1::int4 AND r.finding_id = c.finding_id AND r.what = 'resolved' AND r.at <= c.at
    AND r.day >= date '1970-01-01' + $3::int4
  LIMIT 1) IS NULL
