-- Questions of docs/how-to/questions.md, asked of a lake through DuckDB. Run after duckdb-views.sql. The lengths of
-- intervals are reckoned here, because a file has that at the export where an interval has not ended.

-- Which kubelets fell back this week, when, and what broke the stream?
SELECT cluster, node, not_before, from_at, reason, our_stream_ended_with, message, runtime_name, runtime_version
FROM fallback_intervals
WHERE from_at > now() - INTERVAL 8 DAY
ORDER BY cluster, node, from_at;

-- Which kubelets fell back in 30 days, and what proves it?
SELECT m.cluster, m.node, m.not_before, m."at", m.from_mode, m.to_mode, m.reason, m.kubelet_version,
       (m.proof ->> '$.before.errors')::DOUBLE AS errors_before, (m.proof ->> '$.after.errors')::DOUBLE AS errors_after,
       round_as_numeric(60 * (m.proof ->> '$.before.relists')::DOUBLE / nullif(
         epoch((m.proof ->> '$.before.at')::TIMESTAMPTZ) - (m.proof ->> '$.before.process_start')::DOUBLE, 0), 1) AS relists_per_minute_before,
       k.relists_per_minute_after, s.code AS our_stream_ended_with, s.message, s.closed_at, s.runtime_name, s.runtime_version
FROM mode_changes m
LEFT JOIN LATERAL (
  SELECT round_as_numeric(60000 / avg(k.relist_period_ms), 1) AS relists_per_minute_after
  FROM kubelet_minutes k
  WHERE k.cluster = m.cluster AND k.node = m.node AND k.day BETWEEN m."at"::DATE - 1 AND m."at"::DATE + 1
    AND k.counted_to > m."at" AND k.counted_from < m."at" + INTERVAL 15 MINUTE
) k ON true
LEFT JOIN LATERAL (
  SELECT * FROM stream_sessions s
  WHERE s.cluster = m.cluster AND s.node = m.node AND m.from_mode <> 'Unknown'
    AND s.closed_at BETWEEN m.not_before - INTERVAL 5 MINUTE AND m."at" + INTERVAL 10 SECOND
  ORDER BY s.closed_at DESC LIMIT 1
) s ON true
WHERE m.to_mode IN ('Fallback', 'HintDisabled') AND m."at" > now() - INTERVAL 30 DAY
ORDER BY m."at" DESC, m.cluster, m.node;

-- Which mode was each kubelet in at a past moment, and since when?
SELECT DISTINCT ON (cluster, node) cluster, node, to_mode AS mode, reason, "at" AS since, kubelet_version
FROM mode_changes
WHERE "at" <= now() - INTERVAL 1 MINUTE
ORDER BY cluster, node, "at" DESC, seq DESC;

-- How many hours did each node spend in fallback in the last 30 days?
SELECT cluster, node, count(*) AS fallbacks, round_as_numeric(sum(epoch(coalesce(to_at, now()) - from_at)) / 3600, 1) AS hours
FROM fallback_intervals
WHERE from_at > now() - INTERVAL 30 DAY
GROUP BY cluster, node
ORDER BY 4 DESC, cluster, node;

-- Which pods stayed wrong after a fallback?
SELECT f.cluster, f.node, f.kubelet_version, f.from_at AS fell_back_at, l.pod_namespace, l.pod_name, l.container_name, l.event_type, l.happened_at,
       round_even(l.lag_min_ms / 1000, 0) AS wrong_for_s, l.lag_max_ms IS NULL AS never_shown
