-- The rule of findMissesResolvedByEvents.sql where the event was stored first: misses of a batch that events of other lives take back, each with
-- the earliest of them.
--
-- Events have no index by id, it would cost more than it serves: those of a life are read from its first on. That is done only
-- for lives that heard anything after the earliest of these misses, which are none unless the misses are a backlog.
-- $1 node_id, $2 epoch, then arrays of the misses: finding_id, obj, type (the number), end of the window (microseconds since
-- 1970), then the earliest of these ends, and $8 its day (since 1970)
WITH later AS MATERIALIZED (
  SELECT x.ctx_id
  FROM store.epoch e
  JOIN store.context x ON x.node_id = e.node_id AND x.epoch = e.epoch
  WHERE e.node_id = $1::int4 AND e.epoch <> $2::uuid
    AND e.last_at > timestamptz 'epoch' + $7::int8 * interval '1 microsecond'
)
SELECT u.finding_id::text AS finding, (extract(epoch FROM min(e.at)) * 1000000)::int8::text AS at
FROM later l
JOIN store.event e ON e.node_id = $1::int4 AND e.ctx_id = l.ctx_id AND e.day >= date '1970-01-01' + $8::int4
  AND e.obj = ANY ($4::int8[])
JOIN unnest($3::uuid[], $4::int8[], $5::int4[], $6::int8[]) AS u (finding_id, obj, type, to_us)
  ON u.obj = e.obj AND u.type = e.bits & 255 AND e.at > timestamptz 'epoch' + u.to_us * interval '1 microsecond'
WHERE NOT EXISTS (
  SELECT FROM store.finding_update r
  WHERE r.node_id = $1::int4 AND r.finding_id = u.finding_id AND r.what = 'resolved' AND r.at <= e.at
    AND r.day >= date '1970-01-01' + $8::int4)
GROUP BY u.finding_id
