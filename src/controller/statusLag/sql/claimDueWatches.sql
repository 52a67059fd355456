-- Claims watches that are due to be read, samples last, and keeps other controllers from them for a while.
-- `now` is the database's clock at that moment.
-- $1 cluster_id, $2 limit, $3 how long the claim holds, in ms
WITH due AS (
  SELECT node_id, finding_id FROM store.status_lag_watch
  WHERE cluster_id = $1::int2 AND due_at <= now() AND expires_at > now()
  ORDER BY kind = 'sample', due_at LIMIT $2::int4 FOR UPDATE SKIP LOCKED
)
UPDATE store.status_lag_watch w SET due_at = now() + $3::int4 * interval '1 millisecond'
FROM due WHERE w.node_id = due.node_id AND w.finding_id = due.finding_id
RETURNING w.node_id, w.finding_id, w.event_type, w.container_id, w.pod_uid, w.pod_namespace, w.pod_name, w.container_name,
          w.attempt, w.reads, w.pod_matched, w.container_matched,
          (extract(epoch FROM w.latest_at) * 1000000)::float8 AS latest,
          (extract(epoch FROM w.earliest_at) * 1000000)::float8 AS earliest,
          (extract(epoch FROM w.stale_read_at) * 1000000)::float8 AS stale_read,
          (extract(epoch FROM w.arrived_at) * 1000000)::float8 AS arrived,
          (extract(epoch FROM clock_timestamp()) * 1000000)::float8 AS now
