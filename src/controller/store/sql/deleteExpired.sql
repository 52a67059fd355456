-- What is old and in no partition: gaps that ended, or that were left open by a life that did, ordinary lags, watches that nobody
-- reads for, and refused input.
WITH keep AS (
  SELECT now() - max(value::int4) FILTER (WHERE key = 'keep_days') * interval '1 day' AS gaps,
         now() - max(value::int4) FILTER (WHERE key = 'retention_days') * interval '1 day' AS refused
  FROM store.setting
), gone AS (
  DELETE FROM store.gap USING keep
  WHERE gap.to_at < keep.gaps
     OR gap.to_at IS NULL AND gap.from_at < keep.gaps AND EXISTS (
          SELECT FROM store.epoch e WHERE e.node_id = gap.node_id AND e.epoch = gap.epoch AND e.closed_at < keep.gaps)
), lags AS (
  DELETE FROM store.status_lag WHERE at < now() - interval '2 days'
), watches AS (
  DELETE FROM store.impact_watch WHERE expires_at < now() - interval '1 day'
)
DELETE FROM store.rejected USING keep WHERE rejected.last_at < keep.refused
