-- $1 lanes. The most there ever were is kept too: batches may still lie in a lane that agents no longer use.
INSERT INTO store.setting (key, value) VALUES ('lanes', to_jsonb($1::int4)), ('lanes_ever', to_jsonb($1::int4))
ON CONFLICT (key) DO UPDATE SET value = CASE
  WHEN setting.key = 'lanes' THEN excluded.value
  ELSE to_jsonb(greatest(setting.value::int4, excluded.value::int4)) END
