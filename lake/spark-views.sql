-- The views of plegwatch over a lake of `plegwatch export --format parquet`, and the functions that the questions need, for Spark 4. Run in the folder
-- of the lake.
SET TIME ZONE 'UTC';

-- A cluster that is called 007 would become the number 7.
SET spark.sql.sources.partitionColumnTypeInference.enabled = false;

CREATE TEMPORARY VIEW container_events_files USING parquet OPTIONS (path 'container_events', mergeSchema 'true');
CREATE TEMPORARY VIEW fallback_intervals_files USING parquet OPTIONS (path 'fallback_intervals', mergeSchema 'true');
CREATE TEMPORARY VIEW findings_files USING parquet OPTIONS (path 'findings', mergeSchema 'true');
CREATE TEMPORARY VIEW kubelet_hours_files USING parquet OPTIONS (path 'kubelet_hours', mergeSchema 'true');
CREATE TEMPORARY VIEW kubelet_lag_hours_files USING parquet OPTIONS (path 'kubelet_lag_hours', mergeSchema 'true');
CREATE TEMPORARY VIEW kubelet_minutes_files USING parquet OPTIONS (path 'kubelet_minutes', mergeSchema 'true');
CREATE TEMPORARY VIEW list_hangs_files USING parquet OPTIONS (path 'list_hangs', mergeSchema 'true');
CREATE TEMPORARY VIEW node_conditions_files USING parquet OPTIONS (path 'node_conditions', mergeSchema 'true');
CREATE TEMPORARY VIEW node_info_files USING parquet OPTIONS (path 'node_info', mergeSchema 'true');
CREATE TEMPORARY VIEW not_ready_intervals_files USING parquet OPTIONS (path 'not_ready_intervals', mergeSchema 'true');
CREATE TEMPORARY VIEW pleg_verdicts_files USING parquet OPTIONS (path 'pleg_verdicts', mergeSchema 'true');
CREATE TEMPORARY VIEW relist_changes_files USING parquet OPTIONS (path 'relist_changes', mergeSchema 'true');
CREATE TEMPORARY VIEW relist_hours_files USING parquet OPTIONS (path 'relist_hours', mergeSchema 'true');
CREATE TEMPORARY VIEW short_lives_files USING parquet OPTIONS (path 'short_lives', mergeSchema 'true');
CREATE TEMPORARY VIEW status_checks_files USING parquet OPTIONS (path 'status_checks', mergeSchema 'true');
CREATE TEMPORARY VIEW stream_sessions_files USING parquet OPTIONS (path 'stream_sessions', mergeSchema 'true');

CREATE TEMPORARY VIEW container_events AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM container_events_files;
CREATE TEMPORARY VIEW fallback_intervals AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM fallback_intervals_files;
CREATE TEMPORARY VIEW findings AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM findings_files;
CREATE TEMPORARY VIEW kubelet_hours AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM kubelet_hours_files;
CREATE TEMPORARY VIEW kubelet_lag_hours AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM kubelet_lag_hours_files;
CREATE TEMPORARY VIEW kubelet_minutes AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM kubelet_minutes_files;
CREATE TEMPORARY VIEW list_hangs AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM list_hangs_files;
CREATE TEMPORARY VIEW node_conditions AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM node_conditions_files;
CREATE TEMPORARY VIEW node_info AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM node_info_files;
CREATE TEMPORARY VIEW not_ready_intervals AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM not_ready_intervals_files;
CREATE TEMPORARY VIEW pleg_verdicts AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM pleg_verdicts_files;
CREATE TEMPORARY VIEW relist_changes AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM relist_changes_files;
CREATE TEMPORARY VIEW relist_hours AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM relist_hours_files;
CREATE TEMPORARY VIEW short_lives AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM short_lives_files;
CREATE TEMPORARY VIEW status_checks AS SELECT * EXCEPT (day), CAST(day AS DATE) AS day FROM status_checks_files;
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

-- The q-quantile of sorted values, interpolated as Postgres does: percentile() rounds otherwise.
CREATE TEMPORARY FUNCTION quantile_of(sorted ARRAY<DOUBLE>, q DOUBLE) RETURNS DOUBLE
RETURN get(sorted, CAST(floor(q * (size(sorted) - 1)) AS INT)) + (q * (size(sorted) - 1) - floor(q * (size(sorted) - 1)))
       * (get(sorted, CAST(ceil(q * (size(sorted) - 1)) AS INT)) - get(sorted, CAST(floor(q * (size(sorted) - 1)) AS INT)));
