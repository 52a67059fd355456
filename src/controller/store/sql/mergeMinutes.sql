-- Merges the minutes of a day into hours; a second run changes nothing. $1 the day, since 1970
INSERT INTO store.relist_hour (hour, day, node_id, cluster_id, minutes, relists, errors, max_us, hist, sandboxes, containers,
                               bytes, expected, matched, unobservable, covered_us, span_us)
SELECT date_trunc('hour', minute, 'UTC'), day, node_id, cluster_id, count(DISTINCT minute), sum(relists), sum(errors),
       max(max_us), store.hist_sum(hist::int4[]), max(sandboxes), max(containers), sum(bytes), sum(expected), sum(matched),
       sum(unobservable), sum(covered_us), sum(span_us)
FROM store.relist_minute
WHERE day = date '1970-01-01' + $1::int4
GROUP BY date_trunc('hour', minute, 'UTC'), day, node_id, cluster_id
ON CONFLICT DO NOTHING