FROM fallback_intervals f
JOIN (
  SELECT cluster, node, pod_namespace, pod_name, container_name, container_id, event_type, happened_at, lag_min_ms, lag_max_ms
  FROM status_lags WHERE kind = 'fallback' AND lag_reason IS NULL
  UNION ALL
  SELECT cluster, node, pod_namespace, pod_name, container_name, container_id, event_type, coalesce(occurred_at, window_to, detected_at),
         lag_min_ms, lag_max_ms
  FROM findings WHERE lag_min_ms IS NOT NULL OR lag_reason = 'timed_out'
) l ON l.cluster = f.cluster AND l.node = f.node AND l.happened_at >= f.not_before AND (f.to_at IS NULL OR l.happened_at < f.to_at)
WHERE f.consequence = 'wrong_until_restart' AND f.from_at > now() - INTERVAL 8 DAY AND (l.lag_min_ms > 30000 OR l.lag_min_ms IS NULL)
  AND EXISTS (
    SELECT 1 FROM container_events e
    WHERE e.cluster = f.cluster AND e.node = f.node AND e.container_id = l.container_id AND e.event_type = 'STARTED' AND e.received_at < f.from_at)
ORDER BY f.cluster, f.node, l.happened_at;

-- Which broken streams cost a fallback?
SELECT s.cluster, s.node, s.closed_at, s.code, s.runtime_name, s.runtime_version, f.from_at AS fell_back_at,
       epoch(coalesce(f.to_at, now()) - f.from_at) / 3600 AS hours
FROM stream_sessions s
LEFT JOIN fallback_intervals f ON f.cluster = s.cluster AND f.node = s.node
  AND f.from_at BETWEEN s.closed_at - INTERVAL 10 SECOND AND s.closed_at + INTERVAL 5 MINUTE
WHERE s.closed_at > now() - INTERVAL 8 DAY
ORDER BY s.cluster, s.node, s.closed_at;

-- How much work does Evented PLEG save the kubelet here?
SELECT k.cluster, f.node IS NOT NULL AS in_fallback, round_as_numeric(sum(k.counted_ms) / 3.6e6, 0) AS hours,
       round_as_numeric(60000 * sum(k.relists) / sum(k.counted_ms), 2) AS relists_per_minute,
       round_as_numeric(avg(k.cpu_share), 4) AS kubelet_cpu_share
FROM kubelet_hours k
LEFT JOIN fallback_intervals f ON f.cluster = k.cluster AND f.node = k.node AND k."hour" + INTERVAL 1 HOUR > f.from_at
  AND (f.to_at IS NULL OR k."hour" < f.to_at)
WHERE k.day BETWEEN now()::DATE - 7 AND now()::DATE - 1 AND k.counted_ms > 0
  AND (f.node IS NULL OR k."hour" >= f.from_at AND (f.to_at IS NULL OR k."hour" + INTERVAL 1 HOUR <= f.to_at))
GROUP BY k.cluster, f.node IS NOT NULL
ORDER BY k.cluster, in_fallback;

-- Which events were missed: which pod, which container, when, and with what proof?
SELECT cluster, node, event_type, pod_namespace, pod_name, container_name, window_from, occurred_at, window_to, cause, finding_id
FROM findings
WHERE kind = 'missed' AND resolved_at IS NULL AND detected_at > now() - INTERVAL 8 DAY
ORDER BY cluster, node, detected_at;

-- Which findings resolved late, and how late is late?
SELECT cluster, count(*) AS resolved, quantile_cont(epoch(resolved_at - detected_at), 0.5) AS median_s,
       max(epoch(resolved_at - detected_at))::DECIMAL(18, 6) AS longest_s
FROM findings
WHERE kind = 'missed' AND resolved_at IS NOT NULL AND detected_at > now() - INTERVAL 8 DAY
GROUP BY cluster
ORDER BY cluster;

-- When was a stream starved?
SELECT f.cluster, f.node, f.runtime_name, f.runtime_version, f.window_from AS starved_from, f.starved_to,
       count(m.finding_id) AS missed_meanwhile, count(m.finding_id) FILTER (WHERE m.resolved_at IS NULL) AS of_these_lost
