-- The PLEG-related changes of the condition Ready of the node $1 from $2 to $3, at most $4.
SELECT to_char(k.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at, k.status, k.reason, k.message
FROM store.node_condition k
WHERE k.node_id = $1 AND k.day BETWEEN ($2::timestamptz AT TIME ZONE 'UTC')::date AND ($3::timestamptz AT TIME ZONE 'UTC')::date
  AND k.at BETWEEN $2 AND $3
ORDER BY k.at
LIMIT $4;
