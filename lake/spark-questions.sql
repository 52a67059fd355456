-- Questions of docs/how-to/questions.md, asked of a lake through Spark 4. Run after spark-views.sql.

-- Which events were missed: which pod, which container, when, and with what proof?
SELECT cluster, node, event_type, pod_namespace, pod_name, container_name, window_from, occurred_at, window_to, cause, finding_id
FROM findings
WHERE kind = 'missed' AND resolved_at IS NULL AND detected_at > now() - INTERVAL 8 DAYS
ORDER BY cluster, node, detected_at;

-- Which findings resolved late, and how late is late?
SELECT cluster, count(*) AS resolved, percentile((unix_micros(resolved_at) - unix_micros(detected_at)) / 1e6D, 0.5) AS median_s,
       CAST(max(unix_micros(resolved_at) - unix_micros(detected_at)) / 1e6D AS DECIMAL(18, 6)) AS longest_s
FROM findings
WHERE kind = 'missed' AND resolved_at IS NOT NULL AND detected_at > now() - INTERVAL 8 DAYS
GROUP BY cluster
ORDER BY cluster;

-- What did the kubelet discard, and what was not delivered?
SELECT k.cluster, k.node, k.discarded AS discarded_by_kubelet, count(f.finding_id) AS not_delivered_to_agent
FROM (
  SELECT cluster, node, sum(discarded) AS discarded FROM kubelet_hours
  WHERE day >= current_date() - 7 GROUP BY cluster, node
) k
LEFT JOIN findings f ON f.cluster = k.cluster AND f.node = k.node AND f.kind = 'missed' AND f.resolved_at IS NULL
  AND f.detected_at > now() - INTERVAL 8 DAYS
GROUP BY k.cluster, k.node, k.discarded
ORDER BY k.cluster, k.node;

-- Which pods can have lost events to the kubelet's full channel?
SELECT k.cluster, k.node, k.counted_from, k.counted_to, k.discarded, count(DISTINCT h.pod_uid) AS pods,
       CASE WHEN count(h.pod_name) > 0 THEN array_sort(collect_set(h.pod_namespace || '/' || h.pod_name)) END AS pod_names
FROM kubelet_minutes k
LEFT JOIN relist_changes h ON h.cluster = k.cluster AND h.node = k.node AND h.day BETWEEN k.day - 1 AND k.day + 1
  AND size(h.pleg_events) > 0 AND h.window_from <= k.counted_to
  AND unix_micros(h.window_to) >= unix_micros(k.counted_from) - CAST(round(coalesce(k.relist_period_ms, 0) * 1000) AS BIGINT)
WHERE k.day >= current_date() - 7 AND k.discarded > 0
GROUP BY k.cluster, k.node, k.counted_from, k.counted_to, k.discarded
ORDER BY k.cluster, k.node, k.counted_from;

-- How often did STOPPED come before STARTED?
SELECT cluster, runtime_name, runtime_version, count(*) AS containers, count(*) FILTER (WHERE stopped < started) AS stopped_first,
       min(stopped) FILTER (WHERE stopped < started) AS first_at
FROM (
  SELECT cluster, node, container_id, runtime_name, runtime_version, min(received_at) FILTER (WHERE event_type = 'STARTED') AS started,
         min(received_at) FILTER (WHERE event_type = 'STOPPED') AS stopped
  FROM container_events
  WHERE day >= current_date() - 7 AND event_type IN ('STARTED', 'STOPPED') AND NOT is_sandbox AND NOT replayed
  GROUP BY cluster, node, container_id, runtime_name, runtime_version
) container
WHERE started IS NOT NULL AND stopped IS NOT NULL
GROUP BY cluster, runtime_name, runtime_version
ORDER BY cluster, runtime_name, runtime_version;

-- How long was the published status behind, and was that more than is ordinary there?
SELECT cluster, node, count(*) AS missed, min(lag_min_ms) AS shortest_lag_ms, max(lag_max_ms) AS longest_lag_ms,
       count(*) FILTER (WHERE lag_anomalous) AS more_than_ordinary
