-- How many fallbacks of kubelets began on each day from $2 to $3, in the clusters $1, null for all. At most $4 rows.
SELECT f.cluster, (f.from_at AT TIME ZONE 'UTC')::date AS day, count(*)::int4 AS fallbacks, count(DISTINCT f.node)::int4 AS nodes
FROM plegwatch.fallback_intervals f
WHERE f.from_at >= $2 AND f.from_at < $3 AND ($1::text[] IS NULL OR f.cluster = ANY ($1))
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT $4;
