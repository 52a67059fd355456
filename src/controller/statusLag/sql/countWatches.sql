-- Watches of a cluster. $1 cluster_id
SELECT count(*) FILTER (WHERE NOT sample)::int4 AS overdue, count(*) FILTER (WHERE sample)::int4 AS samples
FROM store.status_lag_watch WHERE cluster_id = $1::int2
