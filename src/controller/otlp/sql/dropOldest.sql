-- Keeps the newest $2 of cluster $1.
DELETE FROM store.otlp_outbox
WHERE cluster_id = $1::int2
  AND outbox_id <= (SELECT outbox_id FROM store.otlp_outbox WHERE cluster_id = $1::int2 ORDER BY outbox_id DESC OFFSET $2::int4 LIMIT 1)
