-- Ends a watch with a lag, or with the reason why there is none. Only the transaction that deletes the watch records the result.
-- lag_anomalous: lag_min exceeds the 99th percentile of lag_max over the node's announced transitions of the last 24 hours. Not recorded
-- with too few samples.
-- $1 node_id, $2 finding_id, $3 lag_min ms, $4 lag_max ms, $5 reason, $6 how many samples are required
WITH ended AS (
  DELETE FROM store.status_lag_watch WHERE node_id = $1::int4 AND finding_id = $2::uuid
  RETURNING node_id, cluster_id, finding_id, kind, event_type, latest_at, container_id, pod_namespace, pod_name, container_name
), sampled AS (
  SELECT count(*) AS samples,
         percentile_disc(0.99) WITHIN GROUP (ORDER BY coalesce(l.lag_max_ms, 'Infinity')) AS p99_ms
  FROM store.status_lag l WHERE l.node_id = $1::int4 AND l.at > now() - interval '24 hours' AND l.container_id IS NULL
), inserted AS (
  INSERT INTO store.status_lag (node_id, cluster_id, at, event_type, lag_min_ms, lag_max_ms)
  SELECT node_id, cluster_id, now(), event_type, $3::float8, $4::float8 FROM ended WHERE kind = 'sample' AND $3::float8 IS NOT NULL
), followed AS (
  INSERT INTO store.status_lag (node_id, cluster_id, at, event_type, lag_min_ms, lag_max_ms, happened_at, lag_reason, container_id, pod_namespace,
                                pod_name, container_name)
  SELECT node_id, cluster_id, now(), event_type, $3::float8, $4::float8, latest_at, $5::text, container_id, pod_namespace, pod_name, container_name
  FROM ended WHERE kind = 'fallback'
)
INSERT INTO store.finding_update (finding_id, node_id, cluster_id, day, what, at, value_ms, note)
SELECT e.finding_id, e.node_id, e.cluster_id, (now() AT TIME ZONE 'UTC')::date, v.what, now(), v.value_ms, v.note
FROM ended e CROSS JOIN sampled s
CROSS JOIN LATERAL (VALUES
  ('lag_min', $3::float8, NULL),
  ('lag_max', $4::float8, NULL),
  ('lag_anomalous', CASE WHEN s.samples >= $6::int4 THEN ($3::float8 > s.p99_ms)::int4 END::float8, NULL),
  ('lag_reason', NULL, $5::text)
) AS v (what, value_ms, note)
WHERE e.kind = 'overdue' AND (v.value_ms IS NOT NULL OR v.note IS NOT NULL)
ON CONFLICT DO NOTHING
