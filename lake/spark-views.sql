-- The views of plegwatch over a lake of `plegwatch export --format parquet`, and the functions that the questions need, for Spark 4. Run in the folder
-- of the lake.
SET TIME ZONE 'UTC';

-- A cluster that is called 007 would become the number 7.
SET spark.sql.sources.partitionColumnTypeInference.enabled = false;

CREATE TEMPORARY VIEW container_events_files USING parquet OPTIONS (path 'container_events', mergeSchema 'true');
CREATE TEMPORARY VIEW epochs_files USING parquet OPTIONS (path 'epochs', mergeSchema 'true');
CREATE TEMPORARY VIEW fallback_intervals_files USING parquet OPTIONS (path 'fallback_intervals', mergeSchema 'true');
CREATE TEMPORARY VIEW findings_files USING parquet OPTIONS (path 'findings', mergeSchema 'true');
CREATE TEMPORARY VIEW gaps_files USING parquet OPTIONS (path 'gaps', mergeSchema 'true');
CREATE TEMPORARY VIEW kubelet_hours_files USING parquet OPTIONS (path 'kubelet_hours', mergeSchema 'true');
CREATE TEMPORARY VIEW kubelet_lag_hours_files USING parquet OPTIONS (path 'kubelet_lag_hours', mergeSchema 'true');
CREATE TEMPORARY VIEW kubelet_minutes_files USING parquet OPTIONS (path 'kubelet_minutes', mergeSchema 'true');
CREATE TEMPORARY VIEW list_hangs_files USING parquet OPTIONS (path 'list_hangs', mergeSchema 'true');
CREATE TEMPORARY VIEW mode_changes_files USING parquet OPTIONS (path 'mode_changes', mergeSchema 'true');
CREATE TEMPORARY VIEW node_conditions_files USING parquet OPTIONS (path 'node_conditions', mergeSchema 'true');
CREATE TEMPORARY VIEW node_info_files USING parquet OPTIONS (path 'node_info', mergeSchema 'true');
CREATE TEMPORARY VIEW nodes_files USING parquet OPTIONS (path 'nodes', mergeSchema 'true');
CREATE TEMPORARY VIEW not_ready_intervals_files USING parquet OPTIONS (path 'not_ready_intervals', mergeSchema 'true');
CREATE TEMPORARY VIEW pleg_verdicts_files USING parquet OPTIONS (path 'pleg_verdicts', mergeSchema 'true');
CREATE TEMPORARY VIEW relist_changes_files USING parquet OPTIONS (path 'relist_changes', mergeSchema 'true');
CREATE TEMPORARY VIEW relist_hours_files USING parquet OPTIONS (path 'relist_hours', mergeSchema 'true');
CREATE TEMPORARY VIEW relist_minutes_files USING parquet OPTIONS (path 'relist_minutes', mergeSchema 'true');
CREATE TEMPORARY VIEW short_lives_files USING parquet OPTIONS (path 'short_lives', mergeSchema 'true');
CREATE TEMPORARY VIEW status_checks_files USING parquet OPTIONS (path 'status_checks', mergeSchema 'true');
CREATE TEMPORARY VIEW status_lags_files USING parquet OPTIONS (path 'status_lags', mergeSchema 'true');
CREATE TEMPORARY VIEW stream_sessions_files USING parquet OPTIONS (path 'stream_sessions', mergeSchema 'true');

CREATE TEMPORARY VIEW container_events AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM container_events_files;
CREATE TEMPORARY VIEW epochs AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM epochs_files;
CREATE TEMPORARY VIEW fallback_intervals AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM fallback_intervals_files;
CREATE TEMPORARY VIEW findings AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM findings_files;
CREATE TEMPORARY VIEW gaps AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM gaps_files;
CREATE TEMPORARY VIEW kubelet_hours AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM kubelet_hours_files;
CREATE TEMPORARY VIEW kubelet_lag_hours AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM kubelet_lag_hours_files;
CREATE TEMPORARY VIEW kubelet_minutes AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM kubelet_minutes_files;
CREATE TEMPORARY VIEW list_hangs AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM list_hangs_files;
CREATE TEMPORARY VIEW mode_changes AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM mode_changes_files;
CREATE TEMPORARY VIEW node_conditions AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM node_conditions_files;
CREATE TEMPORARY VIEW node_info AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM node_info_files;
CREATE TEMPORARY VIEW nodes AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM nodes_files;
CREATE TEMPORARY VIEW not_ready_intervals AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM not_ready_intervals_files;
CREATE TEMPORARY VIEW pleg_verdicts AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM pleg_verdicts_files;
CREATE TEMPORARY VIEW relist_changes AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM relist_changes_files;
CREATE TEMPORARY VIEW relist_hours AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM relist_hours_files;
CREATE TEMPORARY VIEW relist_minutes AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM relist_minutes_files;
CREATE TEMPORARY VIEW short_lives AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM short_lives_files;
CREATE TEMPORARY VIEW status_checks AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM status_checks_files;
CREATE TEMPORARY VIEW status_lags AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM status_lags_files;
CREATE TEMPORARY VIEW stream_sessions AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM stream_sessions_files;

