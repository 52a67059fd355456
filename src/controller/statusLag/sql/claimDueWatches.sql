-- Takes what is due to be read, what was announced last, and keeps others from it for a while. `now` is this clock at the moment.
-- $1 cluster_id, $2 the most, $3 ms for which it is ours
WITH due AS (
  SELECT node_id, finding_id FROM store.impact_watch
  WHERE cluster_id = $1::int2 AND due_at <= now() AND expires_at > now()
  ORDER BY sample, due_at LIMIT $2::int4 FOR UPDATE SKIP LOCKED
)
UPDATE store.impact_watch w SET due_at = now() + $3::int4 * interval '1 millisecond'
FROM due WHERE w.node_id = due.node_id AND w.finding_id = due.finding_id
RETURNING w.node_id, w.finding_id, w.sample, w.event_type, w.container_id, w.pod_uid, w.pod_namespace, w.pod_name, w.container_name,
          w.attempt::float8 AS attempt, w.reads, w.seen_pod, w.seen_id,
          (extract(epoch FROM w.latest_at) * 1000000)::float8 AS latest,
          (extract(epoch FROM w.earliest_at) * 1000000)::float8 AS earliest,
          (extract(epoch FROM w.unshown_at) * 1000000)::float8 AS unshown,
          (extract(epoch FROM w.arrived_at) * 1000000)::float8 AS arrived,
          (extract(epoch FROM clock_timestamp()) * 1000000)::float8 AS now
