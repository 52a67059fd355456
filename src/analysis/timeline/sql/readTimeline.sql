-- What happened on the node $2 of the cluster $1 from $3 to $4.
DECLARE entries NO SCROLL CURSOR FOR
SELECT to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at,
       to_char(t.until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS until,
       t.kind, t.what, t.pod, t.container, t.container_id, t.detail, t.epoch, t.seq
FROM plegwatch.timeline($1, $2, $3, $4) AS t;
