-- Questions of docs/how-to/questions.md, asked of a lake through Spark 4. Run after spark-views.sql. The lengths of
-- intervals are reckoned here, because a file has that at the export where an interval has not ended.

-- Which kubelets fell back this week, when, and what broke the stream?
SELECT cluster, node, not_before, from_at, reason, our_stream_ended_with, message, runtime_name, runtime_version
FROM fallback_intervals
WHERE from_at > now() - INTERVAL 8 DAYS
ORDER BY cluster, node, from_at;

-- Which kubelets fell back in 30 days, and what proves it?
SELECT m.cluster, m.node, m.not_before, m.at, m.from_mode, m.to_mode, m.reason, m.kubelet_version,
       CAST(get_json_object(m.proof, '$.before.errors') AS DOUBLE) AS errors_before,
       CAST(get_json_object(m.proof, '$.after.errors') AS DOUBLE) AS errors_after,
       CAST(numeric_of(60 * CAST(get_json_object(m.proof, '$.before.relists') AS DOUBLE) / nullif(
         unix_micros(CAST(get_json_object(m.proof, '$.before.at') AS TIMESTAMP)) / 1e6D
           - CAST(get_json_object(m.proof, '$.before.process_start') AS DOUBLE), 0)) AS DECIMAL(20, 1)) AS relists_per_minute_before,
       k.relists_per_minute_after, s.code AS our_stream_ended_with, s.message, s.closed_at, s.runtime_name, s.runtime_version
FROM mode_changes m
LEFT JOIN LATERAL (
  SELECT CAST(numeric_of(60000 / avg(k.relist_period_ms)) AS DECIMAL(20, 1)) AS relists_per_minute_after
  FROM kubelet_minutes k
  WHERE k.cluster = m.cluster AND k.node = m.node AND k.day BETWEEN CAST(m.at AS DATE) - 1 AND CAST(m.at AS DATE) + 1
    AND k.counted_to > m.at AND k.counted_from < m.at + INTERVAL 15 MINUTES
) k
LEFT JOIN LATERAL (
  SELECT * FROM stream_sessions s
  WHERE s.cluster = m.cluster AND s.node = m.node AND m.from_mode <> 'Unknown'
    AND s.closed_at BETWEEN m.not_before - INTERVAL 5 MINUTES AND m.at + INTERVAL 10 SECONDS
  ORDER BY s.closed_at DESC LIMIT 1
) s
WHERE m.to_mode IN ('Fallback', 'HintDisabled') AND m.at > now() - INTERVAL 30 DAYS
ORDER BY m.at DESC, m.cluster, m.node;

-- Which mode was each kubelet in at a past moment, and since when?
SELECT cluster, node, to_mode AS mode, reason, at AS since, kubelet_version
FROM (
  SELECT *, row_number() OVER (PARTITION BY cluster, node ORDER BY at DESC, seq DESC NULLS FIRST) AS place
  FROM mode_changes
  WHERE at <= now() - INTERVAL 1 MINUTE
)
WHERE place = 1
ORDER BY cluster, node;

-- How many hours did each node spend in fallback in the last 30 days?
SELECT cluster, node, count(*) AS fallbacks,
       CAST(numeric_of(sum(unix_micros(coalesce(to_at, now())) - unix_micros(from_at)) / 3.6e9D) AS DECIMAL(20, 1)) AS hours
FROM fallback_intervals
WHERE from_at > now() - INTERVAL 30 DAYS
GROUP BY cluster, node
ORDER BY 4 DESC, cluster, node;

-- Which pods stayed wrong after a fallback?
SELECT f.cluster, f.node, f.kubelet_version, f.from_at AS fell_back_at, l.pod_namespace, l.pod_name, l.container_name, l.event_type, l.happened_at,
       rint(l.lag_min_ms / 1000) AS wrong_for_s, l.lag_max_ms IS NULL AS never_shown