FROM (
  SELECT f.*, coalesce(f.resolved_at, e.ended_at) AS starved_to
  FROM findings f
  LEFT JOIN epochs e ON e.cluster = f.cluster AND e.node = f.node AND e.epoch = f.epoch
  WHERE f.kind = 'silent_stream' AND f.cause = 'starved' AND f.detected_at > now() - INTERVAL 30 DAY
) f
LEFT JOIN findings m ON m.cluster = f.cluster AND m.node = f.node AND m.kind = 'missed' AND (m.proof ->> '$.hint') = 'stream_starved'
  AND m.window_from >= f.window_from AND m.detected_at <= coalesce(f.starved_to, now())
GROUP BY f.cluster, f.node, f.runtime_name, f.runtime_version, f.window_from, f.starved_to, f.detected_at, f.finding_id
ORDER BY f.detected_at DESC;

-- What does a runtime never announce?
SELECT cluster, runtime_name, runtime_version, event_type,
       CASE WHEN is_sandbox THEN 'sandbox' ELSE 'container' END AS of_a, count(DISTINCT node) AS nodes
FROM findings
WHERE kind = 'unannounced' AND cause = 'never_sent'
GROUP BY cluster, runtime_name, runtime_version, event_type, of_a
ORDER BY cluster, runtime_name, runtime_version, of_a, event_type;

-- How does the rate of misses differ by runtime and kubelet version?
SELECT cluster, runtime_name, runtime_version, kubelet_version, nodes, decided, missed,
       round_as_numeric(1e6 * missed / nullif(decided, 0), 0) AS per_million,
       round_as_numeric(1e6 * wilson_low(missed, decided), 0) AS low, round_as_numeric(1e6 * wilson_high(missed, decided), 0) AS high
FROM miss_rate(now()::DATE - 7, now()::DATE, NULL)
ORDER BY cluster, runtime_name, runtime_version, kubelet_version;

-- Does it depend on the pool, zone or kernel?
SELECT cluster, label AS pool, sum(nodes) AS nodes, sum(decided) AS decided, sum(missed) AS missed,
       round_as_numeric(1e6 * wilson_low(sum(missed), sum(decided)), 0) AS low_per_million,
       round_as_numeric(1e6 * wilson_high(sum(missed), sum(decided)), 0) AS high_per_million
FROM miss_rate(now()::DATE - 7, now()::DATE, 'pool')
GROUP BY cluster, label
ORDER BY cluster, label;

-- What did the kubelet discard, and what was not delivered?
SELECT k.cluster, k.node, k.discarded AS discarded_by_kubelet, count(f.finding_id) AS not_delivered_to_agent
FROM (
  SELECT cluster, node, sum(discarded) AS discarded FROM kubelet_hours
  WHERE day >= now()::DATE - 7 GROUP BY cluster, node
) k
LEFT JOIN findings f ON f.cluster = k.cluster AND f.node = k.node AND f.kind = 'missed' AND f.resolved_at IS NULL
  AND f.detected_at > now() - INTERVAL 8 DAY
GROUP BY k.cluster, k.node, k.discarded
ORDER BY k.cluster, k.node;

-- Which pods can have lost events to the kubelet's full channel?
SELECT k.cluster, k.node, k.counted_from, k.counted_to, k.discarded, count(DISTINCT h.pod_uid) AS pods,
       list_sort(list(DISTINCT h.pod_namespace || '/' || h.pod_name) FILTER (WHERE h.pod_name IS NOT NULL)) AS pod_names
FROM kubelet_minutes k
LEFT JOIN relist_changes h ON h.cluster = k.cluster AND h.node = k.node AND h.day BETWEEN k.day - 1 AND k.day + 1
  AND len(h.pleg_events) > 0 AND h.window_from <= k.counted_to
  AND h.window_to >= k.counted_from - to_microseconds((coalesce(k.relist_period_ms, 0) * 1000)::BIGINT)
WHERE k.day >= now()::DATE - 7 AND k.discarded > 0
GROUP BY k.cluster, k.node, k.counted_from, k.counted_to, k.discarded
ORDER BY k.cluster, k.node, k.counted_from;

