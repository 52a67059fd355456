-- The schema version of the database, and the lowest one of programs that can use it.
SELECT coalesce(max(number), 0) AS version, coalesce(max(compatible_since), 0) AS "compatibleSince" FROM store.migration
