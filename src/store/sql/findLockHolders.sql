-- The sessions that hold locks on tables of this database, those of this session left out: the longest transactions first.
SELECT a.pid, coalesce(a.usename::text, '?') AS role, coalesce(a.application_name, '') AS application, array_agg(DISTINCT c.relname::text ORDER BY c.relname::text) AS tables
FROM pg_locks l
JOIN pg_class c ON c.oid = l.relation AND c.relkind IN ('r', 'p') AND c.relnamespace = to_regnamespace('store')
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.pid <> pg_backend_pid()
GROUP BY a.pid, a.usename, a.application_name
ORDER BY min(a.xact_start) NULLS LAST, a.pid
LIMIT 5
