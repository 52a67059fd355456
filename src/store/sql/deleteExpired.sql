-- Deletes expired rows of tables that are not partitioned: gaps that ended or were left open by a closed epoch, what Nodes and their
-- conditions were before that, of the heads of a day whose events are gone all but the last of each chain, lags, watches that nobody reads for,
-- the outbox for OpenTelemetry where no controller leads any more, and refused input.
WITH oldest AS (
  SELECT now() - max(value::int4) FILTER (WHERE key = 'finding_retention_days') * interval '1 day' AS gap,
         now() - max(value::int4) FILTER (WHERE key = 'event_retention_days') * interval '1 day' AS rejected
  FROM store.setting
), gaps AS (
  DELETE FROM store.gap USING oldest
  WHERE gap.to_at < oldest.gap
     OR gap.to_at IS NULL AND gap.from_at < oldest.gap AND EXISTS (
          SELECT FROM store.epoch e WHERE e.node_id = gap.node_id AND e.epoch = gap.epoch AND e.closed_at < oldest.gap)
), infos AS (
  -- The latest row from before stays: it says what the Node was at that time.
  DELETE FROM store.node_info i USING oldest
  WHERE EXISTS (SELECT FROM store.node_info later WHERE later.node_id = i.node_id AND later.at > i.at AND later.at < oldest.gap)
), readiness AS (
  DELETE FROM store.ready_change r USING oldest
  WHERE EXISTS (SELECT FROM store.ready_change later WHERE later.node_id = r.node_id AND later.at > r.at AND later.at < oldest.gap)
), heads AS (
  DELETE FROM store.signed_head h USING (
    SELECT s.node_id, s.epoch, s.seq, s.from_seq,
           row_number() OVER (PARTITION BY s.node_id, s.epoch, s.from_seq, date_trunc('day', s.stored_at, 'UTC') ORDER BY s.seq DESC) AS place
    FROM store.signed_head s, oldest WHERE s.stored_at < oldest.rejected
  ) l
  WHERE l.place > 1 AND h.node_id = l.node_id AND h.epoch = l.epoch AND h.seq = l.seq AND h.from_seq = l.from_seq
), lags AS (
  DELETE FROM store.status_lag USING oldest
  WHERE at < CASE WHEN container_id IS NULL THEN now() - interval '2 days' ELSE oldest.rejected END
), watches AS (
  DELETE FROM store.status_lag_watch WHERE expires_at < now() - interval '1 day'
), waiting AS (
  DELETE FROM store.otlp_outbox USING oldest WHERE day < oldest.gap::date
)
DELETE FROM store.rejected USING oldest WHERE rejected.last_at < oldest.rejected
