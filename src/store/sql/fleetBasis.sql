-- The requirements of a fleet database.
SELECT current_user AS role, to_regclass('store.migration') IS NOT NULL AS has_evidence,
       to_regclass('plegwatch.clusters') IS NOT NULL AS is_fleet,
       coalesce(to_regnamespace('plegwatch'), to_regnamespace('store')) IS NOT NULL AS has_schema,
       (SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'dblink') AS dblink,
       coalesce((SELECT has_foreign_data_wrapper_privilege(w.oid, 'USAGE') FROM pg_foreign_data_wrapper w
                 WHERE w.fdwname = 'postgres_fdw'), false) AS may_connect
