-- What the finding $3 of the node $2 of the cluster $1 rests on.
SELECT e.line,
       to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at,
       to_char(e.until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS until,
       e.fact, e.record
FROM plegwatch.finding_evidence e
WHERE e.cluster = $1 AND e.node = $2 AND e.finding_id = $3
ORDER BY e.line, e.at
LIMIT 1000;
