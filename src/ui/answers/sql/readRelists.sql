-- The relists of the node $1 from $2 to $3, in slices of $4 seconds.
SELECT s.at, $4::int4 AS seconds, s.relists, s.errors,
       least(store.hist_quantile(s.hist, 0.5), s.max_ms) AS "p50Ms", least(store.hist_quantile(s.hist, 0.99), s.max_ms) AS "p99Ms",
       s.max_ms AS "maxMs", s.hist, s.kubelet_relists AS "kubeletRelists",
       store.hist_quantile(s.kubelet_hist, store.kubelet_hist_bounds(), 0.99) AS "kubeletP99Ms",
       s.cpu_some AS "cpuSome", s.io_some AS "ioSome", s.io_full AS "ioFull", s.memory_some AS "memorySome", s.memory_full AS "memoryFull"
FROM (
  SELECT date_bin($4 * interval '1 second', m.minute, '2000-01-01 00:00:00+00') AS at, sum(m.relists)::float8 AS relists,
         sum(m.errors)::float8 AS errors,
         max(m.max_us) FILTER (WHERE m.relists > 0)::float8 / 1000 AS max_ms,
         store.hist_sum(m.hist::int4[]) AS hist, sum(m.kubelet_relists)::float8 AS kubelet_relists,
         store.hist_sum(m.kubelet_hist::int4[]) AS kubelet_hist,
         store.share_waited(sum(m.cpu_some_us), sum(m.pressure_us)) AS cpu_some,
         store.share_waited(sum(m.io_some_us), sum(m.pressure_us)) AS io_some,
         store.share_waited(sum(m.io_full_us), sum(m.pressure_us)) AS io_full,
         store.share_waited(sum(m.memory_some_us), sum(m.pressure_us)) AS memory_some,
         store.share_waited(sum(m.memory_full_us), sum(m.pressure_us)) AS memory_full
  FROM store.relist_minute m
  WHERE m.node_id = $1 AND m.day BETWEEN (($2::timestamptz - interval '1 minute') AT TIME ZONE 'UTC')::date AND ($3::timestamptz AT TIME ZONE 'UTC')::date
    AND m.minute > $2::timestamptz - interval '1 minute' AND m.minute <= $3
  GROUP BY 1
) s
ORDER BY s.at;
