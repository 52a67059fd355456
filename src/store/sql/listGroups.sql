-- The groups of a fleet database: the options of their servers, those of the user that the current role is there, null if it is none, and digests of
-- the clusters that were there when plegwatch federate ran.
SELECT substr(s.srvname, 11) AS name, coalesce(s.srvoptions, '{}') AS server, m.umoptions AS "user", obj_description(n.oid, 'pg_namespace') AS clusters
FROM pg_foreign_server s
JOIN pg_namespace n ON n.nspname = s.srvname AND n.nspowner = s.srvowner
LEFT JOIN pg_user_mappings m ON m.srvid = s.oid AND m.usename = current_user
WHERE starts_with(s.srvname::text, 'plegwatch_') AND to_regclass(format('%I.nodes', s.srvname)) IS NOT NULL
ORDER BY 1
