-- Rights that store.grant_controller grants and the current role does not have.
SELECT DISTINCT current_user AS role, r.privilege || ' on ' || r.object AS missing
FROM store.needed_rights(true) r
WHERE NOT CASE
  WHEN r.privilege = 'EXECUTE' THEN has_function_privilege(r.object, r.privilege)
  WHEN r.of_column IS NOT NULL THEN has_column_privilege(r.object, r.of_column, r.privilege)
  ELSE has_table_privilege(r.object, r.privilege)
END
ORDER BY missing
