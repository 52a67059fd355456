-- The nodes of the clusters $1, null for all, and when there was evidence of them.
SELECT n.cluster, n.node,
       to_char(n.first_seen AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS first_seen,
       to_char(n.last_seen AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS last_seen
FROM plegwatch.nodes n
WHERE ($1::text[] IS NULL OR n.cluster = ANY ($1))
ORDER BY n.cluster COLLATE "C", n.node COLLATE "C";
