-- Partitions past their retention, hours not before their minutes; also those that an earlier run detached, or half detached, and did not drop.
WITH retention AS (
  SELECT coalesce(max(value::int4) FILTER (WHERE key = 'event_retention_days'), 14) AS event_days,
         coalesce(max(value::int4) FILTER (WHERE key = 'finding_retention_days'), 400) AS finding_days
  FROM store.setting
), partition AS (
  SELECT p.relname AS of_table, c.relname AS name, i.inhdetachpending AS pending, i.inhrelid IS NULL AS detached,
         store.partition_unit(p.relname) AS unit, to_date(rpad(substring(c.relname FROM '_(\d+)$'), 8, '01'), 'YYYYMMDD') AS low
  FROM pg_class c
  LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
  JOIN pg_class p ON p.oid = i.inhparent
    OR (i.inhparent IS NULL AND p.relnamespace = c.relnamespace AND p.relname = substring(c.relname FROM '^(.*)_\d{6,8}$'))
  WHERE c.relnamespace = 'store'::regnamespace AND c.relkind = 'r' AND p.relnamespace = 'store'::regnamespace AND p.relkind = 'p'
    AND store.partition_unit(p.relname) IS NOT NULL
), bounded AS (
  SELECT *, (low + ('1 ' || unit)::interval)::date AS high FROM partition
)
SELECT of_table, name, coalesce(pending, false) AS pending, detached
FROM bounded, retention
WHERE pending OR high <= (now() AT TIME ZONE 'UTC')::date
  - CASE WHEN unit = 'day' THEN event_days WHEN of_table = 'relist_hour' THEN greatest(event_days, finding_days) ELSE finding_days END
ORDER BY name