FROM fallback_intervals f
JOIN (
  SELECT cluster, node, pod_namespace, pod_name, container_name, container_id, event_type, happened_at, lag_min_ms, lag_max_ms
  FROM status_lags WHERE kind = 'fallback' AND lag_reason IS NULL
  UNION ALL
  SELECT cluster, node, pod_namespace, pod_name, container_name, container_id, event_type, coalesce(occurred_at, window_to, detected_at),
         lag_min_ms, lag_max_ms
  FROM findings WHERE lag_min_ms IS NOT NULL OR lag_reason = 'timed_out'
) l ON l.cluster = f.cluster AND l.node = f.node AND l.happened_at >= f.not_before AND (f.to_at IS NULL OR l.happened_at < f.to_at)
WHERE f.consequence = 'wrong_until_restart' AND f.from_at > now() - INTERVAL 8 DAYS AND (l.lag_min_ms > 30000 OR l.lag_min_ms IS NULL)
  AND EXISTS (
    SELECT 1 FROM container_events e
    WHERE e.cluster = f.cluster AND e.node = f.node AND e.container_id = l.container_id AND e.event_type = 'STARTED' AND e.received_at < f.from_at)
ORDER BY f.cluster, f.node, l.happened_at;

-- Which broken streams cost a fallback?
SELECT s.cluster, s.node, s.closed_at, s.code, s.runtime_name, s.runtime_version, f.from_at AS fell_back_at,
       (unix_micros(coalesce(f.to_at, now())) - unix_micros(f.from_at)) / 3.6e9D AS hours
FROM stream_sessions s
LEFT JOIN fallback_intervals f ON f.cluster = s.cluster AND f.node = s.node
  AND f.from_at BETWEEN s.closed_at - INTERVAL 10 SECONDS AND s.closed_at + INTERVAL 5 MINUTES
WHERE s.closed_at > now() - INTERVAL 8 DAYS
ORDER BY s.cluster, s.node, s.closed_at;

-- How much work does Evented PLEG save the kubelet here?
SELECT k.cluster, f.node IS NOT NULL AS in_fallback, CAST(numeric_of(sum(k.counted_ms) / 3.6e6D) AS DECIMAL(20, 0)) AS hours,
       CAST(numeric_of(60000 * sum(k.relists) / sum(k.counted_ms)) AS DECIMAL(20, 2)) AS relists_per_minute,
       CAST(numeric_of(avg(k.cpu_share)) AS DECIMAL(20, 4)) AS kubelet_cpu_share
FROM kubelet_hours k
LEFT JOIN fallback_intervals f ON f.cluster = k.cluster AND f.node = k.node AND k.hour + INTERVAL 1 HOURS > f.from_at
  AND (f.to_at IS NULL OR k.hour < f.to_at)
WHERE k.day BETWEEN current_date() - 7 AND current_date() - 1 AND k.counted_ms > 0
  AND (f.node IS NULL OR k.hour >= f.from_at AND (f.to_at IS NULL OR k.hour + INTERVAL 1 HOURS <= f.to_at))
GROUP BY k.cluster, f.node IS NOT NULL
ORDER BY k.cluster, in_fallback;

-- Which events were missed: which pod, which container, when, and with what proof?
SELECT cluster, node, event_type, pod_namespace, pod_name, container_name, window_from, occurred_at, window_to, cause, finding_id
FROM findings
WHERE kind = 'missed' AND resolved_at IS NULL AND detected_at > now() - INTERVAL 8 DAYS
ORDER BY cluster, node, detected_at;

-- Which findings resolved late, and how late is late?
SELECT cluster, count(*) AS resolved, quantile_of(sort_array(collect_list((unix_micros(resolved_at) - unix_micros(detected_at)) / 1e6D)), 0.5) AS median_s,
       CAST(max(unix_micros(resolved_at) - unix_micros(detected_at)) / 1e6D AS DECIMAL(18, 6)) AS longest_s
FROM findings
WHERE kind = 'missed' AND resolved_at IS NOT NULL AND detected_at > now() - INTERVAL 8 DAYS
GROUP BY cluster
ORDER BY cluster;

