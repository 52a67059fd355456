-- Node $1 could not be written: not before $2 ms from now.
UPDATE store.report_queue SET due_at = now() + $2 * interval '1 millisecond' WHERE node_id = $1;
