-- On each day from $2 to $3: of how many nodes in the clusters $1, null for all, an agent read the metrics of the kubelet. A day that lies within gaps of
-- these metrics is not one, also in the middle of an epoch.
WITH observed AS MATERIALIZED (
  SELECT e.node_id, tstzmultirange(tstzrange(e.kubelet_seen_from, greatest(e.kubelet_seen_from, e.kubelet_seen_to), '[]')) - coalesce(g.gaps, '{}') AS periods
  FROM store.epoch e
  JOIN store.cluster c ON c.cluster_id = e.cluster_id
  LEFT JOIN (
    SELECT g.node_id, g.epoch, range_agg(tstzrange(g.from_at, greatest(g.from_at, coalesce(g.to_at, 'infinity')), '[]')) AS gaps
    FROM store.gap g WHERE g.scope = 'kubelet' AND g.from_at < $3 AND coalesce(g.to_at, 'infinity') >= date_trunc('day', $2::timestamptz, 'UTC') GROUP BY g.node_id, g.epoch
  ) g ON g.node_id = e.node_id AND g.epoch = e.epoch
  WHERE e.kubelet_seen_from < $3 AND e.kubelet_seen_to >= date_trunc('day', $2::timestamptz, 'UTC') AND ($1::text[] IS NULL OR c.name = ANY ($1))
), of_day AS (
  SELECT o.node_id, d.day
  FROM observed o
  CROSS JOIN LATERAL unnest(o.periods) AS p (period)
  CROSS JOIN LATERAL generate_series(date_trunc('day', greatest(lower(p.period), $2), 'UTC'),
    least(upper(p.period), $3) - CASE WHEN upper_inc(p.period) AND upper(p.period) < $3 THEN interval '0' ELSE interval '1 microsecond' END,
    interval '24 hours') AS d (day)
)
SELECT (d.day AT TIME ZONE 'UTC')::date AS day, count(DISTINCT o.node_id)::int4 AS nodes
FROM generate_series(date_trunc('day', $2::timestamptz, 'UTC'), $3::timestamptz - interval '1 microsecond', interval '24 hours') AS d (day)
LEFT JOIN of_day o ON o.day = d.day
GROUP BY d.day
ORDER BY d.day;