-- When was a stream starved?
SELECT f.cluster, f.node, f.runtime_name, f.runtime_version, f.window_from AS starved_from, f.starved_to,
       count(m.finding_id) AS missed_meanwhile, count(m.finding_id) FILTER (WHERE m.resolved_at IS NULL) AS of_these_lost
FROM (
  SELECT f.*, coalesce(f.resolved_at, e.ended_at) AS starved_to
  FROM findings f
  LEFT JOIN epochs e ON e.cluster = f.cluster AND e.node = f.node AND e.epoch = f.epoch
  WHERE f.kind = 'silent_stream' AND f.cause = 'starved' AND f.detected_at > now() - INTERVAL 30 DAYS
) f
LEFT JOIN findings m ON m.cluster = f.cluster AND m.node = f.node AND m.kind = 'missed'
  AND get_json_object(m.proof, '$.hint') = 'stream_starved'
  AND m.window_from >= f.window_from AND m.detected_at <= coalesce(f.starved_to, now())
GROUP BY f.cluster, f.node, f.runtime_name, f.runtime_version, f.window_from, f.starved_to, f.detected_at, f.finding_id
ORDER BY f.detected_at DESC;

-- What does a runtime never announce?
SELECT cluster, runtime_name, runtime_version, event_type,
       CASE WHEN is_sandbox THEN 'sandbox' ELSE 'container' END AS of_a, count(DISTINCT node) AS nodes
FROM findings
WHERE kind = 'unannounced' AND cause = 'never_sent'
GROUP BY cluster, runtime_name, runtime_version, event_type, of_a
ORDER BY cluster, runtime_name NULLS LAST, runtime_version NULLS LAST, of_a, event_type;

-- How does the rate of misses differ by runtime and kubelet version?
SELECT cluster, runtime_name, runtime_version, kubelet_version, nodes, decided, missed,
       CAST(numeric_of(1e6D * missed / nullif(decided, 0)) AS DECIMAL(20, 0)) AS per_million,
       CAST(numeric_of(1e6D * wilson_low(missed, decided)) AS DECIMAL(20, 0)) AS low,
       CAST(numeric_of(1e6D * wilson_high(missed, decided)) AS DECIMAL(20, 0)) AS high
FROM miss_rate(current_date() - 7, current_date(), NULL)
ORDER BY cluster, runtime_name NULLS LAST, runtime_version NULLS LAST, kubelet_version NULLS LAST;

-- Does it depend on the pool, zone or kernel?
SELECT cluster, label AS pool, sum(nodes) AS nodes, sum(decided) AS decided, sum(missed) AS missed,
       CAST(numeric_of(1e6D * wilson_low(sum(missed), sum(decided))) AS DECIMAL(20, 0)) AS low_per_million,
       CAST(numeric_of(1e6D * wilson_high(sum(missed), sum(decided))) AS DECIMAL(20, 0)) AS high_per_million
FROM miss_rate(current_date() - 7, current_date(), 'pool')
GROUP BY cluster, label
ORDER BY cluster, label NULLS LAST;

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

-- Which containers lived too briefly for any list, and how many a day?
SELECT cluster, CAST(detected_at AS DATE) AS day, count(*) AS short_lives, CAST(numeric_of(avg(chance_min)) AS DECIMAL(20, 3)) AS chance_min,
       CAST(numeric_of(avg(chance_max)) AS DECIMAL(20, 3)) AS chance_max
FROM short_lives
WHERE detected_at > now() - INTERVAL 8 DAYS
GROUP BY cluster, CAST(detected_at AS DATE)
ORDER BY cluster, day;

-- How often did STOPPED come before STARTED?
SELECT cluster, runtime_name, runtime_version, count(*) AS containers, count(*) FILTER (WHERE stopped < started) AS stopped_first,
       min(stopped) FILTER (WHERE stopped < started) AS first_at
