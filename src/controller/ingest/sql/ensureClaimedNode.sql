-- Adds a node that only an agent says exists, and returns whether the node is known then. No more than $4 such nodes are added in 24 hours: anybody
-- with the agents' Redis user can invent names. Nodes of the cluster, which its controller adds, do not count.
-- $1 cluster_id, $2 name, $3 the limit
WITH known AS (
  SELECT node_id FROM store.node WHERE cluster_id = $1::int2 AND name = $2::text
), made AS (
  INSERT INTO store.node (cluster_id, name, claimed_at)
  SELECT $1::int2, $2::text, now()
  WHERE NOT EXISTS (SELECT FROM known)
    AND (SELECT count(*) FROM store.node WHERE cluster_id = $1::int2 AND claimed_at > now() - interval '1 day') < $3::int4
  ON CONFLICT (cluster_id, name) DO UPDATE SET name = excluded.name
  RETURNING node_id
)
SELECT EXISTS (SELECT FROM known) OR EXISTS (SELECT FROM made) AS is_known
