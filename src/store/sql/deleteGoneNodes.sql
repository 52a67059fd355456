-- Deletes nodes that are gone, such as those of an autoscaler: deleted from the cluster, or only ever named by agents, that no longer report and
-- have no rows left. Their latest epochs, which deleteExpiredEpochs.sql keeps, are deleted with them. One statement: foreign keys are checked
-- at its end.
WITH gone AS (
  SELECT n.node_id
  FROM store.node n LEFT JOIN store.report r ON r.node_id = n.node_id,
       (SELECT now() - greatest(max(value::int4), 60) * interval '1 day' AS at FROM store.setting
        WHERE key IN ('finding_retention_days', 'event_retention_days')) AS before
  WHERE coalesce(n.last_seen, n.claimed_at, r.node_deleted_at) < before.at
    AND (r.node_deleted_at < before.at OR (r.node_id IS NULL AND n.claimed_at < before.at))
    AND NOT EXISTS (SELECT FROM store.epoch e WHERE e.node_id = n.node_id AND (e.closed_at IS NULL OR e.last_stored_at >= before.at))
    AND NOT EXISTS (SELECT FROM store.gap t WHERE t.node_id = n.node_id)
    AND NOT EXISTS (SELECT FROM store.container_event t WHERE t.node_id = n.node_id)
    AND NOT EXISTS (SELECT FROM store.relist_change t WHERE t.node_id = n.node_id)
    AND NOT EXISTS (SELECT FROM store.relist_minute t WHERE t.node_id = n.node_id)
    AND NOT EXISTS (SELECT FROM store.relist_hour t WHERE t.node_id = n.node_id)
    AND NOT EXISTS (SELECT FROM store.finding t WHERE t.node_id = n.node_id)
    AND NOT EXISTS (SELECT FROM store.mode_change t WHERE t.node_id = n.node_id)
    AND NOT EXISTS (SELECT FROM store.stream_session t WHERE t.node_id = n.node_id)
    AND NOT EXISTS (SELECT FROM store.node_condition t WHERE t.node_id = n.node_id)
),
node_state_rows AS (DELETE FROM store.node_state t USING gone g WHERE t.node_id = g.node_id),
report_queue_rows AS (DELETE FROM store.report_queue t USING gone g WHERE t.node_id = g.node_id),
report_condition_rows AS (DELETE FROM store.report_condition t USING gone g WHERE t.node_id = g.node_id),
report_rows AS (DELETE FROM store.report t USING gone g WHERE t.node_id = g.node_id),
status_lag_watch_rows AS (DELETE FROM store.status_lag_watch t USING gone g WHERE t.node_id = g.node_id),
context_rows AS (DELETE FROM store.context t USING gone g WHERE t.node_id = g.node_id),
epoch_rows AS (DELETE FROM store.epoch t USING gone g WHERE t.node_id = g.node_id)
DELETE FROM store.node n USING gone g WHERE n.node_id = g.node_id;
