-- Deletes contexts and epochs, with their heads, to which nothing refers any more, and which no spool can still know: a spool remembers an epoch without
-- records for 30 days, and asks for it once an hour while its agent runs. The latest epoch of a node stays, and with it the
-- incarnation that the next one must be higher than.
WITH expired AS (
  SELECT e.node_id, e.epoch
  FROM store.epoch e JOIN store.node n ON n.node_id = e.node_id,
       (SELECT now() - greatest(max(value::int4), 60) * interval '1 day' AS at FROM store.setting
        WHERE key IN ('finding_retention_days', 'event_retention_days')) AS before
  WHERE e.closed_at < before.at AND e.last_stored_at < before.at AND e.incarnation < n.incarnation
),
deleted AS (
  DELETE FROM store.context x USING expired e
  WHERE x.node_id = e.node_id AND x.epoch = e.epoch
    AND NOT EXISTS (SELECT FROM store.node n WHERE n.node_id = x.node_id AND n.context_id = x.context_id)
    AND NOT EXISTS (SELECT FROM store.container_event r WHERE r.node_id = x.node_id AND r.context_id = x.context_id)
    AND NOT EXISTS (SELECT FROM store.relist_change r WHERE r.node_id = x.node_id AND r.context_id = x.context_id)
    AND NOT EXISTS (SELECT FROM store.relist_minute r WHERE r.node_id = x.node_id AND r.context_id = x.context_id)
    AND NOT EXISTS (SELECT FROM store.relist_hour r WHERE r.node_id = x.node_id AND r.context_id = x.context_id)
    AND NOT EXISTS (SELECT FROM store.finding r WHERE r.node_id = x.node_id AND r.context_id = x.context_id)
    AND NOT EXISTS (SELECT FROM store.mode_change r WHERE r.node_id = x.node_id AND r.context_id = x.context_id)
    AND NOT EXISTS (SELECT FROM store.stream_session r WHERE r.node_id = x.node_id AND r.epoch = x.epoch)
  RETURNING x.context_id
),
gone AS (
  DELETE FROM store.epoch e USING expired x
  WHERE e.node_id = x.node_id AND e.epoch = x.epoch
    AND NOT EXISTS (SELECT FROM store.context c
                    WHERE c.node_id = e.node_id AND c.epoch = e.epoch AND c.context_id NOT IN (SELECT context_id FROM deleted))
    AND NOT EXISTS (SELECT FROM store.stream_session s WHERE s.node_id = e.node_id AND s.epoch = e.epoch)
    AND NOT EXISTS (SELECT FROM store.gap g WHERE g.node_id = e.node_id AND g.epoch = e.epoch)
  RETURNING e.node_id, e.epoch
)
DELETE FROM store.signed_head h USING gone WHERE h.node_id = gone.node_id AND h.epoch = gone.epoch;
