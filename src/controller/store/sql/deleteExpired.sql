-- What is old and in no partition: gaps that ended, and refused input.
WITH keep AS (
  SELECT now() - max(value::int4) FILTER (WHERE key = 'keep_days') * interval '1 day' AS gaps,
         now() - max(value::int4) FILTER (WHERE key = 'retention_days') * interval '1 day' AS refused
  FROM store.setting
), gone AS (
  DELETE FROM store.gap USING keep WHERE gap.to_at < keep.gaps
)
DELETE FROM store.rejected USING keep WHERE rejected.last_at < keep.refused
