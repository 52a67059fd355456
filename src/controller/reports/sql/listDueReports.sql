-- At most $3 of the reports that are due in cluster $1, without nodes written less than $2 ms ago. In this order:
--   1  the report says something else of mode or stream than the present agent, or a miss was found since it was written
--   2  the Node has no report, or something else changed
--   3  only figures are old
-- Of the last two kinds, three reports and one are always among them, so that none waits for ever.
WITH due AS (
  SELECT q.node_id, q.version, n.name AS node, q.urgent, q.due_at,
         CASE WHEN r.written_at IS NULL THEN 2
              WHEN NOT q.urgent THEN 3
              WHEN r.mode <> s.mode OR r.stream_state <> s.stream_state THEN 1
              -- A miss may be stored some minutes after it was found.
              WHEN EXISTS (SELECT FROM store.finding f
                           WHERE f.node_id = q.node_id AND f.kind = 'missed' AND f.detected_at > r.written_at - interval '10 minutes'
                             AND f.day >= ((r.written_at - interval '10 minutes') AT TIME ZONE 'UTC')::date) THEN 1
              ELSE 2 END AS kind
  FROM store.report_queue q
  JOIN store.node n ON n.node_id = q.node_id
  LEFT JOIN store.report r ON r.node_id = q.node_id
  LEFT JOIN store.node_state s ON s.node_id = n.node_id AND s.incarnation = n.incarnation
  WHERE q.cluster_id = $1 AND q.due_at <= now()
    AND (r.written_at IS NULL OR r.written_at <= now() - $2 * interval '1 millisecond')
), placed AS (
  SELECT *, row_number() OVER (PARTITION BY kind ORDER BY urgent DESC, due_at) AS place FROM due
), chosen AS (
  SELECT * FROM placed ORDER BY (kind = 2 AND place <= 3 OR kind = 3 AND place = 1) DESC, kind, place LIMIT $3
)
SELECT node_id, version, node FROM chosen ORDER BY kind, place;
