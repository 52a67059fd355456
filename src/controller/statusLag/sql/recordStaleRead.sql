-- A read that began at $3 (microseconds since 1970) did not show the transition.
-- $1 node_id, $2 finding_id, $4 whether the answer was of this pod, $5 whether it had this container as the present one, $6 ms until
-- the next read
UPDATE store.status_lag_watch
SET reads = reads + 1,
    stale_read_at = greatest(stale_read_at, timestamptz 'epoch' + $3::int8 * interval '1 microsecond'),
    pod_matched = pod_matched OR $4::bool,
    container_matched = container_matched OR $5::bool,
    due_at = now() + $6::int4 * interval '1 millisecond'
WHERE node_id = $1::int4 AND finding_id = $2::uuid
