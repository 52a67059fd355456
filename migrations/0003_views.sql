-- What people read. Every view starts with `cluster, node`; times are timestamptz; lengths end in _ms. Columns are only ever
-- appended. Names come by LEFT JOIN: a row whose name is not known is shown without it, never hidden.
--
-- `day` is the partition key of events, changes and minutes: a condition on it reads fewer partitions.

CREATE VIEW plegwatch.nodes WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, n.first_seen, n.last_seen,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version, nullif(x.agent_version, '') AS agent_version,
       s.stream_state, s.mode, s.mode_since,
       n.node_uid, s.stream_since, nullif(s.stream_reason, '') AS stream_reason, nullif(s.stream_error, '') AS stream_error,
       s.relist_healthy, nullif(s.relist_reason, '') AS relist_reason, s.model, nullif(s.mode_reason, '') AS mode_reason,
       s.k_stream_errors AS kubelet_stream_errors
FROM store.node n
LEFT JOIN store.cluster c USING (cluster_id)
LEFT JOIN store.node_state s ON s.node_id = n.node_id
LEFT JOIN store.context x ON x.ctx_id = n.ctx_id;

CREATE VIEW plegwatch.epochs WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, e.epoch, e.prev, nullif(e.node_uid, '') AS node_uid, nullif(e.boot_id, '') AS boot_id,
       e.base_at AS started_at,
       CASE WHEN e.closed_at IS NOT NULL OR e.life < n.life THEN coalesce(e.last_at, e.base_at) END AS ended_at,
       CASE WHEN e.closed_at IS NOT NULL THEN e.close_cause WHEN e.life < n.life THEN 'superseded' END AS end_cause,
       nullif(x.agent_version, '') AS agent_version,
       e.complete_at AS complete_through,
       e.life, store.mark(e.received, e.lost) AS mark, e.last_seq,
       store.positions(e.received) AS records_stored, store.positions(e.lost) AS records_lost, e.seen_at AS last_seen
FROM store.epoch e
LEFT JOIN store.node n USING (node_id)
LEFT JOIN store.cluster c ON c.cluster_id = e.cluster_id
LEFT JOIN LATERAL (
  SELECT agent_version FROM store.context x WHERE x.node_id = e.node_id AND x.epoch = e.epoch ORDER BY ctx_no DESC LIMIT 1
) x ON true;

CREATE VIEW plegwatch.container_events WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, x.epoch, e.seq, e.at AS received_at, store.time_of_ns(e.created_ns) AS created_at,
       store.event_type_name(e.bits & 255) AS event_type,
       store.id_text(o.cid, o.bits) AS container_id, e.bits & 1024 <> 0 AS is_sandbox,
       store.id_text(s.cid, s.bits) AS sandbox_id,
       o.pod_uid, o.namespace AS pod_namespace, o.pod_name, o.container_name, o.attempt,
       e.bits & 256 <> 0 AS replayed, e.bits & 512 <> 0 AS has_sandbox_status,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version,
       e.created_ns, e.day
FROM store.event e
LEFT JOIN store.node n ON n.node_id = e.node_id
LEFT JOIN store.cluster c ON c.cluster_id = e.cluster_id
LEFT JOIN store.context x ON x.ctx_id = e.ctx_id
LEFT JOIN store.object o ON o.node_id = e.node_id AND o.obj = e.obj AND o.day = e.day
LEFT JOIN store.object s ON s.node_id = e.node_id AND s.obj = o.sandbox AND s.day = e.day;

CREATE VIEW plegwatch.relist_changes WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, x.epoch, h.seq, h.from_at AS window_from, h.to_at AS window_to,
       store.id_text(o.cid, o.bits) AS container_id, h.old_new & 256 <> 0 AS is_sandbox,
       o.pod_uid, o.namespace AS pod_namespace, o.pod_name, o.container_name,
       store.pleg_state_name(h.old_new & 15) AS old_state, store.pleg_state_name((h.old_new >> 4) & 15) AS new_state,
       store.pleg_event_names(h.pleg) AS pleg_events,
       store.id_text(s.cid, s.bits) AS sandbox_id, h.day