FROM (
  SELECT cluster, node, container_id, runtime_name, runtime_version, min(received_at) FILTER (WHERE event_type = 'STARTED') AS started,
         min(received_at) FILTER (WHERE event_type = 'STOPPED') AS stopped
  FROM container_events
  WHERE day = current_date() - 1 AND event_type IN ('STARTED', 'STOPPED') AND NOT is_sandbox AND NOT replayed
  GROUP BY cluster, node, container_id, runtime_name, runtime_version
) container
WHERE started IS NOT NULL AND stopped IS NOT NULL
GROUP BY cluster, runtime_name, runtime_version
ORDER BY cluster, runtime_name NULLS LAST, runtime_version NULLS LAST;

-- Where does a container's status contradict a list or an event?
SELECT cluster, runtime_name, runtime_version, kind, cause, count(*) AS findings, count(DISTINCT node) AS nodes, min(detected_at) AS first_at,
       min(struct(detected_at, finding_id)).finding_id AS example
FROM findings
WHERE detected_at > now() - INTERVAL 8 DAYS
  AND (kind IN ('regression', 'spurious', 'stale', 'out_of_order') OR cause IN ('runtime_state_late', 'contradicted', 'listed_again'))
GROUP BY cluster, runtime_name, runtime_version, kind, cause
ORDER BY cluster, findings DESC, runtime_name NULLS LAST, runtime_version NULLS LAST, kind, cause NULLS LAST;

-- Where did two containers of one name run at once?
SELECT cluster, node, pod_namespace, pod_name, container_name, window_from, window_to, finding_id
FROM findings
WHERE kind = 'duplicate_container' AND detected_at > now() - INTERVAL 8 DAYS
ORDER BY cluster, node, window_from NULLS LAST;

-- How long was the published status behind, and was that more than is ordinary there?
SELECT cluster, node, count(*) AS missed, min(lag_min_ms) AS shortest_lag_ms, max(lag_max_ms) AS longest_lag_ms,
       count(*) FILTER (WHERE lag_anomalous) AS more_than_ordinary
FROM findings
WHERE kind = 'missed' AND detected_at > now() - INTERVAL 8 DAYS
GROUP BY cluster, node
ORDER BY cluster, node;

-- How much later do statuses come with EventedPLEG on?
SELECT l.cluster, coalesce(m.to_mode, 'Unknown') AS mode, l.event_type, count(*) AS statuses,
       quantile_of(sort_array(collect_list(l.lag_min_ms)), 0.5) AS p50_at_least_ms,
       quantile_of(sort_array(collect_list(l.lag_max_ms)), 0.5) AS p50_at_most_ms,
       quantile_of(sort_array(collect_list(l.lag_max_ms)), 0.99) AS p99_at_most_ms
FROM status_lags l
LEFT JOIN (
  SELECT cluster, node, to_mode, at, lead(not_before) OVER (PARTITION BY cluster, node ORDER BY at, seq NULLS LAST) AS until FROM mode_changes
) m ON m.cluster = l.cluster AND m.node = l.node AND l.at >= m.at AND (m.until IS NULL OR l.at < m.until)
WHERE l.at > now() - INTERVAL 2 DAYS OR l.kind = 'fallback'
GROUP BY l.cluster, coalesce(m.to_mode, 'Unknown'), l.event_type
ORDER BY l.cluster, mode, l.event_type;

-- What did the kubelet know, and when: noticed late, or published late?
SELECT cluster, node,
       CASE WHEN kubelet_at_least_ms >= 10000 THEN 'noticed late' WHEN publishing_min_ms >= 10000 THEN 'published late'
            WHEN kubelet_at_most_ms < 10000 THEN 'noticed in time' ELSE 'not known' END AS verdict,
       count(*) AS changes, rint(min(kubelet_at_least_ms)) AS kubelet_at_least_ms, rint(max(kubelet_at_most_ms)) AS kubelet_at_most_ms,
       rint(min(publishing_min_ms)) AS publishing_min_ms, rint(max(publishing_max_ms)) AS publishing_max_ms
FROM findings
WHERE kind IN ('missed', 'kubelet_late') AND kubelet_knew <> 'not_observed' AND detected_at > now() - INTERVAL 8 DAYS
GROUP BY cluster, node, verdict
ORDER BY cluster, node, verdict;

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
ORDER BY cluster, kubelet_version NULLS LAST, mode, event_type;

