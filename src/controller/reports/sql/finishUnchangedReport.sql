-- Version $2 of node $1 needed no write; the report is due for a recheck in $3 ms.
WITH taken AS (DELETE FROM store.report_queue WHERE node_id = $1 AND version = $2)
UPDATE store.report SET recheck_at = now() + $3 * interval '1 millisecond' WHERE node_id = $1;
