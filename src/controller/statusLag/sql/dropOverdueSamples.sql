-- Deletes samples that could not be read in time: their lag would only measure our own load. $1 cluster_id, $2 ms
DELETE FROM store.status_lag_watch
WHERE cluster_id = $1::int2 AND sample AND due_at < now() - $2::int4 * interval '1 millisecond'
