-- The sessions of this database that hold locks on tables or on the views of a fleet, or on rows that they changed, this session left out: the longest
-- transactions first.
SELECT a.pid, coalesce(a.usename::text, '?') AS role, coalesce(a.application_name, '') AS application,
       array_agg(DISTINCT coalesce(c.relname::text, 'rows') ORDER BY coalesce(c.relname::text, 'rows')) AS tables
FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid AND a.datname = current_database()
LEFT JOIN (
  pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND (n.nspname IN ('store', 'plegwatch') OR starts_with(n.nspname::text, 'plegwatch_'))
) ON c.oid = l.relation AND c.relkind IN ('r', 'p', 'v', 'f')
WHERE l.granted AND (c.oid IS NOT NULL OR l.locktype = 'transactionid') AND l.pid <> pg_backend_pid()
GROUP BY a.pid, a.usename, a.application_name
ORDER BY min(a.xact_start) NULLS LAST, a.pid
LIMIT 5
