-- The gaps of the node $2 of the cluster $1 that lasted within $3 to $4, the latest $5, these first.
SELECT g.scope, g.cause, to_char(g.from_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "from",
       to_char(g.to_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "to",
       to_char(g.filled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "filledAt"
FROM plegwatch.gaps g
WHERE g.cluster = $1 AND g.node = $2 AND g.from_at <= $4 AND coalesce(g.to_at, 'infinity') >= $3
ORDER BY g.from_at DESC
LIMIT $5;
