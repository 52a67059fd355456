-- What has been waited for long enough. $1 cluster_id, $2 the most
SELECT node_id, finding_id, sample, reads,
       (extract(epoch FROM unshown_at - latest_at) * 1000)::float8 AS behind_ms
FROM store.impact_watch
WHERE cluster_id = $1::int2 AND expires_at <= now()
ORDER BY expires_at LIMIT $2::int4
