-- The epochs of a cluster that have records in a period. $1 cluster, $2 node or null for all, $3 from, $4 to
-- complete_to: the last seq up to which every record is stored.
SELECT e.node_id, n.name AS node, e.epoch::text AS epoch, (extract(epoch FROM e.started_at) * 1000000)::float8 AS started_us,
       coalesce((SELECT upper(r) - 1 FROM unnest(e.received) AS r WHERE r @> 1), 0) AS complete_to, e.last_seq
FROM store.epoch e
JOIN store.node n ON n.node_id = e.node_id
JOIN store.cluster c ON c.cluster_id = e.cluster_id
WHERE c.name = $1 AND ($2::text IS NULL OR n.name = $2) AND e.started_at < $4 AND coalesce(e.last_record_at, e.started_at) >= $3
ORDER BY n.name, e.incarnation
