-- The views and functions of the schema plegwatch, each column with its type. arguments: as CREATE FUNCTION takes them.
SELECT c.relname::text AS name, NULL::text AS arguments, NULL::text[] AS argument_names,
       array_agg(quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum) AS columns
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = to_regnamespace('plegwatch') AND c.relkind = 'v'
GROUP BY c.oid
UNION ALL
SELECT p.proname, pg_get_function_arguments(p.oid), p.proargnames,
       array_agg(quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum)
FROM pg_proc p JOIN pg_type t ON t.oid = p.prorettype JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0
WHERE p.pronamespace = to_regnamespace('plegwatch') AND p.proretset
GROUP BY p.oid
ORDER BY name
