-- What is older than this is deleted by maintenance: microseconds since 1970.
SELECT (extract(epoch FROM now() - value::int4 * interval '1 day') * 1000000)::int8::text AS horizon
FROM store.setting WHERE key = 'finding_retention_days'
