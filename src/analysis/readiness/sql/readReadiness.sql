-- How many nodes of the clusters $1, null for all, are ready for Evented PLEG, by cluster and pool. At most $2 rows.
SELECT r.cluster, r.pool, count(*) FILTER (WHERE r.verdict = 'safe')::int4 AS safe,
       count(*) FILTER (WHERE r.verdict = 'unsafe')::int4 AS unsafe, count(*) FILTER (WHERE r.verdict = 'unknown')::int4 AS unknown,
       (SELECT coalesce(array_agg(c.reason), '{}') FROM (
          -- Reasons that differ in their figures only are one.
          SELECT min(reason) AS reason FROM unnest(array_agg(r.reason) FILTER (WHERE r.verdict <> 'safe')) AS u (reason)
          GROUP BY regexp_replace(reason, '\d+', '#', 'g') ORDER BY count(*) DESC, min(reason) LIMIT 3) c) AS reasons
FROM (SELECT cluster, verdict, reason, store.pool_of(labels) AS pool FROM plegwatch.readiness) r
WHERE ($1::text[] IS NULL OR r.cluster = ANY ($1))
GROUP BY r.cluster, r.pool
ORDER BY r.cluster COLLATE "C", r.pool COLLATE "C" NULLS LAST
LIMIT $2;
