-- Nodes that reported within the last hour. $1 cluster_id
SELECT count(*)::int4 AS nodes FROM store.node WHERE cluster_id = $1 AND last_seen > now() - interval '1 hour'
