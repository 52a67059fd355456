-- Changes the settings of the database that are given. A new one has 16 queues. The highest number of queues there ever were is kept: a
-- queue that agents no longer use may still hold batches. $1 queues, $2 event_retention_days, $3 finding_retention_days
WITH present AS (
  SELECT coalesce($1::int4, max(value::int4) FILTER (WHERE key = 'queues'), 16) AS queues FROM store.setting
)
INSERT INTO store.setting (key, value)
SELECT key, to_jsonb(value)
FROM present, LATERAL (VALUES ('queues', queues), ('max_queues', queues), ('event_retention_days', $2::int4),
                              ('finding_retention_days', $3::int4)) AS given (key, value)
WHERE value IS NOT NULL
ON CONFLICT (key) DO UPDATE SET value = CASE
  WHEN setting.key = 'max_queues' THEN to_jsonb(greatest(setting.value::int4, excluded.value::int4))
  ELSE excluded.value END
