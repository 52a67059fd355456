-- The views outside the schemas of a fleet that read from them, and would be dropped with them.
WITH own AS (
  SELECT n.oid FROM pg_namespace n
  WHERE n.nspname IN ('plegwatch', 'store') OR n.nspname IN (SELECT s.srvname FROM pg_foreign_server s WHERE starts_with(s.srvname::text, 'plegwatch_'))
)
SELECT DISTINCT c.oid::regclass::text AS view
FROM pg_rewrite r
JOIN pg_class c ON c.oid = r.ev_class
JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
WHERE c.relnamespace NOT IN (SELECT oid FROM own)
  AND (d.refclassid = 'pg_class'::regclass AND d.refobjid IN (SELECT of.oid FROM pg_class of WHERE of.relnamespace IN (SELECT oid FROM own))
       OR d.refclassid = 'pg_proc'::regclass AND d.refobjid IN (SELECT of.oid FROM pg_proc of WHERE of.pronamespace IN (SELECT oid FROM own)))
ORDER BY view
