-- Version $2 of node $1's queue row needed no write; the report is to be looked at again in $3 ms.
WITH taken AS (DELETE FROM store.report_queue WHERE node_id = $1 AND version = $2)
UPDATE store.report SET recheck_at = now() + $3 * interval '1 millisecond' WHERE node_id = $1;