FROM findings
WHERE kind = 'missed' AND detected_at > now() - INTERVAL 8 DAYS
GROUP BY cluster, node
ORDER BY cluster, node;

-- How late does the kubelet notice starts and stops, by mode and version?
SELECT cluster, kubelet_version, mode, event_type, transitions,
       kubelet_lag_bound(hist_bucket(hist, 0.5)) AS p50_at_most_ms, kubelet_lag_bound(hist_bucket(hist, 0.99)) AS p99_at_most_ms
FROM (
  SELECT cluster, kubelet_version, mode, event_type, sum(transitions) AS transitions, array(
           coalesce(sum(get(hist, 0)), 0), coalesce(sum(get(hist, 1)), 0), coalesce(sum(get(hist, 2)), 0), coalesce(sum(get(hist, 3)), 0),
           coalesce(sum(get(hist, 4)), 0), coalesce(sum(get(hist, 5)), 0), coalesce(sum(get(hist, 6)), 0), coalesce(sum(get(hist, 7)), 0),
           coalesce(sum(get(hist, 8)), 0), coalesce(sum(get(hist, 9)), 0), coalesce(sum(get(hist, 10)), 0), coalesce(sum(get(hist, 11)), 0),
           coalesce(sum(get(hist, 12)), 0), coalesce(sum(get(hist, 13)), 0), coalesce(sum(get(hist, 14)), 0), coalesce(sum(get(hist, 15)), 0),
           coalesce(sum(get(hist, 16)), 0), coalesce(sum(get(hist, 17)), 0), coalesce(sum(get(hist, 18)), 0), coalesce(sum(get(hist, 19)), 0),
           coalesce(sum(get(hist, 20)), 0), coalesce(sum(get(hist, 21)), 0), coalesce(sum(get(hist, 22)), 0), coalesce(sum(get(hist, 23)), 0)) AS hist
  FROM kubelet_lag_hours
  WHERE mode <> 'Unknown' AND day BETWEEN current_date() - 7 AND current_date() - 1
  GROUP BY cluster, kubelet_version, mode, event_type
)
ORDER BY cluster, kubelet_version, mode, event_type;

-- Which Nodes were not Ready, for how long, and why?
SELECT cluster, node, from_at, to_at, round(numeric_of(minutes), 1) AS minutes, status, reason, causes
FROM not_ready_intervals
WHERE from_at > now() - INTERVAL 8 DAYS
ORDER BY cluster, node, from_at;

-- How does the latency of relists grow with the number of containers?
SELECT cluster, containers_from, minutes, round(numeric_of(hist_quantile(hist, 0.5)), 1) AS p50_ms,
       round(numeric_of(hist_quantile(hist, 0.99)), 1) AS p99_ms
FROM (
  SELECT cluster, CAST(containers div 10 * 10 AS INT) AS containers_from, sum(minutes) AS minutes, array(
           coalesce(sum(get(hist, 0)), 0), coalesce(sum(get(hist, 1)), 0), coalesce(sum(get(hist, 2)), 0), coalesce(sum(get(hist, 3)), 0),
           coalesce(sum(get(hist, 4)), 0), coalesce(sum(get(hist, 5)), 0), coalesce(sum(get(hist, 6)), 0), coalesce(sum(get(hist, 7)), 0),
           coalesce(sum(get(hist, 8)), 0), coalesce(sum(get(hist, 9)), 0), coalesce(sum(get(hist, 10)), 0), coalesce(sum(get(hist, 11)), 0),
           coalesce(sum(get(hist, 12)), 0), coalesce(sum(get(hist, 13)), 0), coalesce(sum(get(hist, 14)), 0), coalesce(sum(get(hist, 15)), 0),
           coalesce(sum(get(hist, 16)), 0), coalesce(sum(get(hist, 17)), 0), coalesce(sum(get(hist, 18)), 0), coalesce(sum(get(hist, 19)), 0),
           coalesce(sum(get(hist, 20)), 0), coalesce(sum(get(hist, 21)), 0), coalesce(sum(get(hist, 22)), 0), coalesce(sum(get(hist, 23)), 0)) AS hist
  FROM relist_hours
  WHERE day = current_date() - 1
  GROUP BY cluster, containers div 10
)
ORDER BY cluster, containers_from;

