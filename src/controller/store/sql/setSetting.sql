INSERT INTO store.setting (key, value) VALUES ($1, to_jsonb($2::int4))
ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE setting.value IS DISTINCT FROM excluded.value
