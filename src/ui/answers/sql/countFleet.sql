-- The clusters named $1, null for all, with their nodes, and the clock of the database.
SELECT c.name, count(n.node_id)::int4 AS nodes, to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS now
FROM store.cluster c
LEFT JOIN (
  SELECT n.cluster_id, n.node_id FROM store.node n LEFT JOIN store.report r ON r.node_id = n.node_id WHERE r.node_deleted_at IS NULL
) n ON n.cluster_id = c.cluster_id
WHERE ($1::text[] IS NULL OR c.name = ANY ($1))
GROUP BY c.name
ORDER BY c.name COLLATE "C";
