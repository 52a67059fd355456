-- $1 event_retention_days, $2 finding_retention_days; null keeps the present value.
UPDATE store.setting SET value = to_jsonb(coalesce(CASE key WHEN 'event_retention_days' THEN $1::int4 ELSE $2::int4 END, value::int4))
WHERE key IN ('event_retention_days', 'finding_retention_days')
