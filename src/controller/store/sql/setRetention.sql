-- $1 retention_days, $2 keep_days; null leaves what is there.
UPDATE store.setting SET value = to_jsonb(coalesce(CASE key WHEN 'retention_days' THEN $1::int4 ELSE $2::int4 END, value::int4))
WHERE key IN ('retention_days', 'keep_days')