-- Which containers were OOMKilled or failed, and was the stop announced?
SELECT cluster, node, coalesce(occurred_at, window_to) AS at, pod_namespace, pod_name, container_name,
       get_json_object(proof, '$.exactTimes.exitCode') AS exit_code, get_json_object(proof, '$.exactTimes.reason') AS exit_reason, false AS announced
FROM findings
WHERE kind = 'missed' AND event_type = 'STOPPED' AND resolved_at IS NULL AND detected_at > now() - INTERVAL 8 DAYS
  AND get_json_object(proof, '$.exactTimes.reason') NOT IN ('', 'Completed')
UNION ALL
SELECT cluster, node, received_at, pod_namespace, pod_name, container_name, CAST(exit_code AS STRING), exit_reason, true
FROM container_events
WHERE event_type = 'STOPPED' AND exit_reason <> 'Completed' AND day > current_date() - 8
ORDER BY cluster, node, at NULLS LAST;

-- PLEG was not healthy: was it a container, the runtime, the kubelet or the node?
SELECT cluster, node, kind, from_at, to_at, verdict, pod_namespace, pod_name, container_name, why
FROM pleg_verdicts
WHERE day >= current_date() - 8
ORDER BY cluster, node, from_at, kind;

-- Was the node short of CPU, memory or disk time when PLEG was slow?
SELECT cluster, node, kind, from_at, verdict, CAST(numeric_of(cpu_some) AS DECIMAL(20, 2)) AS cpu_some,
       CAST(numeric_of(io_some) AS DECIMAL(20, 2)) AS io_some,
       CAST(numeric_of(io_full) AS DECIMAL(20, 2)) AS io_full,
       CAST(numeric_of(memory_some) AS DECIMAL(20, 2)) AS memory_some,
       CAST(numeric_of(memory_full) AS DECIMAL(20, 2)) AS memory_full
FROM pleg_verdicts
WHERE day >= current_date() - 8
ORDER BY cluster, node, from_at, kind;

-- When did a Node say that PLEG is not healthy?
SELECT cluster, node, at, status, reason, message, pleg_seen_ago_ms, threshold_ms
FROM node_conditions
WHERE at > now() - INTERVAL 8 DAYS
ORDER BY cluster, node, at;

-- Which Nodes were not Ready, for how long, and why?
SELECT cluster, node, from_at, to_at,
       CAST(numeric_of((unix_micros(coalesce(to_at, now())) - unix_micros(from_at)) / 6e7D) AS DECIMAL(20, 1)) AS minutes,
       status, reason, causes
FROM not_ready_intervals
WHERE from_at > now() - INTERVAL 8 DAYS
ORDER BY cluster, node, from_at;

-- Does the kubelet wait for lists, sandbox statuses or container statuses, and for how many?
SELECT cluster, node, sum(relist_ms) AS relist_ms, sum(sandbox_list_ms) AS sandbox_list_ms, sum(container_list_ms) AS container_list_ms,
       sum(sandbox_statuses) AS sandbox_statuses, sum(sandbox_status_ms) AS sandbox_status_ms,
       sum(container_statuses) AS container_statuses, sum(container_status_ms) AS container_status_ms,
       sum(sandbox_list_errors + container_list_errors + sandbox_status_errors + container_status_errors) AS errors
FROM kubelet_hours
WHERE day >= current_date() - 7
GROUP BY cluster, node
ORDER BY relist_ms DESC NULLS FIRST, cluster, node
LIMIT 4;

-- Which pod makes the relist hang?
SELECT cluster, node, pod_namespace, pod_name, container_name, count(*) AS minutes, min(at) AS first_at,
       bool_or(timed_out) AS timed_out, max(status_ms) AS longest_ms, sum(slow) AS slow, sum(asked) AS asked, max(longest_relist_ms) AS longest_relist_ms
