-- The views of plegwatch over a lake of `plegwatch export --format parquet`, and the functions that the questions need, for DuckDB. Run in the folder
-- of the lake.
SET TimeZone = 'UTC';
-- As in Postgres.
SET default_null_order = 'nulls_last_on_asc_first_on_desc';

CREATE MACRO days_of(view_name) AS TABLE
  SELECT * FROM read_parquet(view_name || '/cluster=*/day=*/part.parquet', union_by_name = true, hive_partitioning = true,
                             hive_types = {'cluster': VARCHAR, 'day': DATE});

CREATE VIEW container_events AS FROM days_of('container_events');
CREATE VIEW epochs AS FROM days_of('epochs');
CREATE VIEW fallback_intervals AS FROM days_of('fallback_intervals');
CREATE VIEW findings AS FROM days_of('findings');
CREATE VIEW gaps AS FROM days_of('gaps');
CREATE VIEW kubelet_hours AS FROM days_of('kubelet_hours');
CREATE VIEW kubelet_lag_hours AS FROM days_of('kubelet_lag_hours');
CREATE VIEW kubelet_minutes AS FROM days_of('kubelet_minutes');
CREATE VIEW list_hangs AS FROM days_of('list_hangs');
CREATE VIEW mode_changes AS FROM days_of('mode_changes');
CREATE VIEW node_conditions AS FROM days_of('node_conditions');
CREATE VIEW node_info AS FROM days_of('node_info');
CREATE VIEW nodes AS FROM days_of('nodes');
CREATE VIEW not_ready_intervals AS FROM days_of('not_ready_intervals');
CREATE VIEW pleg_verdicts AS FROM days_of('pleg_verdicts');
CREATE VIEW relist_changes AS FROM days_of('relist_changes');
CREATE VIEW relist_hours AS FROM days_of('relist_hours');
CREATE VIEW relist_minutes AS FROM days_of('relist_minutes');
CREATE VIEW short_lives AS FROM days_of('short_lives');
CREATE VIEW status_checks AS FROM days_of('status_checks');
CREATE VIEW status_lags AS FROM days_of('status_lags');
CREATE VIEW stream_sessions AS FROM days_of('stream_sessions');

-- As Postgres rounds a float8 that is cast to numeric: by its first 15 digits, half away from zero.
CREATE MACRO round_as_numeric(x, digits) AS round(printf('%.15g', x::DOUBLE)::DECIMAL(38, 18), digits);

-- The sum of histograms, bucket by bucket; missing buckets count as zero.
CREATE MACRO hist_sum(hist) AS [
  coalesce(sum(hist[1]), 0), coalesce(sum(hist[2]), 0), coalesce(sum(hist[3]), 0), coalesce(sum(hist[4]), 0),
  coalesce(sum(hist[5]), 0), coalesce(sum(hist[6]), 0), coalesce(sum(hist[7]), 0), coalesce(sum(hist[8]), 0),
  coalesce(sum(hist[9]), 0), coalesce(sum(hist[10]), 0), coalesce(sum(hist[11]), 0), coalesce(sum(hist[12]), 0),
  coalesce(sum(hist[13]), 0), coalesce(sum(hist[14]), 0), coalesce(sum(hist[15]), 0), coalesce(sum(hist[16]), 0),
  coalesce(sum(hist[17]), 0), coalesce(sum(hist[18]), 0), coalesce(sum(hist[19]), 0), coalesce(sum(hist[20]), 0),
  coalesce(sum(hist[21]), 0), coalesce(sum(hist[22]), 0), coalesce(sum(hist[23]), 0), coalesce(sum(hist[24]), 0)];
