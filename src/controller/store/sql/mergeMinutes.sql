-- Merges the minutes of a day into hours; a second run changes nothing. A sum for each bucket of the histograms, because store.hist_sum would take
-- most of the time. $1 the day, since 1970
WITH hour AS (
  SELECT date_bin('1 hour', minute, timestamptz 'epoch') AS hour, day, node_id, cluster_id,
         -- One bit for each minute of the hour, because agents that follow one another share a minute.
         bit_count(bit_or(1::int8 << date_part('minute', minute)::int4)::bit(64)) AS minutes,
         sum(relists) AS relists, sum(errors) AS errors, max(max_us) AS max_us,
         ARRAY[sum(hist[1]), sum(hist[2]), sum(hist[3]), sum(hist[4]), sum(hist[5]), sum(hist[6]), sum(hist[7]), sum(hist[8]),
               sum(hist[9]), sum(hist[10]), sum(hist[11]), sum(hist[12]), sum(hist[13]), sum(hist[14]), sum(hist[15]), sum(hist[16]),
               sum(hist[17]), sum(hist[18]), sum(hist[19]), sum(hist[20]), sum(hist[21]), sum(hist[22]), sum(hist[23]), sum(hist[24])] AS hist,
         max(sandboxes) AS sandboxes, max(containers) AS containers, sum(bytes) AS bytes, sum(expected) AS expected, sum(matched) AS matched,
         sum(unobservable) AS unobservable, sum(covered_us) AS covered_us, sum(span_us) AS span_us,
         sum(kubelet_relists) AS kubelet_relists,
         ARRAY[sum(kubelet_hist[1]), sum(kubelet_hist[2]), sum(kubelet_hist[3]), sum(kubelet_hist[4]), sum(kubelet_hist[5]), sum(kubelet_hist[6]),
               sum(kubelet_hist[7]), sum(kubelet_hist[8]), sum(kubelet_hist[9]), sum(kubelet_hist[10]), sum(kubelet_hist[11]),
               sum(kubelet_hist[12])] AS kubelet_hist,
         max(kubelet_last_seen_age_ms) AS kubelet_last_seen_age_ms, sum(kubelet_discarded) AS kubelet_discarded,
         max(kubelet_stream_errors) AS kubelet_stream_errors, max(kubelet_list_p99_ms) AS kubelet_list_p99_ms,
         sum(kubelet_intervals) AS kubelet_intervals, sum(kubelet_interval_us) AS kubelet_interval_us,
         sum(kubelet_counted_to - kubelet_counted_from) AS kubelet_counted,
         sum(kubelet_relist_us) AS kubelet_relist_us, sum(kubelet_list_calls) AS kubelet_list_calls, sum(kubelet_list_errors) AS kubelet_list_errors,
         sum(kubelet_list_us) AS kubelet_list_us, max(kubelet_longest_list_us) AS kubelet_longest_list_us, sum(kubelet_status_us) AS kubelet_status_us,
         sum(kubelet_cpu_us) AS kubelet_cpu_us, max(kubelet_resident_bytes) AS kubelet_resident_bytes
  FROM store.relist_minute
  WHERE day = date '1970-01-01' + $1::int4
  GROUP BY 1, day, node_id, cluster_id
)
INSERT INTO store.relist_hour (hour, day, node_id, cluster_id, minutes, relists, errors, max_us, hist, sandboxes, containers, bytes, expected,
                               matched, unobservable, covered_us, span_us, kubelet_relists, kubelet_hist, kubelet_last_seen_age_ms,
                               kubelet_discarded, kubelet_stream_errors, kubelet_list_p99_ms, kubelet_intervals, kubelet_interval_us,
                               kubelet_counted_us, kubelet_relist_us, kubelet_list_calls, kubelet_list_errors, kubelet_list_us,
                               kubelet_longest_list_us, kubelet_status_us, kubelet_cpu_us, kubelet_resident_bytes)
SELECT hour, day, node_id, cluster_id, minutes, relists, errors, max_us,
       ARRAY(SELECT least(n, 2147483647) FROM unnest(hist) AS n WHERE n IS NOT NULL), sandboxes, containers, store.fit_int8(bytes), expected,
       matched, unobservable, store.fit_int8(covered_us), store.fit_int8(span_us), kubelet_relists,
       CASE WHEN kubelet_relists IS NOT NULL THEN ARRAY(SELECT least(n, 2147483647) FROM unnest(kubelet_hist) AS n WHERE n IS NOT NULL) END,
       kubelet_last_seen_age_ms, store.fit_int8(kubelet_discarded), kubelet_stream_errors, kubelet_list_p99_ms, kubelet_intervals,
       store.fit_int8(kubelet_interval_us), store.fit_int8(extract(epoch FROM kubelet_counted) * 1000000), store.fit_int8(kubelet_relist_us), kubelet_list_calls,
       kubelet_list_errors, store.fit_int8(kubelet_list_us), kubelet_longest_list_us, store.fit_int8(kubelet_status_us),
       store.fit_int8(kubelet_cpu_us), kubelet_resident_bytes
FROM hour
ON CONFLICT DO NOTHING