FROM status_checks
WHERE day >= current_date() - 7 AND status_checks.slow > 0 AND list_call IS NULL
GROUP BY cluster, node, pod_uid, pod_namespace, pod_name, container_name
ORDER BY minutes DESC, cluster, node, pod_namespace NULLS LAST, pod_name NULLS LAST, container_name NULLS LAST
LIMIT 20;

-- Which container's lock hangs the list?
SELECT cluster, node, list_call, from_at, to_at, verdict, pod_namespace, pod_name, container_name, asked, quick, unanswered
FROM list_hangs
WHERE from_at > now() - INTERVAL 8 DAYS
ORDER BY cluster, node, from_at;

-- How slow are lists?
SELECT cluster, node, hour, relists, errors, hist_quantile(hist, 0.5) AS p50_ms, hist_quantile(hist, 0.99) AS p99_ms, max_ms
FROM (
  SELECT cluster, node, hour, sum(relists) AS relists, sum(errors) AS errors, array(
           coalesce(sum(get(hist, 0)), 0), coalesce(sum(get(hist, 1)), 0), coalesce(sum(get(hist, 2)), 0), coalesce(sum(get(hist, 3)), 0),
           coalesce(sum(get(hist, 4)), 0), coalesce(sum(get(hist, 5)), 0), coalesce(sum(get(hist, 6)), 0), coalesce(sum(get(hist, 7)), 0),
           coalesce(sum(get(hist, 8)), 0), coalesce(sum(get(hist, 9)), 0), coalesce(sum(get(hist, 10)), 0), coalesce(sum(get(hist, 11)), 0),
           coalesce(sum(get(hist, 12)), 0), coalesce(sum(get(hist, 13)), 0), coalesce(sum(get(hist, 14)), 0), coalesce(sum(get(hist, 15)), 0),
           coalesce(sum(get(hist, 16)), 0), coalesce(sum(get(hist, 17)), 0), coalesce(sum(get(hist, 18)), 0), coalesce(sum(get(hist, 19)), 0),
           coalesce(sum(get(hist, 20)), 0), coalesce(sum(get(hist, 21)), 0), coalesce(sum(get(hist, 22)), 0), coalesce(sum(get(hist, 23)), 0)) AS hist,
         max(max_ms) AS max_ms
  FROM relist_hours
  WHERE hour > now() - INTERVAL 24 HOURS
  GROUP BY cluster, node, hour
)
ORDER BY p99_ms DESC NULLS LAST, cluster, node, hour
LIMIT 20;

-- How does the latency of relists grow with the number of containers?
SELECT cluster, containers_from, minutes, CAST(numeric_of(hist_quantile(hist, 0.5)) AS DECIMAL(20, 1)) AS p50_ms,
       CAST(numeric_of(hist_quantile(hist, 0.99)) AS DECIMAL(20, 1)) AS p99_ms
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
SELECT cluster, node, CAST(numeric_of(mib) AS DECIMAL(20, 1)) AS mib, CAST(numeric_of(mib_a_day) AS DECIMAL(20, 1)) AS mib_a_day,
       CASE WHEN mib_a_day > 0.1 THEN CAST(numeric_of((16 - mib) / mib_a_day) AS DECIMAL(20, 0)) END AS days_left, containers, exited_containers
FROM list
WHERE mib > 4
ORDER BY mib DESC, cluster, node
LIMIT 20;

-- How did latency change with the upgrade of the kubelet?
SELECT cluster, kubelet_version, since, until, CAST(numeric_of(hist_quantile(hist, 0.5)) AS DECIMAL(20, 1)) AS p50_ms,
       CAST(numeric_of(hist_quantile(hist, 0.99)) AS DECIMAL(20, 1)) AS p99_ms, max_ms