-- Which node nears the limit of a list, and how many exited containers does it keep?
WITH list AS (
  SELECT cluster, node, max(greatest(sandbox_list_bytes, container_list_bytes)) / 1048576 AS mib,
         regr_slope(greatest(sandbox_list_bytes, container_list_bytes), unix_micros(hour) / 1e6D) * 86400 / 1048576 AS mib_a_day,
         max(containers) AS containers, max(exited_containers) AS exited_containers
  FROM relist_hours
  WHERE day >= current_date() - 7
  GROUP BY cluster, node
)
SELECT cluster, node, round(numeric_of(mib), 1) AS mib, round(numeric_of(mib_a_day), 1) AS mib_a_day,
       CASE WHEN mib_a_day > 0.1 THEN round(numeric_of((16 - mib) / mib_a_day), 0) END AS days_left, containers, exited_containers
FROM list
WHERE mib > 4
ORDER BY mib DESC, cluster, node
LIMIT 20;

-- How did latency develop over a quarter?
SELECT cluster, week, relists, round(numeric_of(hist_quantile(hist, 0.99)), 1) AS p99_ms, max_ms
FROM (
  SELECT cluster, date_trunc('week', hour) AS week, sum(relists) AS relists, array(
           coalesce(sum(get(hist, 0)), 0), coalesce(sum(get(hist, 1)), 0), coalesce(sum(get(hist, 2)), 0), coalesce(sum(get(hist, 3)), 0),
           coalesce(sum(get(hist, 4)), 0), coalesce(sum(get(hist, 5)), 0), coalesce(sum(get(hist, 6)), 0), coalesce(sum(get(hist, 7)), 0),
           coalesce(sum(get(hist, 8)), 0), coalesce(sum(get(hist, 9)), 0), coalesce(sum(get(hist, 10)), 0), coalesce(sum(get(hist, 11)), 0),
           coalesce(sum(get(hist, 12)), 0), coalesce(sum(get(hist, 13)), 0), coalesce(sum(get(hist, 14)), 0), coalesce(sum(get(hist, 15)), 0),
           coalesce(sum(get(hist, 16)), 0), coalesce(sum(get(hist, 17)), 0), coalesce(sum(get(hist, 18)), 0), coalesce(sum(get(hist, 19)), 0),
           coalesce(sum(get(hist, 20)), 0), coalesce(sum(get(hist, 21)), 0), coalesce(sum(get(hist, 22)), 0), coalesce(sum(get(hist, 23)), 0)) AS hist,
         max(max_ms) AS max_ms
  FROM relist_hours
  WHERE hour > now() - INTERVAL 90 DAYS
  GROUP BY cluster, week
)
ORDER BY cluster, week;

-- Which namespaces churn most?
SELECT cluster, pod_namespace, count(*) AS started, count(DISTINCT pod_name) AS pods
FROM container_events
WHERE day = current_date() - 1 AND event_type = 'STARTED' AND NOT is_sandbox
GROUP BY cluster, pod_namespace
ORDER BY cluster, started DESC;

-- Which Nodes changed their kernel, system or pool, and when?
SELECT cluster, node, from_at AS changed_at, kernel_before, kernel_version, get_json_object(labels_before, '$.pool') AS pool_before, get_json_object(labels, '$.pool') AS pool
FROM (
  SELECT *, lag(kernel_version) OVER of_node AS kernel_before, lag(labels) OVER of_node AS labels_before
  FROM node_info WINDOW of_node AS (PARTITION BY cluster, node ORDER BY from_at)
) change
WHERE from_at > now() - INTERVAL 8 DAYS AND labels_before IS NOT NULL
ORDER BY cluster, node, from_at;
