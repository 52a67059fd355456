-- The foreign servers of the groups, with their options as name=value.
SELECT s.srvname AS server, coalesce(s.srvoptions, '{}') AS options FROM pg_foreign_server s WHERE starts_with(s.srvname::text, 'plegwatch_')
