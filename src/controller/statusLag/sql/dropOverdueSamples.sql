-- Samples that could not be read in time would only say how busy we are. $1 cluster_id, $2 ms
DELETE FROM store.impact_watch
WHERE cluster_id = $1::int2 AND sample AND due_at < now() - $2::int4 * interval '1 millisecond'
