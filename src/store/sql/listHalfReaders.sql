-- The roles that have a user in some groups of a fleet and none in others: they are refused.
-- $1 the names of the groups
WITH groups AS (
  SELECT s.oid, g.name FROM unnest($1::text[]) AS g (name) JOIN pg_foreign_server s ON s.srvname = 'plegwatch_' || g.name
)
SELECT r.usename AS role, array_agg(g.name ORDER BY g.name) AS lacks
FROM (SELECT DISTINCT m.usename FROM pg_user_mappings m JOIN groups g ON g.oid = m.srvid) r
CROSS JOIN groups g
WHERE NOT EXISTS (SELECT FROM pg_user_mappings m WHERE m.srvid = g.oid AND m.usename = r.usename)
GROUP BY r.usename
ORDER BY r.usename