-- Which containers lived too briefly for any list, and how many a day?
SELECT cluster, detected_at::DATE AS day, count(*) AS short_lives, round_as_numeric(avg(chance_min), 3) AS chance_min,
       round_as_numeric(avg(chance_max), 3) AS chance_max
FROM short_lives
WHERE detected_at > now() - INTERVAL 8 DAY
GROUP BY cluster, detected_at::DATE
ORDER BY cluster, day;

-- How often did STOPPED come before STARTED?
SELECT cluster, runtime_name, runtime_version, count(*) AS containers, count(*) FILTER (WHERE stopped < started) AS stopped_first,
       min(stopped) FILTER (WHERE stopped < started) AS first_at
FROM (
  SELECT cluster, node, container_id, runtime_name, runtime_version, min(received_at) FILTER (WHERE event_type = 'STARTED') AS started,
         min(received_at) FILTER (WHERE event_type = 'STOPPED') AS stopped
  FROM container_events
  WHERE day = now()::DATE - 1 AND event_type IN ('STARTED', 'STOPPED') AND NOT is_sandbox AND NOT replayed
  GROUP BY cluster, node, container_id, runtime_name, runtime_version
) container
WHERE started IS NOT NULL AND stopped IS NOT NULL
GROUP BY cluster, runtime_name, runtime_version
ORDER BY cluster, runtime_name, runtime_version;

-- Where does a container's status contradict a list or an event?
SELECT cluster, runtime_name, runtime_version, kind, cause, count(*) AS findings, count(DISTINCT node) AS nodes, min(detected_at) AS first_at,
       first(finding_id ORDER BY detected_at, finding_id) AS example
FROM findings
WHERE detected_at > now() - INTERVAL 8 DAY
  AND (kind IN ('regression', 'spurious', 'stale', 'out_of_order') OR cause IN ('runtime_state_late', 'contradicted', 'listed_again'))
GROUP BY cluster, runtime_name, runtime_version, kind, cause
ORDER BY cluster, findings DESC, runtime_name, runtime_version, kind, cause;

-- Where did two containers of one name run at once?
SELECT cluster, node, pod_namespace, pod_name, container_name, window_from, window_to, finding_id
FROM findings
WHERE kind = 'duplicate_container' AND detected_at > now() - INTERVAL 8 DAY
ORDER BY cluster, node, window_from;

-- How long was the published status behind, and was that more than is ordinary there?
SELECT cluster, node, count(*) AS missed, min(lag_min_ms) AS shortest_lag_ms, max(lag_max_ms) AS longest_lag_ms,
       count(*) FILTER (WHERE lag_anomalous) AS more_than_ordinary
FROM findings
WHERE kind = 'missed' AND detected_at > now() - INTERVAL 8 DAY
GROUP BY cluster, node
ORDER BY cluster, node;

-- How much later do statuses come with EventedPLEG on?
SELECT l.cluster, coalesce(m.to_mode, 'Unknown') AS mode, l.event_type, count(*) AS statuses,
       quantile_cont(l.lag_min_ms, 0.5) AS p50_at_least_ms, quantile_cont(l.lag_max_ms, 0.5) AS p50_at_most_ms,
       quantile_cont(l.lag_max_ms, 0.99) AS p99_at_most_ms
FROM status_lags l
LEFT JOIN (
  SELECT cluster, node, to_mode, "at", lead(not_before) OVER (PARTITION BY cluster, node ORDER BY "at", seq NULLS LAST) AS "until" FROM mode_changes
) m ON m.cluster = l.cluster AND m.node = l.node AND l."at" >= m."at" AND (m."until" IS NULL OR l."at" < m."until")
WHERE l."at" > now() - INTERVAL 2 DAY OR l.kind = 'fallback'
GROUP BY l.cluster, coalesce(m.to_mode, 'Unknown'), l.event_type
ORDER BY l.cluster, mode, l.event_type;

