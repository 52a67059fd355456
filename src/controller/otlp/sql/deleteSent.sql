-- $2: outbox_id of what was sent from cluster $1
DELETE FROM store.otlp_outbox WHERE cluster_id = $1::int2 AND outbox_id = ANY ($2::int8[])
