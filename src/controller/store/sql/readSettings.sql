SELECT coalesce(max(value::int4) FILTER (WHERE key = 'lanes'), 16) AS lanes,
       greatest(max(value::int4) FILTER (WHERE key = 'lanes'), max(value::int4) FILTER (WHERE key = 'lanes_ever'), 1) AS lanes_ever,
       coalesce(max(value::int4) FILTER (WHERE key = 'retention_days'), 14) AS retention_days,
       coalesce(max(value::int4) FILTER (WHERE key = 'keep_days'), 400) AS keep_days
FROM store.setting
