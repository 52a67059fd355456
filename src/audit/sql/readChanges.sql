-- Times are microseconds since the epoch began. $1 node_id, $2 context_id, $3 after seq, $4 up to seq, $5 start of the epoch and
-- $6 earliest end, both in microseconds since 1970, $7 how many rows
SELECT h.seq, (extract(epoch FROM h.window_from) * 1000000)::float8 - $5::float8 AS window_from,
       (extract(epoch FROM h.window_to) * 1000000)::float8 - $5::float8 AS window_to, h.states, h.container_key AS key, h.day
FROM store.relist_change h
WHERE h.node_id = $1 AND h.context_id = $2 AND h.seq > $3 AND h.seq <= $4
  AND h.window_to >= timestamptz 'epoch' + $6::float8 * interval '1 microsecond'
  AND h.day >= ((timestamptz 'epoch' + $6::float8 * interval '1 microsecond') AT TIME ZONE 'UTC')::date - 1
ORDER BY h.seq LIMIT $7
