-- Watches that have expired. $1 cluster_id, $2 limit
SELECT node_id, finding_id, sample, reads,
       (extract(epoch FROM stale_read_at - latest_at) * 1000)::float8 AS behind_ms
FROM store.status_lag_watch
WHERE cluster_id = $1::int2 AND expires_at <= now()
ORDER BY expires_at LIMIT $2::int4