-- As Postgres rounds a float8 that is cast to numeric: by its first 15 digits, half away from zero.
CREATE TEMPORARY FUNCTION numeric_of(x DOUBLE) RETURNS DECIMAL(38, 18)
RETURN CASE WHEN x IS NOT NULL THEN CAST(format_string('%.14e', x) AS DECIMAL(38, 18)) END;

CREATE TEMPORARY FUNCTION sum_of(hist ARRAY<BIGINT>) RETURNS BIGINT RETURN aggregate(hist, 0L, (sum, n) -> sum + n);

-- The bucket of a sum of histograms that has its q-quantile; null for an empty one.
CREATE TEMPORARY FUNCTION hist_bucket(hist ARRAY<BIGINT>, q DOUBLE) RETURNS INT
RETURN get(filter(sequence(1, 24), i -> get(hist, i - 1) > 0 AND aggregate(slice(hist, 1, i), 0L, (sum, n) -> sum + n) >= q * sum_of(hist)), 0);

CREATE TEMPORARY FUNCTION hist_bound(i INT) RETURNS INT
RETURN CASE WHEN i = 0 THEN 0
            ELSE get(array(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536), i - 1) END;

CREATE TEMPORARY FUNCTION kubelet_lag_bound(i INT) RETURNS INT
RETURN get(array(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536), i - 1);

CREATE TEMPORARY FUNCTION hist_quantile_in(hist ARRAY<BIGINT>, q DOUBLE, i INT) RETURNS DOUBLE
RETURN CASE WHEN i > 23 THEN 65536
            ELSE hist_bound(i - 1) + (hist_bound(i) - hist_bound(i - 1))
                 * greatest(0, q * sum_of(hist) - sum_of(slice(hist, 1, i - 1))) / get(hist, i - 1) END;

-- The q-quantile of relist_hours.hist in milliseconds, interpolated inside its bucket. In the last one it is that bucket's lower bound.
CREATE TEMPORARY FUNCTION hist_quantile(hist ARRAY<BIGINT>, q DOUBLE) RETURNS DOUBLE
RETURN hist_quantile_in(hist, q, hist_bucket(hist, q));

-- The bounds of a rate of which `hits` of `trials` were seen: Wilson's interval with 95 % confidence.
CREATE TEMPORARY FUNCTION wilson_low(hits DOUBLE, trials DOUBLE) RETURNS DOUBLE
RETURN CASE WHEN trials > 0 THEN greatest(
  0, (hits + 1.920729D - 1.96D * sqrt(greatest(0, hits * (trials - hits) / trials) + 0.960365D)) / (trials + 3.841459D)) END;
CREATE TEMPORARY FUNCTION wilson_high(hits DOUBLE, trials DOUBLE) RETURNS DOUBLE
RETURN CASE WHEN trials > 0 THEN least(
  1, (hits + 1.920729D + 1.96D * sqrt(greatest(0, hits * (trials - hits) / trials) + 0.960365D)) / (trials + 3.841459D)) END;

-- The q-quantile of sorted values, interpolated as Postgres does: percentile() rounds otherwise.
CREATE TEMPORARY FUNCTION quantile_of(sorted ARRAY<DOUBLE>, q DOUBLE) RETURNS DOUBLE
RETURN get(sorted, CAST(floor(q * (size(sorted) - 1)) AS INT)) + (q * (size(sorted) - 1) - floor(q * (size(sorted) - 1)))
       * (get(sorted, CAST(ceil(q * (size(sorted) - 1)) AS INT)) - get(sorted, CAST(floor(q * (size(sorted) - 1)) AS INT)));

-- By what nodes are grouped in each period: a label, os_image or kernel_version, which the first known one had also before.
CREATE TEMPORARY FUNCTION node_groups(by_label STRING) RETURNS TABLE (cluster STRING, node STRING, from_at TIMESTAMP, to_at TIMESTAMP, label STRING)
RETURN
  SELECT cluster, node, CASE WHEN lag(from_at) OVER of_node IS NOT NULL THEN from_at END, lead(from_at) OVER of_node,
         nullif(CASE by_label WHEN 'os_image' THEN os_image WHEN 'kernel_version' THEN kernel_version
                              ELSE get_json_object(labels, "$['" || by_label || "']") END, '')
  FROM node_info WHERE by_label IS NOT NULL WINDOW of_node AS (PARTITION BY cluster, node ORDER BY from_at);

-- As plegwatch.miss_rate, for whole hours (UTC). A miss counts for the version that the kubelet then had; in Postgres, for that when it was found.
CREATE TEMPORARY FUNCTION miss_rate(since TIMESTAMP, until TIMESTAMP, by_label STRING)
RETURNS TABLE (cluster STRING, runtime_name STRING, runtime_version STRING, kubelet_version STRING, label STRING, nodes BIGINT, decided BIGINT,
               missed BIGINT)
