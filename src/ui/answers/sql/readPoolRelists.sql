-- How long the relists of the nodes $1 took from $2 to $3, in slices of $4 seconds: by the hours, or, if $5 is false, by the minutes. A slice in which no
-- relist of a node succeeded has no row. The percentile, which takes most of the time, only if $6 is true.
--
-- The rows without a node have the median of all nodes in the slices in which at least three relisted; the others are those of the nodes $7.
WITH sliced AS MATERIALIZED (
  SELECT p.node_id, date_bin($4::int4 * interval '1 second', p.at, $2) AS at, store.hist_sum(p.hist) AS hist, max(p.max_us) AS max_us
  FROM (
    SELECT h.node_id, h.hour AS at, CASE WHEN $6::bool THEN h.hist END AS hist, h.max_us FROM store.relist_hour h
    WHERE $5::bool AND h.node_id = ANY ($1::int4[]) AND h.hour >= $2 AND h.hour < $3 AND h.relists > 0
      AND h.day BETWEEN ($2::timestamptz AT TIME ZONE 'UTC')::date AND ($3::timestamptz AT TIME ZONE 'UTC')::date
    UNION ALL
    -- Once in each slice in which a minute is that the row is about.
    SELECT m.node_id, s.at, CASE WHEN $6::bool THEN m.hist::int4[] END, m.max_us FROM store.relist_minute m
    CROSS JOIN LATERAL generate_series(date_bin($4::int4 * interval '1 second', greatest(m.minute, $2::timestamptz), $2::timestamptz),
      least(store.minutes_to(m.minute, m.ended_at), $3::timestamptz) - interval '1 microsecond', $4::int4 * interval '1 second') AS s (at)
    WHERE NOT $5::bool AND m.node_id = ANY ($1::int4[]) AND m.minute > $2::timestamptz - interval '12 minutes' AND m.minute < $3 AND m.relists > 0
      AND store.minutes_to(m.minute, m.ended_at) > $2
      AND m.day BETWEEN (($2::timestamptz - interval '12 minutes') AT TIME ZONE 'UTC')::date AND ($3::timestamptz AT TIME ZONE 'UTC')::date
  ) p
  GROUP BY 1, 2
)
SELECT u.node_id AS "nodeId", (extract(epoch FROM u.at - $2::timestamptz) / $4::int4)::int4 AS slice,
       CASE WHEN u.hist IS NOT NULL THEN least(store.hist_quantile(u.hist, 0.99), u.max_ms) END AS "p99Ms", u.max_ms AS "maxMs"
FROM (
  SELECT s.node_id, s.at, s.hist, s.max_us::float8 / 1000 AS max_ms FROM sliced s
  WHERE s.node_id IN (SELECT unnest($7::int4[]))
  UNION ALL
  SELECT NULL, s.at, NULL, percentile_cont(0.5) WITHIN GROUP (ORDER BY s.max_us) / 1000
  FROM sliced s GROUP BY s.at HAVING count(*) >= 3
) u;
