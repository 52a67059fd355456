-- Version $2 of node $1's queue row has no Node to report on.
DELETE FROM store.report_queue WHERE node_id = $1 AND version = $2;