RETURN
  WITH label AS (SELECT * FROM node_groups(by_label)), mixed AS (
    -- Hours within which the group changed: their minutes are read.
    SELECT DISTINCT cluster, node, date_trunc('hour', from_at) AS hour FROM label
    WHERE from_at > date_trunc('hour', from_at)
  ), seen AS (
    SELECT cluster, node, runtime_name, runtime_version, kubelet_version, hour AS at, matched, 0 AS missed
    FROM relist_hours ANTI JOIN mixed USING (cluster, node, hour)
    WHERE day >= CAST(since AS DATE) AND hour >= since AND hour < until
    UNION ALL
    SELECT m.cluster, m.node, m.runtime_name, m.runtime_version, m.kubelet_version, m.minute, m.matched, 0
    FROM mixed x JOIN relist_minutes m ON m.cluster = x.cluster AND m.node = x.node AND m.day = CAST(x.hour AS DATE)
      AND date_trunc('hour', m.minute) = x.hour
    WHERE x.hour >= since AND x.hour < until
    UNION ALL
    SELECT cluster, node, runtime_name, runtime_version, kubelet_version, detected_at, 0, 1
    FROM findings
    WHERE kind = 'missed' AND resolved_at IS NULL AND detected_at >= since AND detected_at < until
  )
  SELECT s.cluster, s.runtime_name, s.runtime_version, s.kubelet_version, l.label, count(DISTINCT s.node),
         sum(s.matched) + sum(s.missed), sum(s.missed)
  FROM seen s
  LEFT JOIN label l ON l.cluster = s.cluster AND l.node = s.node AND (l.from_at IS NULL OR s.at >= l.from_at) AND (l.to_at IS NULL OR s.at < l.to_at)
  GROUP BY s.cluster, s.runtime_name, s.runtime_version, s.kubelet_version, l.label;

-- As plegwatch.evidence_completeness, for days that are over.
CREATE TEMPORARY FUNCTION evidence_completeness(first_day DATE, last_day DATE, by_label STRING)
RETURNS TABLE (cluster STRING, label STRING, day DATE, nodes BIGINT, nodes_without_minutes BIGINT, listed_share DOUBLE, stream_share DOUBLE,
               decided_share DOUBLE, records_lost BIGINT)
RETURN
  WITH hours AS (
    SELECT cluster, node, day, sum(covered_ms) AS covered_ms, sum(expected) AS expected, sum(unobservable) AS unobservable
    FROM relist_hours WHERE day BETWEEN first_day AND last_day GROUP BY cluster, node, day
  ), listed AS (
    SELECT cluster, node, day, sum(span_ms) AS listed_ms
    FROM relist_minutes WHERE day BETWEEN first_day AND last_day AND relists > 0 GROUP BY cluster, node, day
  ), lost AS (
    SELECT cluster, node, day, sum(records) AS records
    FROM gaps WHERE scope IN ('seq', 'spool') AND filled_at IS NULL AND day BETWEEN first_day AND last_day GROUP BY cluster, node, day
  ), node_day AS (
    SELECT n.cluster, n.node, d.day,
           greatest(0, 1e3D * (least(unix_seconds(CAST(d.day + 1 AS TIMESTAMP)), unix_micros(n.gone_at) / 1e6D)
                               - greatest(unix_seconds(CAST(d.day AS TIMESTAMP)), unix_micros(n.first_seen) / 1e6D))) AS possible_ms
    FROM (SELECT explode(sequence(first_day, last_day)) AS day) d
    JOIN (
      -- Files of older days may have a row of an earlier Node of this name.
      SELECT cluster, node, max(first_seen) AS first_seen, max_by(coalesce(deleted_at, TIMESTAMP '9999-01-01 00:00:00Z'), first_seen) AS gone_at
      FROM nodes GROUP BY cluster, node
    ) n ON n.first_seen < CAST(d.day + 1 AS TIMESTAMP) AND n.gone_at > CAST(d.day AS TIMESTAMP)
  )
  SELECT n.cluster, l.label, n.day, count(*), count(*) FILTER (WHERE h.node IS NULL),
         CASE WHEN sum(n.possible_ms) > 0 THEN least(1, coalesce(sum(m.listed_ms), 0) / sum(n.possible_ms)) END,
         CASE WHEN sum(n.possible_ms) > 0 THEN least(1, coalesce(sum(h.covered_ms), 0) / sum(n.possible_ms)) END,
         1 - sum(h.unobservable) / nullif(sum(h.expected), 0), coalesce(sum(g.records), 0)
  FROM node_day n
  LEFT JOIN hours h ON h.cluster = n.cluster AND h.node = n.node AND h.day = n.day
  LEFT JOIN listed m ON m.cluster = n.cluster AND m.node = n.node AND m.day = n.day
  LEFT JOIN lost g ON g.cluster = n.cluster AND g.node = n.node AND g.day = n.day
  LEFT JOIN node_groups(by_label) l ON l.cluster = n.cluster AND l.node = n.node AND (l.from_at IS NULL OR l.from_at < CAST(n.day + 1 AS TIMESTAMP))
    AND (l.to_at IS NULL OR l.to_at >= CAST(n.day + 1 AS TIMESTAMP))
  GROUP BY n.cluster, l.label, n.day;
