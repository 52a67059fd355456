-- The gaps of an epoch's stream, and an event that was received within each. Times are microseconds since the epoch began.
-- $1 node_id, $2 epoch, $3 context_ids, $4 up to seq, $5 start of the epoch in microseconds since 1970
SELECT g.gap_id::text AS gap_id, g.cause, (extract(epoch FROM g.from_at) * 1000000)::float8 - $5::float8 AS from_at,
       (extract(epoch FROM g.to_at) * 1000000)::float8 - $5::float8 AS to_at,
       (extract(epoch FROM v.received_at) * 1000000)::float8 - $5::float8 AS event_inside
FROM store.gap g
LEFT JOIN LATERAL (
  SELECT v.received_at
  FROM store.container_event v
  WHERE v.node_id = g.node_id AND v.context_id = ANY ($3::int4[]) AND v.seq <= $4
    AND v.received_at > g.from_at AND v.received_at < coalesce(g.to_at, 'infinity')
    AND v.day BETWEEN (g.from_at AT TIME ZONE 'UTC')::date AND coalesce((g.to_at AT TIME ZONE 'UTC')::date, 'infinity')
  LIMIT 1
) v ON true
WHERE g.node_id = $1 AND g.epoch = $2 AND g.scope = 'stream'
ORDER BY g.from_at
