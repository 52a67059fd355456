-- Impact: how long the published status of a pod was behind a start or an end of one of its containers.
--
--   watch        a transition whose pod is read until its status shows it; the row goes when that is known, or never will be
--   sample       a transition that was announced as it should be: what the kubelet's lag ordinarily is
--   bounds       the transition lies between earliest_at and latest_at, its publication between unshown_at and the read that shows it
--
-- What comes of it is in store.finding_update (lag_min, lag_max, kubelet_blind, and lag_reason where there is no lag), and for
-- samples in store.status_lag.

-- Times are of this database's clock; earliest_at may rest on the node's. reads: answers that did not show it. seen_pod: one of
-- them was of this pod; seen_id: one had the container as the present one. due_at is also how a controller keeps others
-- from reading the same at the same time.
CREATE TABLE store.impact_watch (
  node_id int4 NOT NULL REFERENCES store.node,
  cluster_id int2 NOT NULL,
  finding_id uuid NOT NULL,
  sample bool NOT NULL,
  event_type text NOT NULL,
  container_id text NOT NULL,
  pod_uid text NOT NULL,
  pod_namespace text NOT NULL,
  pod_name text NOT NULL,
  container_name text NOT NULL,
  attempt int8 NOT NULL,
  latest_at timestamptz NOT NULL,
  earliest_at timestamptz,
  arrived_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL,
  reads int4 NOT NULL DEFAULT 0,
  seen_pod bool NOT NULL DEFAULT false,
  seen_id bool NOT NULL DEFAULT false,
  unshown_at timestamptz,
  PRIMARY KEY (node_id, finding_id)
) WITH (fillfactor = 50);
CREATE INDEX impact_watch_due ON store.impact_watch (cluster_id, sample, due_at);

-- Ordinary lags. lag_max_ms is null where the status did not show it in time. Kept for two days.
CREATE TABLE store.status_lag (
  node_id int4 NOT NULL,
  cluster_id int2 NOT NULL,
  at timestamptz NOT NULL,
  event_type text NOT NULL,
  lag_min_ms float8 NOT NULL,
  lag_max_ms float8
);
CREATE INDEX status_lag_node ON store.status_lag (node_id, at);
CREATE INDEX status_lag_at ON store.status_lag USING brin (at);

-- `what` is also: overdue (told by the agent), lag_reason (in note), kubelet_blind (1 or 0).
ALTER TABLE store.finding_update ADD COLUMN note text;

CREATE OR REPLACE VIEW plegwatch.findings WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, f.finding_id, f.kind, f.event_type, nullif(f.cause, '') AS cause,
       f.container_id, f.pod_uid, f.pod_namespace, f.pod_name, f.container_name,
       f.window_from, f.window_to, f.occurred_at, f.detected_at, u.resolved_at,
       f.lateness_us / 1000.0::float8 AS lateness_ms, f.delivery_us / 1000.0::float8 AS delivery_ms,
       u.lag_min_ms, u.lag_max_ms, coalesce(before.to_mode, after.from_mode, s.mode) AS mode,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version, f.proof,
       x.epoch, f.seq,
       u.lag_reason, u.kubelet_blind
FROM store.finding f
LEFT JOIN store.node n ON n.node_id = f.node_id
LEFT JOIN store.cluster c ON c.cluster_id = f.cluster_id
LEFT JOIN store.context x ON x.ctx_id = f.ctx_id
LEFT JOIN LATERAL (
  SELECT min(u.at) FILTER (WHERE what = 'resolved') AS resolved_at,
         min(u.value_ms) FILTER (WHERE what = 'lag_min') AS lag_min_ms,
         max(u.value_ms) FILTER (WHERE what = 'lag_max') AS lag_max_ms,
         min(u.note) FILTER (WHERE what = 'lag_reason') AS lag_reason,
         bool_and(u.value_ms > 0) FILTER (WHERE what = 'kubelet_blind') AS kubelet_blind
  FROM store.finding_update u WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id
) u ON true
-- The kubelet's mode then: what it last changed to, else what it first changed from, else what it is.
LEFT JOIN LATERAL (
  SELECT m.to_mode FROM store.mode_change m
  WHERE m.node_id = f.node_id AND m.at <= coalesce(f.occurred_at, f.window_to, f.detected_at)
  ORDER BY m.at DESC LIMIT 1
) before ON true
LEFT JOIN LATERAL (
  SELECT m.from_mode FROM store.mode_change m
  WHERE m.node_id = f.node_id AND m.at > coalesce(f.occurred_at, f.window_to, f.detected_at)
  ORDER BY m.at LIMIT 1
) after ON true
LEFT JOIN store.node_state s ON s.node_id = f.node_id;

-- One row per announced start or end that was measured, of the last two days.
CREATE VIEW plegwatch.status_lags WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, l.at, l.event_type, l.lag_min_ms, l.lag_max_ms
FROM store.status_lag l
LEFT JOIN store.node n ON n.node_id = l.node_id
LEFT JOIN store.cluster c ON c.cluster_id = l.cluster_id;

-- As before, and the new tables.
CREATE OR REPLACE FUNCTION store.grant_controller(to_role name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM store.grant_reader(to_role);
  EXECUTE format('GRANT INSERT, UPDATE ON store.cluster, store.node, store.context, store.epoch, store.object, store.session,
    store.gap, store.node_state, store.report_queue, store.report_condition, store.report, store.leader, store.rejected,
    store.impact_watch TO %I', to_role);
  EXECUTE format('GRANT INSERT ON store.event, store.change, store.sample, store.finding, store.finding_update,
    store.mode_change, store.node_condition, store.status_lag TO %I', to_role);
  EXECUTE format('GRANT DELETE ON store.report_queue, store.report_condition, store.rejected, store.impact_watch TO %I', to_role);
  EXECUTE format('GRANT EXECUTE ON FUNCTION store.make_partition(text, date), store.make_partitions(int4) TO %I', to_role);
END $$;
