-- The foreign servers of the groups, with their options as name=value.
SELECT s.srvname AS server, coalesce(s.srvoptions, '{}') AS options
FROM pg_foreign_server s JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw
WHERE starts_with(s.srvname::text, 'plegwatch_') AND w.fdwname = 'postgres_fdw' AND pg_get_userbyid(s.srvowner) = current_user
