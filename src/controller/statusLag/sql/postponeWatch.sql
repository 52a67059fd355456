-- There was no answer: it is read again in $3 ms. $1 node_id, $2 finding_id
UPDATE store.impact_watch SET due_at = now() + $3::int4 * interval '1 millisecond'
WHERE node_id = $1::int4 AND finding_id = $2::uuid
