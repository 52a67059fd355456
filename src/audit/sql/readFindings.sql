-- Times are microseconds since the epoch began. $1 node_id, $2 context_id, $3 after seq, $4 up to seq, $5 start of the epoch and
-- $6 earliest detection, both in microseconds since 1970, $7 how many rows
SELECT f.seq, f.finding_id, (extract(epoch FROM f.detected_at) * 1000000)::float8 - $5::float8 AS at,
       f.kind, f.event_type, f.cause, f.container_id,
       (extract(epoch FROM f.window_from) * 1000000)::float8 - $5::float8 AS window_from,
       (extract(epoch FROM f.window_to) * 1000000)::float8 - $5::float8 AS window_to, f.proof,
       (SELECT (extract(epoch FROM min(u.at)) * 1000000)::float8 - $5::float8 FROM store.finding_update u
        WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved') AS resolved
FROM store.finding f
WHERE f.node_id = $1 AND f.context_id = $2 AND f.seq > $3 AND f.seq <= $4
  AND f.detected_at >= timestamptz 'epoch' + $6::float8 * interval '1 microsecond'
  AND f.day >= ((timestamptz 'epoch' + $6::float8 * interval '1 microsecond') AT TIME ZONE 'UTC')::date - 1
ORDER BY f.seq LIMIT $7
