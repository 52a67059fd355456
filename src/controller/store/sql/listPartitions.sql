-- Partitions whose retention is over, and those that an interrupted run left half detached.
-- $1 event_retention_days, $2 finding_retention_days
WITH partition AS (
  SELECT p.relname AS of_table, c.relname AS name, i.inhdetachpending AS pending, store.partition_unit(p.relname) AS unit,
         to_date(rpad(substring(c.relname FROM '_(\d+)$'), 8, '01'), 'YYYYMMDD') AS low
  FROM pg_inherits i
  JOIN pg_class c ON c.oid = i.inhrelid
  JOIN pg_class p ON p.oid = i.inhparent
  WHERE p.relnamespace = 'store'::regnamespace AND p.relkind = 'p' AND store.partition_unit(p.relname) IS NOT NULL
), bounded AS (
  SELECT *, (low + ('1 ' || unit)::interval)::date AS high FROM partition
)
SELECT of_table, name, pending, high - date '1970-01-01' AS upper
FROM bounded
WHERE pending OR high <= (now() AT TIME ZONE 'UTC')::date - CASE unit WHEN 'day' THEN $1::int4 ELSE $2::int4 END
ORDER BY name
