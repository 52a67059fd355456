-- How many kubelets fell back on each day from $2 to $3, in the clusters $1, null for all. At most $4 rows.
SELECT c.name AS cluster, (m.at AT TIME ZONE 'UTC')::date AS day, count(*)::int4 AS fallbacks,
       count(DISTINCT m.node_id)::int4 AS nodes
FROM store.mode_change m
JOIN store.cluster c ON c.cluster_id = m.cluster_id
WHERE m.to_mode IN ('Fallback', 'HintDisabled') AND m.at >= $2 AND m.at < $3
  AND m.day BETWEEN ($2::timestamptz AT TIME ZONE 'UTC')::date AND ($3::timestamptz AT TIME ZONE 'UTC')::date
  AND ($1::text[] IS NULL OR c.name = ANY ($1))
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT $4;