-- What did the kubelet know, and when: noticed late, or published late?
SELECT cluster, node,
       CASE WHEN kubelet_at_least_ms >= 10000 THEN 'noticed late' WHEN publishing_min_ms >= 10000 THEN 'published late'
            WHEN kubelet_at_most_ms < 10000 THEN 'noticed in time' ELSE 'not known' END AS verdict,
       count(*) AS changes, round_even(min(kubelet_at_least_ms), 0) AS kubelet_at_least_ms, round_even(max(kubelet_at_most_ms), 0) AS kubelet_at_most_ms,
       round_even(min(publishing_min_ms), 0) AS publishing_min_ms, round_even(max(publishing_max_ms), 0) AS publishing_max_ms
FROM findings
WHERE kind IN ('missed', 'kubelet_late') AND kubelet_knew <> 'not_observed' AND detected_at > now() - INTERVAL 8 DAY
GROUP BY cluster, node, verdict
ORDER BY cluster, node, verdict;

-- How late does the kubelet notice starts and stops, by mode and version?
SELECT cluster, kubelet_version, mode, event_type, transitions,
       kubelet_lag_bounds()[hist_bucket(hist, 0.5)] AS p50_at_most_ms, kubelet_lag_bounds()[hist_bucket(hist, 0.99)] AS p99_at_most_ms
FROM (
  SELECT cluster, kubelet_version, mode, event_type, sum(transitions) AS transitions, hist_sum(hist) AS hist
  FROM kubelet_lag_hours
  WHERE mode <> 'Unknown' AND day BETWEEN now()::DATE - 7 AND now()::DATE - 1
  GROUP BY cluster, kubelet_version, mode, event_type
)
ORDER BY cluster, kubelet_version, mode, event_type;

-- Which containers were OOMKilled or failed, and was the stop announced?
SELECT cluster, node, coalesce(occurred_at, window_to) AS "at", pod_namespace, pod_name, container_name,
       proof ->> '$.exactTimes.exitCode' AS exit_code, proof ->> '$.exactTimes.reason' AS exit_reason, false AS announced
FROM findings
WHERE kind = 'missed' AND event_type = 'STOPPED' AND resolved_at IS NULL AND detected_at > now() - INTERVAL 8 DAY
  AND (proof ->> '$.exactTimes.reason') NOT IN ('', 'Completed')
UNION ALL
SELECT cluster, node, received_at, pod_namespace, pod_name, container_name, exit_code::VARCHAR, exit_reason, true
FROM container_events
WHERE event_type = 'STOPPED' AND exit_reason <> 'Completed' AND day > now()::DATE - 8
ORDER BY cluster, node, "at";

-- PLEG was not healthy: was it a container, the runtime, the kubelet or the node?
SELECT cluster, node, kind, from_at, to_at, verdict, pod_namespace, pod_name, container_name, why
FROM pleg_verdicts
WHERE day >= now()::DATE - 8
ORDER BY cluster, node, from_at, kind;

-- Was the node short of CPU, memory or disk time when PLEG was slow?
SELECT cluster, node, kind, from_at, verdict, round_as_numeric(cpu_some, 2) AS cpu_some, round_as_numeric(io_some, 2) AS io_some,
       round_as_numeric(io_full, 2) AS io_full, round_as_numeric(memory_some, 2) AS memory_some, round_as_numeric(memory_full, 2) AS memory_full
FROM pleg_verdicts
WHERE day >= now()::DATE - 8
ORDER BY cluster, node, from_at, kind;

-- When did a Node say that PLEG is not healthy?
SELECT cluster, node, "at", status, reason, message, pleg_seen_ago_ms, threshold_ms
FROM node_conditions
WHERE "at" > now() - INTERVAL 8 DAY
ORDER BY cluster, node, "at";

