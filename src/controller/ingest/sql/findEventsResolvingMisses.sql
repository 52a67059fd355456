-- The rule of findMissesResolvedByEvents.sql where the event was stored first: misses of a batch that stored events of other
-- epochs resolve, each with the earliest such event.
--
-- Events have no index by container, which would cost more than it saves, so the events of an epoch are scanned. Only epochs that
-- have a record after the earliest of these misses are scanned: none, unless the misses come from a backlog.
-- $1 node_id, $2 epoch, then arrays of the misses: finding_id, container_key, event type (the number), end of the window
-- (microseconds since 1970); $7 the earliest of these ends, $8 its day (since 1970)
WITH later AS MATERIALIZED (
  SELECT x.context_id
  FROM store.epoch e
  JOIN store.context x ON x.node_id = e.node_id AND x.epoch = e.epoch
  WHERE e.node_id = $1::int4 AND e.epoch <> $2::uuid
    AND e.last_record_at > timestamptz 'epoch' + $7::int8 * interval '1 microsecond'
)
SELECT u.finding_id::text AS finding_id, (extract(epoch FROM min(e.received_at)) * 1000000)::int8::text AS at
FROM later l
JOIN store.container_event e ON e.node_id = $1::int4 AND e.context_id = l.context_id AND e.day >= date '1970-01-01' + $8::int4
  AND e.container_key = ANY ($4::int8[])
JOIN unnest($3::uuid[], $4::int8[], $5::int4[], $6::int8[]) AS u (finding_id, container_key, event_type, to_us)
  ON u.container_key = e.container_key AND u.event_type = e.flags & 255
    AND e.received_at > timestamptz 'epoch' + u.to_us * interval '1 microsecond'
WHERE NOT EXISTS (
  SELECT FROM store.finding_update r
  WHERE r.node_id = $1::int4 AND r.finding_id = u.finding_id AND r.what = 'resolved' AND r.at <= e.received_at
    AND r.day >= date '1970-01-01' + $8::int4)
GROUP BY u.finding_id
