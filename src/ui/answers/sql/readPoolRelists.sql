-- How long the relists of the nodes $1 took from $2 to $3, in slices of $4 seconds: by the hours, or, if $5 is false, by the minutes. A slice in which no
-- relist of a node succeeded has no row. The percentile, which takes most of the time, only if $6 is true.
SELECT s.node_id AS "nodeId", s.slice, CASE WHEN $6::bool THEN least(store.hist_quantile(s.hist, 0.99), s.max_us::float8 / 1000) END AS "p99Ms",
       s.max_us::float8 / 1000 AS "maxMs"
FROM (
  SELECT p.node_id, floor(extract(epoch FROM p.at - $2::timestamptz) / $4::int4)::int4 AS slice, store.hist_sum(p.hist) AS hist, max(p.max_us) AS max_us
  FROM (
    SELECT h.node_id, h.hour AS at, h.hist, h.max_us FROM store.relist_hour h
    WHERE $5::bool AND h.node_id = ANY ($1::int4[]) AND h.hour >= $2 AND h.hour < $3 AND h.relists > 0
      AND h.day BETWEEN ($2::timestamptz AT TIME ZONE 'UTC')::date AND ($3::timestamptz AT TIME ZONE 'UTC')::date
    UNION ALL
    SELECT m.node_id, m.minute, m.hist::int4[], m.max_us FROM store.relist_minute m
    WHERE NOT $5::bool AND m.node_id = ANY ($1::int4[]) AND m.minute >= $2 AND m.minute < $3 AND m.relists > 0
      AND m.day BETWEEN ($2::timestamptz AT TIME ZONE 'UTC')::date AND ($3::timestamptz AT TIME ZONE 'UTC')::date
  ) p
  GROUP BY 1, 2
) s
ORDER BY 1, 2;
