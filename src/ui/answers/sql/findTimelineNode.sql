-- The node $2 of the cluster $1, when there was evidence of it, and the clock of the database.
SELECT n.node_id AS "nodeId",
       to_char(n.first_seen AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "firstSeen",
       to_char(n.last_seen AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "lastSeen",
       to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS now
FROM store.node n JOIN store.cluster c ON c.cluster_id = n.cluster_id
WHERE c.name = $1 AND n.name = $2;