FROM store.change h
LEFT JOIN store.node n ON n.node_id = h.node_id
LEFT JOIN store.cluster c ON c.cluster_id = h.cluster_id
LEFT JOIN store.context x ON x.ctx_id = h.ctx_id
LEFT JOIN store.object o ON o.node_id = h.node_id AND o.obj = h.obj AND o.day = h.day
LEFT JOIN store.object s ON s.node_id = h.node_id AND s.obj = o.sandbox AND s.day = h.day;

CREATE VIEW plegwatch.findings WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, f.finding_id, f.kind, f.event_type, nullif(f.cause, '') AS cause,
       f.container_id, f.pod_uid, f.pod_namespace, f.pod_name, f.container_name,
       f.window_from, f.window_to, f.occurred_at, f.detected_at, u.resolved_at,
       f.lateness_us / 1000.0::float8 AS lateness_ms, f.delivery_us / 1000.0::float8 AS delivery_ms,
       u.lag_min_ms, u.lag_max_ms, coalesce(before.to_mode, after.from_mode, s.mode) AS mode,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version, f.proof,
       x.epoch, f.seq
FROM store.finding f
LEFT JOIN store.node n ON n.node_id = f.node_id
LEFT JOIN store.cluster c ON c.cluster_id = f.cluster_id
LEFT JOIN store.context x ON x.ctx_id = f.ctx_id
LEFT JOIN LATERAL (
  SELECT min(u.at) FILTER (WHERE what = 'resolved') AS resolved_at,
         min(u.value_ms) FILTER (WHERE what = 'lag_min') AS lag_min_ms,
         max(u.value_ms) FILTER (WHERE what = 'lag_max') AS lag_max_ms
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

-- An agent that was killed could not say that its session was over: it ended with the life, at the latest.
CREATE VIEW plegwatch.stream_sessions WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, s.opened_at, s.armed_at,
       coalesce(s.closed_at, CASE WHEN e.closed_at IS NOT NULL OR e.life < n.life THEN greatest(e.last_at, s.opened_at) END)
         AS closed_at,
       s.code, s.message, s.events, s.replayed,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version,
       s.epoch, s.session_no AS session
FROM store.session s
LEFT JOIN store.node n ON n.node_id = s.node_id
LEFT JOIN store.cluster c ON c.cluster_id = s.cluster_id
LEFT JOIN store.epoch e ON e.node_id = s.node_id AND e.epoch = s.epoch
LEFT JOIN store.context x ON x.ctx_id = s.ctx_id;

CREATE VIEW plegwatch.mode_changes WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, m.not_before, m.at, m.model, m.from_mode, m.to_mode, nullif(m.reason, '') AS reason,
       m.proof, x.epoch, m.seq, nullif(x.kubelet_version, '') AS kubelet_version
FROM store.mode_change m
LEFT JOIN store.node n ON n.node_id = m.node_id
LEFT JOIN store.cluster c ON c.cluster_id = m.cluster_id
LEFT JOIN store.context x ON x.ctx_id = m.ctx_id;

-- An agent that was killed could not close what was open: it lasts until the next life begins, which then tells its own.
CREATE VIEW plegwatch.gaps WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, g.scope, g.cause, g.from_at,
       coalesce(g.to_at, CASE WHEN g.scope <> 'seq' AND next.base_at IS NOT NULL THEN greatest(next.base_at, g.from_at) END) AS to_at,
       g.epoch, g.from_seq, g.to_seq, g.records,
       g.filled_at, g.gap_id, g.bytes
FROM store.gap g
LEFT JOIN store.node n ON n.node_id = g.node_id
LEFT JOIN store.cluster c ON c.cluster_id = g.cluster_id
LEFT JOIN LATERAL (
  SELECT min(e.base_at) AS base_at FROM store.epoch e WHERE e.node_id = g.node_id AND e.prev = g.epoch
) next ON true;

-- Two lives of an agent can share a minute: their figures are added.
CREATE VIEW plegwatch.relist_minutes WITH (security_invoker = true) AS
SELECT m.cluster, m.node, m.minute, m.relists, m.errors,
       least(store.hist_quantile(m.hist, 0.5), m.max_ms) AS p50_ms,
       least(store.hist_quantile(m.hist, 0.9), m.max_ms) AS p90_ms,
       least(store.hist_quantile(m.hist, 0.99), m.max_ms) AS p99_ms,
       m.max_ms, m.hist, m.sandboxes, m.containers, m.bytes,
       m.expected, m.matched, m.unobservable, m.covered_ms, m.span_ms, m.day
FROM (
  SELECT c.name AS cluster, n.name AS node, s.minute, s.day,
         sum(s.relists) AS relists, sum(s.errors) AS errors, max(s.max_us) / 1000.0::float8 AS max_ms,
         store.hist_sum(s.hist::int4[]) AS hist, max(s.sandboxes) AS sandboxes, max(s.containers) AS containers,
         sum(s.bytes)::int8 AS bytes, sum(s.expected) AS expected, sum(s.matched) AS matched,
         sum(s.unobservable) AS unobservable, sum(s.covered_us)::float8 / 1000 AS covered_ms,
         sum(s.span_us)::float8 / 1000 AS span_ms
  FROM store.sample s
  LEFT JOIN store.node n ON n.node_id = s.node_id
  LEFT JOIN store.cluster c ON c.cluster_id = s.cluster_id
  GROUP BY c.name, n.name, s.minute, s.day
) m;

-- The same by the hour, kept for longer than minutes are.
CREATE VIEW plegwatch.relist_hours WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, h.hour, h.minutes, h.relists, h.errors,
       least(store.hist_quantile(h.hist, 0.5), h.max_us / 1000.0::float8) AS p50_ms,
       least(store.hist_quantile(h.hist, 0.9), h.max_us / 1000.0::float8) AS p90_ms,
       least(store.hist_quantile(h.hist, 0.99), h.max_us / 1000.0::float8) AS p99_ms,
       h.max_us / 1000.0::float8 AS max_ms, h.hist, h.sandboxes, h.containers, h.bytes,
       h.expected, h.matched, h.unobservable, h.covered_us / 1000.0::float8 AS covered_ms,
       h.span_us / 1000.0::float8 AS span_ms
FROM store.sample_hour h
LEFT JOIN store.node n ON n.node_id = h.node_id
LEFT JOIN store.cluster c ON c.cluster_id = h.cluster_id;

-- What the kubelet says of itself; a row only where it was asked.
CREATE VIEW plegwatch.kubelet_minutes WITH (security_invoker = true) AS
SELECT m.cluster, m.node, m.minute, m.relists, store.hist_quantile(m.hist, store.kubelet_hist_bounds(), 0.99) AS relist_p99_ms, m.hist,
       m.last_seen_age_ms, m.discarded, m.stream_errors, m.list_p99_ms, m.day, m.relist_period_ms
FROM (
  SELECT c.name AS cluster, n.name AS node, s.minute, s.day,
         sum(s.k_relists) AS relists, store.hist_sum(s.k_hist::int4[]) AS hist,
         max(s.k_last_seen_age_ms) AS last_seen_age_ms, sum(s.k_discarded) AS discarded,
         max(s.k_stream_errors) AS stream_errors, max(s.k_list_p99_ms) AS list_p99_ms,
         sum(s.k_interval_us)::float8 / 1000 / nullif(sum(s.k_intervals), 0) AS relist_period_ms
  FROM store.sample s
  LEFT JOIN store.node n ON n.node_id = s.node_id
  LEFT JOIN store.cluster c ON c.cluster_id = s.cluster_id
  WHERE s.k_relists IS NOT NULL
  GROUP BY c.name, n.name, s.minute, s.day
) m;

CREATE VIEW plegwatch.node_conditions WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, k.at, k.status, k.reason, k.message, k.pleg_seen_ago_ms, k.threshold_ms
FROM store.node_condition k
LEFT JOIN store.node n ON n.node_id = k.node_id
LEFT JOIN store.cluster c ON c.cluster_id = k.cluster_id;

-- Refused input belongs to no node: `node` is always null, and claimed_node is only what the input said. `bytes` is its size.
CREATE VIEW plegwatch.rejected WITH (security_invoker = true) AS
SELECT c.name AS cluster, NULL::text AS node, r.at, r.lane, r.reason, r.claimed_node, r.size AS bytes, r.times,
       r.last_at, r.problem, r.head
FROM store.rejected r
LEFT JOIN store.cluster c ON c.cluster_id = r.cluster_id;
