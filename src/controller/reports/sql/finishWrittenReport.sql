-- The report of node $1 was written for version $2 of its queue row: created at $3, with the status digest $4, due for a recheck in
-- $5 ms, with mode $6 and stream state $7. A queue row with a newer version stays.
WITH taken AS (DELETE FROM store.report_queue WHERE node_id = $1 AND version = $2)
INSERT INTO store.report AS r (node_id, cluster_id, created_at, written_at, status_digest, recheck_at, mode, stream_state)
SELECT node_id, cluster_id, $3, now(), $4, now() + $5 * interval '1 millisecond', $6, $7 FROM store.node WHERE node_id = $1
ON CONFLICT (node_id) DO UPDATE SET created_at = excluded.created_at, written_at = excluded.written_at,
  status_digest = excluded.status_digest, recheck_at = excluded.recheck_at, mode = excluded.mode, stream_state = excluded.stream_state,
  node_deleted_at = NULL;