-- Which Nodes were not Ready, for how long, and why?
SELECT cluster, node, from_at, to_at, round_as_numeric(epoch(coalesce(to_at, now()) - from_at) / 60, 1) AS minutes, status, reason, causes
FROM not_ready_intervals
WHERE from_at > now() - INTERVAL 8 DAY
ORDER BY cluster, node, from_at;

-- Does the kubelet wait for lists, sandbox statuses or container statuses, and for how many?
SELECT cluster, node, sum(relist_ms) AS relist_ms, sum(sandbox_list_ms) AS sandbox_list_ms, sum(container_list_ms) AS container_list_ms,
       sum(sandbox_statuses) AS sandbox_statuses, sum(sandbox_status_ms) AS sandbox_status_ms,
       sum(container_statuses) AS container_statuses, sum(container_status_ms) AS container_status_ms,
       sum(sandbox_list_errors + container_list_errors + sandbox_status_errors + container_status_errors) AS errors
FROM kubelet_hours
WHERE day >= now()::DATE - 7
GROUP BY cluster, node
ORDER BY relist_ms DESC, cluster, node
LIMIT 4;

-- Which pod makes the relist hang?
SELECT cluster, node, pod_namespace, pod_name, container_name, count(*) AS minutes, min("at") AS first_at,
       bool_or(timed_out) AS timed_out, max(status_ms) AS longest_ms, sum(slow) AS slow, sum(asked) AS asked, max(longest_relist_ms) AS longest_relist_ms
FROM status_checks
WHERE day >= now()::DATE - 7 AND status_checks.slow > 0 AND list_call IS NULL
GROUP BY cluster, node, pod_uid, pod_namespace, pod_name, container_name
ORDER BY minutes DESC, cluster, node, pod_namespace, pod_name, container_name
LIMIT 20;

-- Which container's lock hangs the list?
SELECT cluster, node, list_call, from_at, to_at, verdict, pod_namespace, pod_name, container_name, asked, quick, unanswered
FROM list_hangs
WHERE from_at > now() - INTERVAL 8 DAY
ORDER BY cluster, node, from_at;

-- How slow are lists?
SELECT cluster, node, "hour", relists, errors, hist_quantile(hist, 0.5) AS p50_ms, hist_quantile(hist, 0.99) AS p99_ms, max_ms
FROM (
  SELECT cluster, node, "hour", sum(relists) AS relists, sum(errors) AS errors, hist_sum(hist) AS hist, max(max_ms) AS max_ms
  FROM relist_hours
  WHERE "hour" > now() - INTERVAL 24 HOUR
  GROUP BY cluster, node, "hour"
)
ORDER BY p99_ms DESC NULLS LAST, cluster, node, "hour"
LIMIT 20;

-- How does the latency of relists grow with the number of containers?
SELECT cluster, containers_from, minutes, round_as_numeric(hist_quantile(hist, 0.5), 1) AS p50_ms,
       round_as_numeric(hist_quantile(hist, 0.99), 1) AS p99_ms
FROM (
  SELECT cluster, containers // 10 * 10 AS containers_from, sum(minutes) AS minutes, hist_sum(hist) AS hist
  FROM relist_hours
  WHERE day = now()::DATE - 1
  GROUP BY cluster, containers // 10
)
ORDER BY cluster, containers_from;

-- Which node nears the limit of a list, and how many exited containers does it keep?
WITH list AS (
  SELECT cluster, node, max(greatest(sandbox_list_bytes, container_list_bytes)) / 1048576 AS mib,
         regr_slope(greatest(sandbox_list_bytes, container_list_bytes), epoch("hour")) * 86400 / 1048576 AS mib_a_day,
         max(containers) AS containers, max(exited_containers) AS exited_containers
  FROM relist_hours
  WHERE day >= now()::DATE - 7
  GROUP BY cluster, node
)
SELECT cluster, node, round_as_numeric(mib, 1) AS mib, round_as_numeric(mib_a_day, 1) AS mib_a_day,
       CASE WHEN mib_a_day > 0.1 THEN round_as_numeric((16 - mib) / mib_a_day, 0) END AS days_left, containers, exited_containers
