-- $1 a day since 1970. Its minutes become hours; a second run changes nothing.
INSERT INTO store.sample_hour (hour, day, node_id, cluster_id, minutes, relists, errors, max_us, hist, sandboxes, containers,
                               bytes, expected, matched, unobservable, covered_us, span_us)
SELECT date_trunc('hour', minute, 'UTC'), day, node_id, cluster_id, count(DISTINCT minute), sum(relists), sum(errors),
       max(max_us), store.hist_sum(hist::int4[]), max(sandboxes), max(containers), sum(bytes), sum(expected), sum(matched),
       sum(unobservable), sum(covered_us), sum(span_us)
FROM store.sample
WHERE day = date '1970-01-01' + $1::int4
GROUP BY date_trunc('hour', minute, 'UTC'), day, node_id, cluster_id
ON CONFLICT DO NOTHING
