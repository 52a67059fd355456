-- The subscriptions of the node $2 of the cluster $1 that lasted within $3 to $4, the latest $5, these first.
SELECT to_char(s.opened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "openedAt",
       to_char(s.armed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "armedAt",
       to_char(s.closed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "closedAt",
       s.code, s.message, s.events::float8 AS events, s.replayed::float8 AS replayed
FROM plegwatch.stream_sessions s
WHERE s.cluster = $1 AND s.node = $2 AND s.opened_at <= $4 AND coalesce(s.closed_at, 'infinity') >= $3
ORDER BY s.opened_at DESC
LIMIT $5;
