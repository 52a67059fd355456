-- A read got no answer: the next one is due in $3 ms. $1 node_id, $2 finding_id
UPDATE store.status_lag_watch SET due_at = now() + $3::int4 * interval '1 millisecond'
WHERE node_id = $1::int4 AND finding_id = $2::uuid
