-- The relists of the node $1 from $2 to $3, in slices of $4 seconds. A minute that went on is in each of the minutes that it lasted, with its part of them.
SELECT s.at, $4::int4 AS seconds, s.relists, s.errors,
       least(store.hist_quantile(s.hist, 0.5), s.max_ms) AS "p50Ms", least(store.hist_quantile(s.hist, 0.99), s.max_ms) AS "p99Ms",
       s.max_ms AS "maxMs", s.hist, s.kubelet_relists AS "kubeletRelists",
       store.hist_quantile(s.kubelet_hist, store.kubelet_hist_bounds(), 0.99) AS "kubeletP99Ms",
       s.cpu_some AS "cpuSome", s.io_some AS "ioSome", s.io_full AS "ioFull", s.memory_some AS "memorySome", s.memory_full AS "memoryFull"
FROM (
  SELECT date_bin($4 * interval '1 second', e.minute, '2000-01-01 00:00:00+00') AS at, sum(m.relists / l.minutes)::float8 AS relists,
         sum(m.errors)::float8 AS errors,
         max(m.max_us) FILTER (WHERE m.relists > 0)::float8 / 1000 AS max_ms,
         store.hist_sum(m.hist::int4[]) AS hist, sum(m.kubelet_relists / l.minutes)::float8 AS kubelet_relists,
         store.hist_sum(m.kubelet_hist::int4[]) AS kubelet_hist,
         store.share_waited(sum(m.cpu_some_us), sum(m.pressure_us)) AS cpu_some,
         store.share_waited(sum(m.io_some_us), sum(m.pressure_us)) AS io_some,
         store.share_waited(sum(m.io_full_us), sum(m.pressure_us)) AS io_full,
         store.share_waited(sum(m.memory_some_us), sum(m.pressure_us)) AS memory_some,
         store.share_waited(sum(m.memory_full_us), sum(m.pressure_us)) AS memory_full
  FROM store.relist_minute m
  CROSS JOIN LATERAL (SELECT greatest(1, round(m.span_us / 60000000.0))::float8 AS minutes) l
  CROSS JOIN LATERAL (SELECT m.minute + n * interval '1 minute' AS minute FROM generate_series(0, l.minutes::int4 - 1) AS n) e
  WHERE m.node_id = $1 AND m.day BETWEEN (($2::timestamptz - interval '10 minutes') AT TIME ZONE 'UTC')::date AND ($3::timestamptz AT TIME ZONE 'UTC')::date
    AND m.minute > $2::timestamptz - interval '10 minutes' AND e.minute > $2::timestamptz - interval '1 minute' AND e.minute <= $3
  GROUP BY 1
) s
ORDER BY s.at;
