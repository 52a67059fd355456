-- Times are microseconds since the epoch began. $1 node_id, $2 context_id, $3 after seq, $4 up to seq, $5 start of the epoch and
-- $6 earliest end, both in microseconds since 1970, $7 how many rows
SELECT r.seq, (extract(epoch FROM r.ended_at) * 1000000)::float8 - $5::float8 AS ended, r.span_us AS span,
       (extract(epoch FROM r.wall_at) * 1000000)::float8 AS wall, r.lists
FROM store.relist_minute r
WHERE r.node_id = $1 AND r.context_id = $2 AND r.seq > $3 AND r.seq <= $4
  AND r.ended_at >= timestamptz 'epoch' + $6::float8 * interval '1 microsecond'
  AND r.day >= ((timestamptz 'epoch' + $6::float8 * interval '1 microsecond') AT TIME ZONE 'UTC')::date - 1
ORDER BY r.seq LIMIT $7
