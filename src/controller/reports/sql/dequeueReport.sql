-- Removes version $2 of node $1 from the queue: there is no Node to report on.
DELETE FROM store.report_queue WHERE node_id = $1 AND version = $2;
