-- Versions $2 of nodes $1 needed no write; the reports are due for a recheck in $3 ms: arrays of one length.
WITH done AS (
  SELECT * FROM unnest($1::int4[], $2::int8[], $3::int8[]) AS u (node_id, version, recheck_ms)
), taken AS (
  DELETE FROM store.report_queue q USING done d WHERE q.node_id = d.node_id AND q.version = d.version
)
UPDATE store.report r SET recheck_at = now() + d.recheck_ms * interval '1 millisecond' FROM done d WHERE r.node_id = d.node_id;
