-- The views and functions of the schema plegwatch. A column is its name and type, an argument also its default, as an expression.
SELECT c.relname::text AS name, NULL::text[] AS arguments, array_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum) AS columns
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = to_regnamespace('plegwatch') AND c.relkind = 'v'
GROUP BY c.oid
UNION ALL
SELECT p.proname,
       ARRAY(SELECT coalesce(p.proargnames[i], '') || ' ' || format_type(p.proargtypes[i - 1], NULL)
                      || coalesce(' DEFAULT ' || pg_get_function_arg_default(p.oid, i), '')
             FROM generate_series(1, p.pronargs) AS i ORDER BY i),
       array_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum)
FROM pg_proc p JOIN pg_type t ON t.oid = p.prorettype JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
WHERE p.pronamespace = to_regnamespace('plegwatch') AND p.proretset AND p.proargmodes IS NULL
GROUP BY p.oid
ORDER BY name
