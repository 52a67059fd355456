-- Adds those of the Nodes named $2 that are not in the store yet to cluster $1. It is a statement of its own because policies do not see rows
-- of a node that the same statement adds.
WITH confirmed AS (
  -- An agent may have named it before the cluster's Nodes were listed.
  UPDATE store.node SET claimed_at = NULL WHERE cluster_id = $1 AND name = ANY ($2::text[]) AND claimed_at IS NOT NULL
)
INSERT INTO store.node (cluster_id, name)
SELECT $1::int2, asked.name FROM unnest($2::text[]) AS asked (name)
WHERE NOT EXISTS (SELECT FROM store.node n WHERE n.cluster_id = $1 AND n.name = asked.name)
ON CONFLICT (cluster_id, name) DO NOTHING;