FROM (
  SELECT cluster, kubelet_version, min(hour) AS since, max(hour) + INTERVAL 1 HOURS AS until,
         array(
           coalesce(sum(get(hist, 0)), 0), coalesce(sum(get(hist, 1)), 0), coalesce(sum(get(hist, 2)), 0), coalesce(sum(get(hist, 3)), 0),
           coalesce(sum(get(hist, 4)), 0), coalesce(sum(get(hist, 5)), 0), coalesce(sum(get(hist, 6)), 0), coalesce(sum(get(hist, 7)), 0),
           coalesce(sum(get(hist, 8)), 0), coalesce(sum(get(hist, 9)), 0), coalesce(sum(get(hist, 10)), 0), coalesce(sum(get(hist, 11)), 0),
           coalesce(sum(get(hist, 12)), 0), coalesce(sum(get(hist, 13)), 0), coalesce(sum(get(hist, 14)), 0), coalesce(sum(get(hist, 15)), 0),
           coalesce(sum(get(hist, 16)), 0), coalesce(sum(get(hist, 17)), 0), coalesce(sum(get(hist, 18)), 0), coalesce(sum(get(hist, 19)), 0),
           coalesce(sum(get(hist, 20)), 0), coalesce(sum(get(hist, 21)), 0), coalesce(sum(get(hist, 22)), 0), coalesce(sum(get(hist, 23)), 0)) AS hist,
         max(max_ms) AS max_ms
  FROM relist_hours
  WHERE day BETWEEN current_date() - 7 AND current_date() - 1
  GROUP BY cluster, kubelet_version
)
ORDER BY cluster, kubelet_version NULLS LAST;

-- How did latency develop over a quarter?
SELECT cluster, week, relists, CAST(numeric_of(hist_quantile(hist, 0.99)) AS DECIMAL(20, 1)) AS p99_ms, max_ms
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

-- Which alerts would have fired last week with a threshold of one second?
SELECT cluster, node, count(*) AS minutes, min(minute) AS first, max(minute) AS last, max(max_ms) AS max_ms
FROM relist_minutes
WHERE day >= current_date() - 7 AND max_ms > 1000 AND p99_ms > 1000
GROUP BY cluster, node
ORDER BY cluster, node;

-- Which namespaces churn most?
SELECT cluster, pod_namespace, count(*) AS started, count(DISTINCT pod_name) AS pods
FROM container_events
WHERE day = current_date() - 1 AND event_type = 'STARTED' AND NOT is_sandbox
GROUP BY cluster, pod_namespace
ORDER BY cluster, started DESC;

-- Which Nodes changed their kernel, system or pool, and when?
SELECT cluster, node, from_at AS changed_at, kernel_before, kernel_version, get_json_object(labels_before, "$['pool']") AS pool_before,
       get_json_object(labels, "$['pool']") AS pool
FROM (
  SELECT *, lag(kernel_version) OVER of_node AS kernel_before, lag(labels) OVER of_node AS labels_before
  FROM node_info WINDOW of_node AS (PARTITION BY cluster, node ORDER BY from_at)
) change
WHERE from_at > now() - INTERVAL 8 DAYS AND labels_before IS NOT NULL
ORDER BY cluster, node, from_at;

-- How complete is the evidence, by cluster and day?
SELECT cluster, day, nodes, nodes_without_minutes, CAST(numeric_of(listed_share) AS DECIMAL(20, 3)) AS listed,
       CAST(numeric_of(stream_share) AS DECIMAL(20, 3)) AS streamed, CAST(numeric_of(decided_share) AS DECIMAL(20, 3)) AS decided, records_lost
FROM evidence_completeness(current_date() - 7, current_date() - 1, NULL)
ORDER BY cluster, day;

-- In which pools is the evidence incomplete?
SELECT cluster, label AS pool, day, nodes, CAST(numeric_of(stream_share) AS DECIMAL(20, 3)) AS streamed,
       CAST(numeric_of(decided_share) AS DECIMAL(20, 3)) AS decided
FROM evidence_completeness(current_date() - 7, current_date() - 1, 'pool')
WHERE stream_share < 0.99
ORDER BY cluster, pool NULLS LAST, day;

-- What is missing from the evidence itself?
SELECT cluster, node, scope, cause, from_at, to_at, records, epoch, from_seq, to_seq
FROM gaps
WHERE coalesce(to_at, now()) > now() - INTERVAL 24 HOURS AND filled_at IS NULL
ORDER BY from_at DESC, cluster, node, scope;
