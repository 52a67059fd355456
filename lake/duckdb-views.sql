-- The views of plegwatch over a lake of `plegwatch export --format parquet`, and the functions that the questions need, for DuckDB. Run in the folder
-- of the lake.
SET TimeZone = 'UTC';
-- As in Postgres.
SET default_null_order = 'nulls_last_on_asc_first_on_desc';

CREATE MACRO days_of(view_name) AS TABLE
  SELECT * FROM read_parquet(view_name || '/cluster=*/day=*/part.parquet', union_by_name = true, hive_partitioning = true,
                             hive_types = {'cluster': VARCHAR, 'day': DATE});

CREATE VIEW container_events AS FROM days_of('container_events');
CREATE VIEW fallback_intervals AS FROM days_of('fallback_intervals');
CREATE VIEW findings AS FROM days_of('findings');
CREATE VIEW kubelet_hours AS FROM days_of('kubelet_hours');
CREATE VIEW kubelet_lag_hours AS FROM days_of('kubelet_lag_hours');
CREATE VIEW kubelet_minutes AS FROM days_of('kubelet_minutes');
CREATE VIEW list_hangs AS FROM days_of('list_hangs');
CREATE VIEW node_conditions AS FROM days_of('node_conditions');
CREATE VIEW node_info AS FROM days_of('node_info');
CREATE VIEW not_ready_intervals AS FROM days_of('not_ready_intervals');
CREATE VIEW pleg_verdicts AS FROM days_of('pleg_verdicts');
CREATE VIEW relist_changes AS FROM days_of('relist_changes');
CREATE VIEW relist_hours AS FROM days_of('relist_hours');
CREATE VIEW short_lives AS FROM days_of('short_lives');
CREATE VIEW status_checks AS FROM days_of('status_checks');
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
