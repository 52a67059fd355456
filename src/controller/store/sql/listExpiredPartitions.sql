-- Partitions past their retention, and those that an interrupted run left half detached.
WITH retention AS (
  SELECT coalesce(max(value::int4) FILTER (WHERE key = 'event_retention_days'), 14) AS event_days,
         coalesce(max(value::int4) FILTER (WHERE key = 'finding_retention_days'), 400) AS finding_days
  FROM store.setting
), partition AS (
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
FROM bounded, retention
WHERE pending OR high <= (now() AT TIME ZONE 'UTC')::date - CASE unit WHEN 'day' THEN event_days ELSE finding_days END
ORDER BY name
