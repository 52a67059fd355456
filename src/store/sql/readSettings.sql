SELECT coalesce(max(value::int4) FILTER (WHERE key = 'queues'), 16) AS queues,
       greatest(max(value::int4) FILTER (WHERE key = 'queues'), max(value::int4) FILTER (WHERE key = 'max_queues'), 1) AS "maxQueues",
       coalesce(max(value::int4) FILTER (WHERE key = 'event_retention_days'), 14) AS "eventRetentionDays",
       coalesce(max(value::int4) FILTER (WHERE key = 'finding_retention_days'), 400) AS "findingRetentionDays"
FROM store.setting
