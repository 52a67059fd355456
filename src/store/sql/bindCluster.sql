-- Binds a cluster to its UID unless it is bound, and returns the one that it is bound to. No row is returned while another transaction binds
-- it. $1 cluster_id, $2 uid
WITH bound AS (
  UPDATE store.cluster SET uid = $2 WHERE cluster_id = $1 AND uid IS NULL RETURNING uid
)
SELECT uid FROM bound
UNION ALL
SELECT uid FROM store.cluster WHERE cluster_id = $1 AND uid IS NOT NULL
