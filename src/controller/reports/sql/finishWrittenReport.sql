-- Report of node $1 was written for version $2 of its queue row: created at $3, showing $4, to be looked at again in $5 ms.
-- A row that has moved on meanwhile stays.
WITH taken AS (DELETE FROM store.report_queue WHERE node_id = $1 AND version = $2)
INSERT INTO store.report AS r (node_id, cluster_id, created_at, written_at, shown, recheck_at)
SELECT node_id, cluster_id, $3, now(), $4, now() + $5 * interval '1 millisecond' FROM store.node WHERE node_id = $1
ON CONFLICT (node_id) DO UPDATE SET created_at = excluded.created_at, written_at = excluded.written_at,
  shown = excluded.shown, recheck_at = excluded.recheck_at, gone_at = NULL;
