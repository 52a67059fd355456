-- The roles that have a user in some groups of a fleet and none in others: they are refused.
WITH groups AS (
  SELECT s.oid, substr(s.srvname, 11) AS name
  FROM pg_foreign_server s JOIN pg_namespace n ON n.nspname = s.srvname AND n.nspowner = s.srvowner
  WHERE starts_with(s.srvname::text, 'plegwatch_') AND to_regclass(format('%I.nodes', s.srvname)) IS NOT NULL
)
SELECT r.usename AS role, array_agg(g.name ORDER BY g.name) AS lacks
FROM (SELECT DISTINCT m.usename FROM pg_user_mappings m JOIN groups g ON g.oid = m.srvid) r
CROSS JOIN groups g
WHERE NOT EXISTS (SELECT FROM pg_user_mappings m WHERE m.srvid = g.oid AND m.usename = r.usename)
GROUP BY r.usename
ORDER BY r.usename
