-- The relists of the node $1 from $2 to $3, in slices of $4 seconds, which are whole minutes. A row is in each slice in which a minute is that it is about: its
-- sums by the share of these minutes, its histograms and its longest relist whole.
SELECT s.at, $4::int4 AS seconds, s.relists, s.errors,
       least(store.hist_quantile(s.hist, 0.5), s.max_ms) AS "p50Ms", least(store.hist_quantile(s.hist, 0.99), s.max_ms) AS "p99Ms",
       s.max_ms AS "maxMs", s.hist, s.kubelet_relists AS "kubeletRelists",
       store.hist_quantile(s.kubelet_hist, store.kubelet_hist_bounds(), 0.99) AS "kubeletP99Ms",
       s.cpu_some AS "cpuSome", s.io_some AS "ioSome", s.io_full AS "ioFull", s.memory_some AS "memorySome", s.memory_full AS "memoryFull"
FROM (
  SELECT e.at, sum(m.relists * e.share)::float8 AS relists, sum(m.errors * e.share)::float8 AS errors,
         max(m.max_us) FILTER (WHERE m.relists > 0)::float8 / 1000 AS max_ms,
         store.hist_sum(m.hist::int4[]) AS hist, sum(m.kubelet_relists * e.share)::float8 AS kubelet_relists,
         store.hist_sum(m.kubelet_hist::int4[]) AS kubelet_hist,
         store.share_waited(sum(m.cpu_some_us * e.share)::int8, sum(m.pressure_us * e.share)::int8) AS cpu_some,
         store.share_waited(sum(m.io_some_us * e.share)::int8, sum(m.pressure_us * e.share)::int8) AS io_some,
         store.share_waited(sum(m.io_full_us * e.share)::int8, sum(m.pressure_us * e.share)::int8) AS io_full,
         store.share_waited(sum(m.memory_some_us * e.share)::int8, sum(m.pressure_us * e.share)::int8) AS memory_some,
         store.share_waited(sum(m.memory_full_us * e.share)::int8, sum(m.pressure_us * e.share)::int8) AS memory_full
  FROM (SELECT date_trunc('minute', $2::timestamptz) AS since, date_trunc('minute', $3::timestamptz) + interval '1 minute' AS until) p
  CROSS JOIN store.relist_minute m
  CROSS JOIN LATERAL (SELECT store.minutes_to(m.minute, m.ended_at) AS to_at) l
  CROSS JOIN LATERAL (
    SELECT s.at, store.share_within(l.to_at, (extract(epoch FROM l.to_at - m.minute) * 1000000)::int8, greatest(s.at, p.since),
                                    least(s.at + $4 * interval '1 second', p.until)) AS share
    FROM generate_series(date_bin($4 * interval '1 second', greatest(m.minute, p.since), '2000-01-01 00:00:00+00'),
                         least(l.to_at, p.until) - interval '1 microsecond', $4 * interval '1 second') AS s (at)
  ) e
  WHERE m.node_id = $1 AND m.day BETWEEN ((p.since - interval '12 minutes') AT TIME ZONE 'UTC')::date AND (p.until AT TIME ZONE 'UTC')::date
    AND m.minute > p.since - interval '12 minutes' AND m.minute < p.until AND l.to_at > p.since
  GROUP BY 1
) s
ORDER BY s.at;
