-- The report of node $1 could not be written: the next attempt is due in $2 ms.
UPDATE store.report_queue SET due_at = now() + $2 * interval '1 millisecond' WHERE node_id = $1;
