-- How many nodes of the clusters $1, null for all, are ready for Evented PLEG, by cluster and pool. At most $2 rows.
SELECT r.cluster, l.pool, count(*) FILTER (WHERE r.verdict = 'safe')::int4 AS safe,
       count(*) FILTER (WHERE r.verdict = 'unsafe')::int4 AS unsafe, count(*) FILTER (WHERE r.verdict = 'unknown')::int4 AS unknown,
       (SELECT coalesce(array_agg(c.reason), '{}') FROM (
          SELECT reason FROM unnest(array_agg(r.reason) FILTER (WHERE r.verdict <> 'safe')) AS u (reason)
          GROUP BY reason ORDER BY count(*) DESC, reason LIMIT 3) c) AS reasons
FROM plegwatch.readiness r
LEFT JOIN LATERAL (
  SELECT value AS pool FROM jsonb_each_text(r.labels) WHERE key ~ '(pool|nodegroup)$' ORDER BY key LIMIT 1
) l ON true
WHERE ($1::text[] IS NULL OR r.cluster = ANY ($1))
GROUP BY r.cluster, l.pool
ORDER BY r.cluster COLLATE "C", l.pool COLLATE "C" NULLS LAST
LIMIT $2;
