-- The views and functions outside the schemas of a fleet that read from them, and would be dropped with them. Temporary ones, which any reader can make, are
-- dropped.
WITH own AS (
  SELECT n.oid FROM pg_namespace n
  WHERE n.nspname IN ('plegwatch', 'store') OR n.nspname IN (SELECT s.srvname FROM pg_foreign_server s WHERE starts_with(s.srvname::text, 'plegwatch_'))
), of_schema AS (
  SELECT 'pg_class'::regclass AS class, c.oid, c.relnamespace AS schema, c.relnamespace IN (SELECT oid FROM own) AS is_own FROM pg_class c
  UNION ALL
  SELECT 'pg_proc'::regclass, p.oid, p.pronamespace, p.pronamespace IN (SELECT oid FROM own) FROM pg_proc p
), reading AS (
  SELECT CASE WHEN r.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END AS class, coalesce(r.ev_class, d.objid) AS oid
  FROM pg_depend d
  JOIN of_schema read ON read.class = d.refclassid AND read.oid = d.refobjid AND read.is_own
  LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
)
SELECT DISTINCT pg_describe_object(of_schema.class, of_schema.oid, 0) AS dependent
FROM reading JOIN of_schema ON of_schema.class = reading.class AND of_schema.oid = reading.oid AND NOT of_schema.is_own
WHERE NOT starts_with(of_schema.schema::regnamespace::text, 'pg_temp')
ORDER BY dependent