FROM list
WHERE mib > 4
ORDER BY mib DESC, cluster, node
LIMIT 20;

-- How did latency change with the upgrade of the kubelet?
SELECT cluster, kubelet_version, since, "until", round_as_numeric(hist_quantile(hist, 0.5), 1) AS p50_ms,
       round_as_numeric(hist_quantile(hist, 0.99), 1) AS p99_ms, max_ms
FROM (
  SELECT cluster, kubelet_version, min("hour") AS since, max("hour") + INTERVAL 1 HOUR AS "until", hist_sum(hist) AS hist, max(max_ms) AS max_ms
  FROM relist_hours
  WHERE day BETWEEN now()::DATE - 7 AND now()::DATE - 1
  GROUP BY cluster, kubelet_version
)
ORDER BY cluster, kubelet_version;

-- How did latency develop over a quarter?
SELECT cluster, week, relists, round_as_numeric(hist_quantile(hist, 0.99), 1) AS p99_ms, max_ms
FROM (
  SELECT cluster, date_trunc('week', "hour") AS week, sum(relists) AS relists, hist_sum(hist) AS hist, max(max_ms) AS max_ms
  FROM relist_hours
  WHERE "hour" > now() - INTERVAL 90 DAY
  GROUP BY cluster, week
)
ORDER BY cluster, week;

-- Which alerts would have fired last week with a threshold of one second?
SELECT cluster, node, count(*) AS minutes, min("minute") AS first, max("minute") AS last, max(max_ms) AS max_ms
FROM relist_minutes
WHERE day >= now()::DATE - 7 AND max_ms > 1000 AND p99_ms > 1000
GROUP BY cluster, node
ORDER BY cluster, node;

-- Which namespaces churn most?
SELECT cluster, pod_namespace, count(*) AS started, count(DISTINCT pod_name) AS pods
FROM container_events
WHERE day = now()::DATE - 1 AND event_type = 'STARTED' AND NOT is_sandbox
GROUP BY cluster, pod_namespace
ORDER BY cluster, started DESC;

-- Which Nodes changed their kernel, system or pool, and when?
SELECT cluster, node, from_at AS changed_at, kernel_before, kernel_version, labels_before ->> 'pool' AS pool_before, labels ->> 'pool' AS pool
FROM (
  SELECT *, lag(kernel_version) OVER of_node AS kernel_before, lag(labels) OVER of_node AS labels_before
  FROM node_info WINDOW of_node AS (PARTITION BY cluster, node ORDER BY from_at)
) change
WHERE from_at > now() - INTERVAL 8 DAY AND labels_before IS NOT NULL
ORDER BY cluster, node, from_at;

-- How complete is the evidence, by cluster and day?
SELECT cluster, day, nodes, nodes_without_minutes, round_as_numeric(listed_share, 3) AS listed, round_as_numeric(stream_share, 3) AS streamed,
       round_as_numeric(decided_share, 3) AS decided, records_lost
FROM evidence_completeness(now()::DATE - 7, now()::DATE - 1, NULL)
ORDER BY cluster, day;

-- In which pools is the evidence incomplete?
SELECT cluster, label AS pool, day, nodes, round_as_numeric(stream_share, 3) AS streamed, round_as_numeric(decided_share, 3) AS decided
FROM evidence_completeness(now()::DATE - 7, now()::DATE - 1, 'pool')
WHERE stream_share < 0.99
ORDER BY cluster, pool, day;

-- What is missing from the evidence itself?
SELECT cluster, node, scope, cause, from_at, to_at, records, epoch, from_seq, to_seq
FROM gaps
WHERE coalesce(to_at, now()) > now() - INTERVAL 24 HOUR AND filled_at IS NULL
ORDER BY from_at DESC, cluster, node, scope;