CREATE MACRO hist_bounds() AS
  [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
CREATE MACRO kubelet_lag_bounds() AS [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

-- The bucket of a sum that has its q-quantile; null for an empty one.
CREATE MACRO hist_bucket(hist, q) AS
  list_filter(range(1, len(hist) + 1), lambda i: hist[i] > 0 AND list_sum(hist[1:i]) >= q::DOUBLE * list_sum(hist))[1];
CREATE MACRO hist_quantile_in(hist, q, i) AS CASE
  WHEN i > 23 THEN 65536::DOUBLE
  ELSE coalesce(hist_bounds()[i - 1], 0)
       + (hist_bounds()[i] - coalesce(hist_bounds()[i - 1], 0)) * greatest(0, q::DOUBLE * list_sum(hist) - (list_sum(hist[1:i]) - hist[i])) / hist[i]
  END;
-- The q-quantile of relist_hours.hist in milliseconds, interpolated inside its bucket. In the last one it is that bucket's lower bound.
CREATE MACRO hist_quantile(hist, q) AS hist_quantile_in(hist, q, hist_bucket(hist, q));

-- The bounds of a rate of which `hits` of `trials` were seen: Wilson's interval with 95 % confidence.
CREATE MACRO wilson_low(hits, trials) AS CASE WHEN trials > 0 THEN greatest(
  0, (hits::DOUBLE + 1.920729 - 1.96 * sqrt(greatest(0, hits::DOUBLE * (trials::DOUBLE - hits) / trials) + 0.960365)) / (trials::DOUBLE + 3.841459)) END;
CREATE MACRO wilson_high(hits, trials) AS CASE WHEN trials > 0 THEN least(
  1, (hits::DOUBLE + 1.920729 + 1.96 * sqrt(greatest(0, hits::DOUBLE * (trials::DOUBLE - hits) / trials) + 0.960365)) / (trials::DOUBLE + 3.841459)) END;

-- By what nodes are grouped in each period: a label, os_image or kernel_version, which the first known one had also before.
CREATE MACRO node_groups(by_label) AS TABLE
  SELECT cluster, node, CASE WHEN lag(from_at) OVER of_node IS NOT NULL THEN from_at END AS from_at, lead(from_at) OVER of_node AS to_at,
         nullif(CASE by_label WHEN 'os_image' THEN os_image WHEN 'kernel_version' THEN kernel_version ELSE labels ->> by_label END, '') AS label
  FROM node_info WHERE by_label IS NOT NULL WINDOW of_node AS (PARTITION BY cluster, node ORDER BY from_at);

-- As plegwatch.miss_rate, for whole hours (UTC). A miss counts for the version that the kubelet then had; in Postgres, for that when it was found.
CREATE MACRO miss_rate(since, "until", by_label) AS TABLE
  WITH label AS (FROM node_groups(by_label)), mixed AS (
    -- Hours within which the group changed: their minutes are read.
    SELECT DISTINCT cluster, node, date_trunc('hour', from_at) AS "hour" FROM label
    WHERE from_at > date_trunc('hour', from_at)
  ), seen AS (
    SELECT cluster, node, runtime_name, runtime_version, kubelet_version, "hour" AS "at", matched, 0 AS missed
    FROM relist_hours ANTI JOIN mixed USING (cluster, node, "hour")
    WHERE day >= since::DATE AND "hour" >= since::TIMESTAMPTZ AND "hour" < "until"::TIMESTAMPTZ
    UNION ALL
    SELECT m.cluster, m.node, m.runtime_name, m.runtime_version, m.kubelet_version, m."minute", m.matched, 0
    FROM mixed x JOIN relist_minutes m ON m.cluster = x.cluster AND m.node = x.node AND m.day = x."hour"::DATE
      AND date_trunc('hour', m."minute") = x."hour"
    WHERE x."hour" >= since::TIMESTAMPTZ AND x."hour" < "until"::TIMESTAMPTZ
    UNION ALL
    SELECT cluster, node, runtime_name, runtime_version, kubelet_version, detected_at, 0, 1
    FROM findings
    WHERE kind = 'missed' AND resolved_at IS NULL AND detected_at >= since::TIMESTAMPTZ AND detected_at < "until"::TIMESTAMPTZ
  )
  SELECT s.cluster, s.runtime_name, s.runtime_version, s.kubelet_version, l.label, count(DISTINCT s.node) AS nodes,
         (sum(s.matched) + sum(s.missed))::BIGINT AS decided, sum(s.missed)::BIGINT AS missed
  FROM seen s
  LEFT JOIN label l ON l.cluster = s.cluster AND l.node = s.node AND (l.from_at IS NULL OR s."at" >= l.from_at) AND (l.to_at IS NULL OR s."at" < l.to_at)
  GROUP BY s.cluster, s.runtime_name, s.runtime_version, s.kubelet_version, l.label;

-- As plegwatch.evidence_completeness, for days that are over.
CREATE MACRO evidence_completeness(first_day, last_day, by_label) AS TABLE
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
           greatest(0, 1000 * (least(epoch(d.day + 1), epoch(n.gone_at)) - greatest(epoch(d.day), epoch(n.first_seen)))) AS possible_ms
    FROM (SELECT unnest(range(first_day, last_day + 1, INTERVAL 1 DAY))::DATE AS day) d
    JOIN (
      -- Files of older days may have a row of an earlier Node of this name.
      SELECT cluster, node, max(first_seen) AS first_seen, arg_max(coalesce(deleted_at, '9999-01-01 00:00:00Z'::TIMESTAMPTZ), first_seen) AS gone_at
      FROM nodes GROUP BY cluster, node
    ) n ON n.first_seen < (d.day + 1)::TIMESTAMPTZ AND n.gone_at > d.day::TIMESTAMPTZ
  )
  SELECT n.cluster, l.label, n.day, count(*) AS nodes, count(*) FILTER (WHERE h.node IS NULL) AS nodes_without_minutes,
         CASE WHEN sum(n.possible_ms) > 0 THEN least(1, coalesce(sum(m.listed_ms), 0) / sum(n.possible_ms)) END AS listed_share,
         CASE WHEN sum(n.possible_ms) > 0 THEN least(1, coalesce(sum(h.covered_ms), 0) / sum(n.possible_ms)) END AS stream_share,
         1 - sum(h.unobservable) / nullif(sum(h.expected), 0) AS decided_share, coalesce(sum(g.records), 0)::BIGINT AS records_lost
  FROM node_day n
  LEFT JOIN hours h ON h.cluster = n.cluster AND h.node = n.node AND h.day = n.day
  LEFT JOIN listed m ON m.cluster = n.cluster AND m.node = n.node AND m.day = n.day
  LEFT JOIN lost g ON g.cluster = n.cluster AND g.node = n.node AND g.day = n.day
  LEFT JOIN node_groups(by_label) l ON l.cluster = n.cluster AND l.node = n.node AND (l.from_at IS NULL OR l.from_at < (n.day + 1)::TIMESTAMPTZ)
    AND (l.to_at IS NULL OR l.to_at >= (n.day + 1)::TIMESTAMPTZ)
  GROUP BY n.cluster, l.label, n.day;
