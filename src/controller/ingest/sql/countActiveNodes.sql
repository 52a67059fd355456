-- $1 cluster_id. Nodes that were heard within the hour.
SELECT count(*)::int4 AS nodes FROM store.node WHERE cluster_id = $1 AND last_seen > now() - interval '1 hour'
