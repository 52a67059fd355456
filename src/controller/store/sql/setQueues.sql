-- Sets the number of queues and keeps the most there ever were: a queue that agents no longer use may still hold batches. $1 queues
INSERT INTO store.setting (key, value) VALUES ('queues', to_jsonb($1::int4)), ('max_queues', to_jsonb($1::int4))
ON CONFLICT (key) DO UPDATE SET value = CASE
  WHEN setting.key = 'queues' THEN excluded.value
  ELSE to_jsonb(greatest(setting.value::int4, excluded.value::int4)) END
