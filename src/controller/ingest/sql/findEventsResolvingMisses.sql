-- The rule of findMissesResolvedByEvents.sql where the event was stored first: misses of a batch that stored events of other
-- epochs resolve, each with the earliest such event.
--
-- Events have no index by container, which would cost more than it saves, so the events of an epoch are scanned. Only epochs that
-- have a record after the earliest of these misses are scanned: none, unless the misses come from a backlog.
-- Misses and events of a container are sorted together, so that the work does not grow with their product.
-- $1 node_id, $2 epoch, then arrays of the misses: finding_id, container_key, event type (the number), end of the window
-- (microseconds since 1970); $7 the earliest of these ends, $8 its day (since 1970)
WITH later AS MATERIALIZED (
  SELECT x.context_id
  FROM store.epoch e
  JOIN store.context x ON x.node_id = e.node_id AND x.epoch = e.epoch
  WHERE e.node_id = $1::int4 AND e.epoch <> $2::uuid
    AND e.last_record_at > timestamptz 'epoch' + $7::int8 * interval '1 microsecond'
), moment AS (
  SELECT e.container_key, e.flags & 255 AS event_type, e.received_at AS at, e.received_at, NULL::uuid AS finding_id
  FROM later l
  JOIN store.container_event e ON e.node_id = $1::int4 AND e.context_id = l.context_id AND e.day >= date '1970-01-01' + $8::int4
    AND e.container_key = ANY ($4::int8[])
  UNION ALL
  SELECT u.container_key, u.event_type, timestamptz 'epoch' + u.to_us * interval '1 microsecond', NULL, u.finding_id
  FROM unnest($3::uuid[], $4::int8[], $5::int4[], $6::int8[]) AS u (finding_id, container_key, event_type, to_us)
), resolved AS (
  SELECT finding_id, min(received_at) OVER (
           PARTITION BY container_key, event_type ORDER BY at DESC, received_at NULLS FIRST ROWS UNBOUNDED PRECEDING) AS at
  FROM moment
)
SELECT u.finding_id, (extract(epoch FROM min(u.at)) * 1000000)::float8 AS at
FROM resolved u
WHERE u.finding_id IS NOT NULL AND u.at IS NOT NULL AND (
  SELECT true FROM store.finding_update r
  WHERE r.node_id = $1::int4 AND r.finding_id = u.finding_id AND r.what = 'resolved' AND r.at <= u.at
    AND r.day >= date '1970-01-01' + $8::int4
  LIMIT 1) IS NULL
GROUP BY u.finding_id
