-- A read that began at $3 (microseconds since 1970) did not show it. $1 node_id, $2 finding_id, $4 whether it was of this pod,
-- $5 whether the container was the present one, $6 ms until the next
UPDATE store.impact_watch
SET reads = reads + 1,
    unshown_at = greatest(unshown_at, timestamptz 'epoch' + $3::int8 * interval '1 microsecond'),
    seen_pod = seen_pod OR $4::bool,
    seen_id = seen_id OR $5::bool,
    due_at = now() + $6::int4 * interval '1 millisecond'
WHERE node_id = $1::int4 AND finding_id = $2::uuid
