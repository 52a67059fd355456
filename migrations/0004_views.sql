-- The views: what people read, and the public contract. Every view starts with `cluster, node`; times are timestamptz; durations
-- end in _ms; columns are only ever appended. Names come by LEFT JOIN: a row without a known name is shown without it, never hidden.
--
-- `day` is the partition key of events, changes and minutes: a condition on it reads fewer partitions.

-- The mode of each node's kubelet changed from one to the other at that time: the changes that agents saw, and those that follow from
-- when an agent ended or became silent. From its last scrape on nobody observes the kubelet, so its mode is unknown from then on, unless
-- the next agent scraped it within two minutes: a mode that both saw lasted in between. These rows have no seq.
CREATE VIEW store.mode_transition WITH (security_invoker = true) AS
SELECT node_id, cluster_id, NULL::uuid AS epoch, context_id, seq, at, not_before, model, from_mode, to_mode, reason, proof
FROM store.mode_change
UNION ALL
SELECT e.node_id, e.cluster_id, e.epoch, last.context_id, NULL, t.at, e.kubelet_seen_to,
       CASE WHEN t.is_end THEN 'Unknown' ELSE last.model END, CASE WHEN t.is_end THEN last.to_mode ELSE 'Unknown' END,
       CASE WHEN t.is_end THEN 'Unknown' ELSE last.to_mode END, CASE WHEN t.is_end THEN 'NotObserved' ELSE last.reason END,
       jsonb_build_object('v', 1)
FROM (
  -- next_seen_from: the first scrape of the epochs that observed the kubelet after this one, or while this one did.
  -- An earlier machine of the same name had another kubelet.
  SELECT e.*, min(e.kubelet_seen_from) OVER (
           PARTITION BY e.node_id, e.last_seen < m.replaced_at
           ORDER BY e.kubelet_seen_to DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS next_seen_from
  FROM store.epoch e JOIN store.node m ON m.node_id = e.node_id WHERE e.kubelet_seen_to IS NOT NULL
) e
JOIN store.node n ON n.node_id = e.node_id
CROSS JOIN LATERAL (VALUES (e.kubelet_seen_to, true), (e.next_seen_from, false)) AS t (at, is_end)
CROSS JOIN LATERAL (
  SELECT m.* FROM store.mode_change m
  -- The first condition is always true: it makes a condition on the time of the transition apply before this search.
  WHERE t.at IS NOT NULL AND m.node_id = e.node_id AND m.at <= e.kubelet_seen_to
  ORDER BY m.at DESC, m.seq DESC LIMIT 1
) last
WHERE last.to_mode <> 'Unknown' AND t.at IS NOT NULL
  AND coalesce(e.next_seen_from, now()) > e.kubelet_seen_to + interval '2 minutes'
  -- The present agent reports itself what it can no longer observe.
  AND (e.next_seen_from IS NOT NULL OR e.incarnation < n.incarnation OR n.last_seen < now() - store.silent_after())
  -- The next agent reported the mode that it found.
  AND (t.is_end OR NOT EXISTS (
    SELECT FROM store.mode_change m WHERE m.node_id = e.node_id AND m.at > e.kubelet_seen_to AND m.at <= e.next_seen_from));

-- The present state of a node, as its agent reports it. An agent that was never seen, is silent, or has started and not reported yet, says nothing of
-- the present.
CREATE VIEW store.node_detail WITH (security_invoker = true) AS
SELECT n.node_id, c.name AS cluster, n.name AS node, n.first_seen, n.last_seen,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version, nullif(x.agent_version, '') AS agent_version,
       coalesce(s.stream_state, 'Unknown') AS stream_state, coalesce(s.mode, 'Unknown') AS mode,
       coalesce(s.mode_since, (SELECT max(e.kubelet_seen_to) FROM store.epoch e
                               WHERE e.node_id = n.node_id AND coalesce(e.last_seen >= n.replaced_at, true))) AS mode_since,
       n.node_uid, s.stream_since, nullif(coalesce(s.stream_reason, absent.reason), '') AS stream_reason,
       nullif(s.stream_error, '') AS stream_error, s.relist_healthy,
       nullif(coalesce(s.relist_reason, absent.reason), '') AS relist_reason, coalesce(s.model, 'Unknown') AS model,
       nullif(coalesce(s.mode_reason, absent.reason), '') AS mode_reason, s.kubelet_stream_errors, s.kubelet_error, s.kubelet_identity,
       nullif(i.os_image, '') AS os_image, nullif(i.kernel_version, '') AS kernel_version, i.labels,
       store.fallback_consequence(s.mode, s.mode_reason, x.kubelet_version) AS consequence, s.pods_api_state,
       nullif(s.pods_api_reason, '') AS pods_api_reason,
       store.pool_of(i.labels) AS pool, r.node_deleted_at AS deleted_at
FROM store.node n
LEFT JOIN store.cluster c USING (cluster_id)
LEFT JOIN store.report r ON r.node_id = n.node_id
CROSS JOIN LATERAL (
  SELECT CASE WHEN n.last_seen IS NULL THEN 'NeverSeen' WHEN n.last_seen < now() - store.silent_after() THEN 'AgentSilent'
              ELSE 'NotReportedYet' END AS reason
) absent
LEFT JOIN store.node_state s ON s.node_id = n.node_id AND s.incarnation = n.incarnation AND absent.reason = 'NotReportedYet'
LEFT JOIN store.context x ON x.context_id = n.context_id
LEFT JOIN LATERAL (SELECT * FROM store.node_info i WHERE i.node_id = n.node_id ORDER BY i.at DESC LIMIT 1) i ON true;

CREATE VIEW plegwatch.nodes WITH (security_invoker = true) AS
SELECT cluster, node, first_seen, last_seen, runtime_name, runtime_version, kubelet_version, agent_version, stream_state, mode, mode_since, node_uid,
       stream_since, stream_reason, stream_error, relist_healthy, relist_reason, model, mode_reason, kubelet_stream_errors, kubelet_error,
       kubelet_identity, os_image, kernel_version, labels, consequence, pods_api_state, pods_api_reason, deleted_at
FROM store.node_detail;

CREATE VIEW plegwatch.epochs WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, e.epoch, e.prev, e.incarnation,
       coalesce(nullif(e.node_uid, ''), CASE WHEN coalesce(e.last_seen >= n.replaced_at, true) THEN n.node_uid END) AS node_uid, nullif(e.boot_id, '') AS boot_id, e.started_at,
       CASE WHEN e.closed_at IS NOT NULL OR e.incarnation < n.incarnation THEN coalesce(e.last_record_at, e.started_at) END AS ended_at,
       CASE WHEN e.closed_at IS NOT NULL THEN e.close_cause WHEN e.incarnation < n.incarnation THEN 'superseded' END AS end_cause,
       nullif(x.agent_version, '') AS agent_version,
       store.acked_seq(e.received, e.lost) AS acked_seq, e.complete_through,
       e.last_seq, store.count_seqs(e.received) AS records_stored, store.count_seqs(e.lost) AS records_lost, e.last_seen,
       e.decided_through, e.delay_us / -1000.0::float8 AS clock_ahead_ms, e.clock_moved_us / 1000.0::float8 AS clock_moved_ms,
       e.is_attributed AS attributed
FROM store.epoch e
LEFT JOIN store.node n USING (node_id)
LEFT JOIN store.cluster c ON c.cluster_id = e.cluster_id
LEFT JOIN LATERAL (
  SELECT agent_version FROM store.context x WHERE x.node_id = e.node_id AND x.epoch = e.epoch ORDER BY context_no DESC LIMIT 1
) x ON true;

-- Flags are cast to bool: of those that are compared with 0 the planner expects one in two hundred, and looks up the container of each event.
CREATE VIEW plegwatch.container_events WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, x.epoch, e.seq, e.received_at, store.time_of_ns(e.created_ns) AS created_at,
       store.event_type_name(e.flags & 255) AS event_type,
       o.container_id AS container_id, (e.flags & 1024)::bool AS is_sandbox,
       s.container_id AS sandbox_id,
       store.uid_text(o.pod_uid) AS pod_uid, o.pod_namespace, o.pod_name, substring(o.container_name FROM '.+') AS container_name, o.attempt,
       (e.flags & 256)::bool AS replayed, (e.flags & 512)::bool AS has_sandbox_status,
       store.exit_code(e.flags) AS exit_code, store.exit_reason(e.flags) AS exit_reason,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version,
       e.created_ns, e.day
FROM store.container_event e
LEFT JOIN store.node n ON n.node_id = e.node_id
LEFT JOIN store.cluster c ON c.cluster_id = e.cluster_id
LEFT JOIN store.context x ON x.context_id = e.context_id
LEFT JOIN store.container o ON o.node_id = e.node_id AND o.container_key = e.container_key AND o.day = e.day
LEFT JOIN store.container s ON s.node_id = e.node_id AND s.container_key = o.sandbox_key AND s.day = e.day;

CREATE VIEW plegwatch.relist_changes WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, x.epoch, h.seq, h.window_from, h.window_to,
       o.container_id AS container_id, (h.states & 256)::bool AS is_sandbox,
       store.uid_text(o.pod_uid) AS pod_uid, o.pod_namespace, o.pod_name, substring(o.container_name FROM '.+') AS container_name,
       store.pleg_state_name(h.states & 15) AS old_state, store.pleg_state_name((h.states >> 4) & 15) AS new_state,
       store.pleg_event_names(h.pleg_events) AS pleg_events,
       s.container_id AS sandbox_id, h.day
FROM store.relist_change h
LEFT JOIN store.node n ON n.node_id = h.node_id
LEFT JOIN store.cluster c ON c.cluster_id = h.cluster_id
LEFT JOIN store.context x ON x.context_id = h.context_id
LEFT JOIN store.container o ON o.node_id = h.node_id AND o.container_key = h.container_key AND o.day = h.day
LEFT JOIN store.container s ON s.node_id = h.node_id AND s.container_key = o.sandbox_key AND s.day = h.day;

-- With the numbers of node and cluster, for other views. The kubelet's knowledge:
--   kubelet_at_least_ms, _at_most_ms   bounds of the kubelet lag: of a miss by its proof; of kubelet_late until the kubelet was asked, and until its
--                                      status showed it, the pod ended or another container replaced it, at the latest; null where the runtime took
--                                      the change back
--   publishing_min_ms, _max_ms         the status lag less the kubelet lag, between the bounds of both
CREATE VIEW store.finding_detail WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, f.finding_id, f.kind, f.event_type, nullif(f.cause, '') AS cause,
       f.container_id, f.pod_uid, f.pod_namespace, f.pod_name, nullif(f.container_name, '') AS container_name,
       f.window_from, f.window_to, f.occurred_at, f.detected_at, u.resolved_at,
       f.lateness_us / 1000.0::float8 AS lateness_ms, f.delivery_us / 1000.0::float8 AS delivery_ms,
       u.lag_min_ms, u.lag_max_ms, u.lag_anomalous, coalesce(k.mode, 'Unknown') AS mode,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(coalesce(k.version, x.kubelet_version), '') AS kubelet_version, f.proof,
       x.epoch, f.seq, u.lag_reason, f.container_name = '' AS is_sandbox, f.node_id, f.cluster_id,
       w.knew AS kubelet_knew, w.why AS kubelet_why, w.at_least_ms AS kubelet_at_least_ms, w.at_most_ms AS kubelet_at_most_ms,
       store.not_negative(u.lag_min_ms - w.at_most_ms) AS publishing_min_ms, store.not_negative(u.lag_max_ms - w.at_least_ms) AS publishing_max_ms,
       f.day, f.context_id, k.mode_reason
FROM store.finding f
LEFT JOIN store.node n ON n.node_id = f.node_id
LEFT JOIN store.cluster c ON c.cluster_id = f.cluster_id
LEFT JOIN store.context x ON x.context_id = f.context_id
LEFT JOIN LATERAL (
  SELECT min(u.at) FILTER (WHERE what = 'resolved') AS resolved_at,
         min(u.note) FILTER (WHERE what = 'resolved') AS resolved_cause,
         min(u.value_ms) FILTER (WHERE what = 'lag_min') AS lag_min_ms,
         max(u.value_ms) FILTER (WHERE what = 'lag_max') AS lag_max_ms,
         min(u.note) FILTER (WHERE what = 'lag_reason') AS lag_reason,
         bool_and(u.value_ms > 0) FILTER (WHERE what = 'lag_anomalous') AS lag_anomalous
  FROM store.finding_update u WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id
) u ON true
LEFT JOIN store.epoch e ON e.node_id = f.node_id AND e.epoch = x.epoch
-- A proof comes from an agent: any JSON.
CROSS JOIN LATERAL (
  SELECT CASE WHEN f.kind = 'kubelet_late' THEN 'not_shown' WHEN f.kind = 'missed' THEN substring(f.proof #>> '{kubelet,is}' FROM '^(?:shown|not_shown|not_observed)$') END AS knew
) s
CROSS JOIN LATERAL (
  SELECT s.knew, CASE WHEN s.knew = 'not_observed' THEN left(f.proof #>> '{kubelet,why}', 64) END AS why,
         CASE WHEN f.kind = 'kubelet_late' THEN f.lateness_us / 1000.0::float8
              WHEN s.knew = 'shown' THEN store.proof_ms(f.proof #> '{kubelet,atLeast}')
              WHEN s.knew = 'not_shown'
                THEN store.not_negative(extract(epoch FROM store.proof_time(e.started_at, f.proof #> '{kubelet,until}') - f.window_to)::float8 * 1000) END AS at_least_ms,
         CASE WHEN u.resolved_cause = 'state_went_back' THEN NULL
              WHEN f.kind = 'kubelet_late'
                THEN store.not_negative(extract(epoch FROM u.resolved_at - coalesce(f.occurred_at, f.window_from))::float8 * 1000)
              WHEN s.knew = 'shown' THEN store.proof_ms(f.proof #> '{kubelet,atMost}') END AS at_most_ms
) w
-- The kubelet's mode at that time, if an agent observed it: the one it last changed to, else the one it first changed from, else the
-- present one. Between the two scrapes around a change it is unknown, except that a kubelet that was restarted has its mode since it started.
-- Likewise its version, which is empty where it is not known: a kubelet that replaced another one before an event was judged did not run when it came.
LEFT JOIN LATERAL (
  SELECT CASE WHEN after.not_before <= moment.at THEN after.meanwhile ELSE coalesce(before.to_mode, after.from_mode, s.mode) END AS mode,
         nullif(CASE WHEN after.not_before <= moment.at THEN CASE WHEN after.meanwhile = after.to_mode THEN after.reason END
                     WHEN before.to_mode IS NOT NULL THEN before.reason
                     WHEN after.not_before IS NULL THEN s.mode_reason END, '') AS mode_reason,
         CASE WHEN after.not_before > moment.at OR after.not_before IS NULL OR before.version = after.version THEN before.version
              WHEN after.meanwhile = after.to_mode THEN after.version ELSE '' END AS version
  FROM (SELECT coalesce(f.occurred_at, f.window_to, f.detected_at) AS at) moment
  LEFT JOIN LATERAL (
    SELECT m.to_mode, m.reason, v.kubelet_version AS version FROM store.mode_change m LEFT JOIN store.context v ON v.context_id = m.context_id
    WHERE m.node_id = f.node_id AND m.at <= moment.at
    ORDER BY m.at DESC, m.seq DESC LIMIT 1
  ) before ON true
  LEFT JOIN LATERAL (
    SELECT m.from_mode, m.to_mode, m.reason, m.not_before, v.kubelet_version AS version,
           CASE WHEN m.from_mode = m.to_mode OR m.proof ->> 'kubelet_restarted' IN ('start_time', 'machine')
                     AND jsonb_typeof(m.proof #> '{after,process_start}') = 'number' THEN m.to_mode ELSE 'Unknown' END AS meanwhile
    FROM store.mode_change m LEFT JOIN store.context v ON v.context_id = m.context_id
    WHERE m.node_id = f.node_id AND m.at > moment.at
    ORDER BY m.at, m.seq LIMIT 1
  ) after ON true
  LEFT JOIN store.node_state s ON s.node_id = f.node_id AND s.incarnation = n.incarnation AND s.mode_since <= moment.at
  WHERE EXISTS (
    SELECT FROM store.epoch e
    WHERE e.node_id = f.node_id AND e.kubelet_seen_from <= moment.at
      -- The scrapes of the present minute are not stored yet.
      AND (moment.at <= e.kubelet_seen_to
           OR e.incarnation = n.incarnation AND n.last_seen >= now() - store.silent_after()))
) k ON true;

CREATE VIEW plegwatch.findings WITH (security_invoker = true) AS
SELECT cluster, node, finding_id, kind, event_type, cause, container_id, pod_uid, pod_namespace, pod_name, container_name, window_from, window_to,
       occurred_at, detected_at, resolved_at, lateness_ms, delivery_ms, lag_min_ms, lag_max_ms, lag_anomalous, mode, runtime_name, runtime_version,
       kubelet_version, proof, epoch, seq, lag_reason, is_sandbox, kubelet_knew, kubelet_why, kubelet_at_least_ms, kubelet_at_most_ms,
       publishing_min_ms, publishing_max_ms, mode_reason
FROM store.finding_detail;

-- From when until when each epoch observed its node, on the timeline of the epoch. An epoch without a record is left out, here and where the
-- next one is looked for: the first record of an agent says how the one before it ended, so an agent that ended before that left
-- it to the one after it.
--
--   next_started_at   when the node's next incarnation started, as far as the store knows
--   ended_at          the last moment that was observed; null while the agent runs
--   decided_through   of everything that happened before, its records say whether the event came
--   end_cause         what that agent or the next one gives as the cause of its end; `silent` if nobody does
--   declared          whether an agent said so: the epoch's own, which recorded that it stopped (an open gap `agent`), or the next
--                     one, which found it in the spool (its gap `agent` or `spool`). If nobody said it, it is the last thing known of
--                     the epoch, less the three seconds for which a reader may be silent before that shows, once the next
--                     incarnation has started or nothing was stored for three minutes
--
-- Epochs of one boot share its monotonic clock. After a reboot only the wall clock connects two epochs, and it may have been set
-- meanwhile, or have stood still with the node: what it says counts only within two minutes of the last thing known of the epoch.
CREATE VIEW store.epoch_span WITH (security_invoker = true) AS
SELECT e.node_id, e.cluster_id, e.epoch, e.started_at, e.last_seq, e.complete_through, next.started_at AS next_started_at,
       coalesce(own.from_at, successor.from_at) IS NOT NULL AS declared, coalesce(own.cause, successor.cause, 'silent') AS end_cause,
       coalesce(e.decided_through, e.started_at) AS decided_through,
       coalesce(
         own.from_at,
         CASE WHEN next.boot_id = e.boot_id
              THEN e.started_at + (next.started_mono - e.started_mono) * interval '1 microsecond' + (successor.from_at - next.started_at)
              WHEN successor.from_at BETWEEN known.until - interval '2 minutes' AND known.until + interval '2 minutes'
              THEN successor.from_at END,
         CASE WHEN next.started_at IS NOT NULL OR e.last_seen < now() - store.silent_after()
              THEN greatest(e.started_at, known.until - interval '3 seconds') END
       ) AS ended_at
FROM store.epoch e
CROSS JOIN LATERAL (SELECT greatest(e.complete_through, e.last_record_at, e.started_at) AS until) known
LEFT JOIN LATERAL (
  SELECT x.epoch, x.boot_id, x.started_mono, x.started_at FROM store.epoch x
  WHERE x.node_id = e.node_id AND x.incarnation > e.incarnation AND x.last_seq > 0 ORDER BY x.incarnation LIMIT 1
) next ON true
LEFT JOIN LATERAL (
  SELECT min(g.from_at) AS from_at, min(g.cause) AS cause FROM store.gap g
  WHERE g.node_id = e.node_id AND g.epoch = e.epoch AND g.scope = 'agent' AND g.to_at IS NULL
) own ON true
LEFT JOIN LATERAL (
  SELECT min(g.from_at) AS from_at, min(g.cause) AS cause FROM store.gap g
  WHERE g.node_id = e.node_id AND g.epoch = next.epoch AND g.scope IN ('agent', 'spool') AND g.to_at IS NOT NULL
) successor ON true
WHERE e.last_seq > 0;

-- The part of a calm time, up to ten minutes, that a killed agent had not written yet: from the end of its last row. One that stopped has written its
-- last minute. is_covered: a session was open that had shown an event, so that the stream was observed. has_kubelet: its rows say how the kubelet
-- relists.
CREATE VIEW store.unwritten_end WITH (security_invoker = true) AS
SELECT s.node_id, s.epoch, s.end_cause, m.ended_at AS from_at, s.ended_at AS to_at, m.kubelet_relists IS NOT NULL AS has_kubelet,
       coalesce((SELECT c.closed_at IS NULL AND c.armed_at IS NOT NULL FROM store.stream_session c
                 WHERE c.node_id = s.node_id AND c.epoch = s.epoch ORDER BY c.session_no DESC LIMIT 1), false) AS is_covered
FROM store.epoch_span s
CROSS JOIN LATERAL (
  SELECT m.ended_at, m.kubelet_relists FROM store.relist_minute m
  WHERE m.node_id = s.node_id AND m.minute BETWEEN s.started_at - interval '10 minutes' AND s.ended_at
    AND m.day BETWEEN ((s.started_at - interval '10 minutes') AT TIME ZONE 'UTC')::date AND (s.ended_at AT TIME ZONE 'UTC')::date
    AND m.context_id = ANY (ARRAY(SELECT x.context_id FROM store.context x WHERE x.node_id = s.node_id AND x.epoch = s.epoch))
  ORDER BY m.minute DESC LIMIT 1
) m
WHERE s.decided_through < s.ended_at AND s.end_cause NOT IN ('stopped', 'suspended') AND m.ended_at < s.ended_at;

-- An agent that was killed could not record the end of its session: the session ended with the epoch.
CREATE VIEW plegwatch.stream_sessions WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, s.opened_at, s.armed_at,
       coalesce(s.closed_at, CASE WHEN e.closed_at IS NOT NULL OR e.incarnation < n.incarnation
                                  THEN (SELECT greatest(p.ended_at, s.opened_at) FROM store.epoch_span p
                                        WHERE p.node_id = s.node_id AND p.epoch = s.epoch) END) AS closed_at,
       s.code, s.message, s.events, s.replayed,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version,
       s.epoch, s.session_no
FROM store.stream_session s
LEFT JOIN store.node n ON n.node_id = s.node_id
LEFT JOIN store.cluster c ON c.cluster_id = s.cluster_id
LEFT JOIN store.epoch e ON e.node_id = s.node_id AND e.epoch = s.epoch
LEFT JOIN store.context x ON x.context_id = s.context_id;

CREATE VIEW plegwatch.mode_changes WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, m.not_before, m.at, m.model, m.from_mode, m.to_mode, nullif(m.reason, '') AS reason,
       m.proof, coalesce(m.epoch, x.epoch) AS epoch, m.seq, nullif(x.kubelet_version, '') AS kubelet_version
FROM store.mode_transition m
LEFT JOIN store.node n ON n.node_id = m.node_id
LEFT JOIN store.cluster c ON c.cluster_id = m.cluster_id
LEFT JOIN store.context x ON x.context_id = m.context_id;

-- A gap that its agent left open, above all the last one (`agent`, `stopped`), lasts until the next incarnation starts; lists, scrapes and the
-- kubelet's status that it waited for, until nobody did. Where no agent
-- said how an epoch ended, the gap `agent` `silent` says that nothing is known of the time after it; it disappears if more arrives. Nothing more is
-- decided after the end of an epoch: the gap `findings` says since when a finding may be lacking, and why it ended.
CREATE VIEW plegwatch.gaps WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, g.scope, g.cause, g.from_at, g.to_at, g.epoch, g.from_seq, g.to_seq, g.records,
       g.filled_at, g.gap_id, g.record_bytes
FROM store.node n
LEFT JOIN store.cluster c ON c.cluster_id = n.cluster_id
CROSS JOIN LATERAL (
  SELECT g.scope, g.cause,
         CASE WHEN g.scope = 'agent' AND g.cause = 'rebooted' THEN least(g.to_at, coalesce((
           SELECT s.ended_at FROM store.epoch_span s
           WHERE s.node_id = g.node_id AND s.epoch = (
             SELECT p.epoch FROM store.epoch e JOIN store.epoch p ON p.node_id = e.node_id AND p.incarnation < e.incarnation AND p.last_seq > 0
             WHERE e.node_id = g.node_id AND e.epoch = g.epoch ORDER BY p.incarnation DESC LIMIT 1)
         ), g.from_at)) ELSE g.from_at END AS from_at,
         coalesce(g.to_at, (
           SELECT greatest(s.to_at, g.from_at)
           FROM (SELECT CASE WHEN g.scope IN ('list', 'kubelet', 'kubelet_status') THEN coalesce(s.ended_at, s.next_started_at) ELSE s.next_started_at END AS to_at
                 FROM store.epoch_span s WHERE s.node_id = g.node_id AND s.epoch = g.epoch AND g.scope <> 'seq') s
           WHERE s.to_at IS NOT NULL
         )) AS to_at,
         g.epoch, g.from_seq, g.to_seq, g.records, g.filled_at, g.gap_id, g.record_bytes
  FROM store.gap g
  WHERE g.node_id = n.node_id
  UNION ALL
  SELECT 'agent', 'silent', s.ended_at, s.next_started_at, s.epoch, NULL, NULL, NULL, NULL, md5(s.epoch || ':silent')::uuid, NULL
  FROM store.epoch_span s
  WHERE s.node_id = n.node_id AND NOT s.declared AND s.ended_at < coalesce(s.next_started_at, 'infinity')
  UNION ALL
  SELECT 'findings', s.end_cause, s.decided_through, s.ended_at, s.epoch, NULL, NULL, NULL, NULL, md5(s.epoch || ':findings')::uuid, NULL
  FROM store.epoch_span s
  WHERE s.node_id = n.node_id AND s.decided_through < s.ended_at
  UNION ALL
  SELECT w.scope, u.end_cause, u.from_at, u.to_at, u.epoch, NULL, NULL, NULL, NULL, md5(u.epoch || ':' || w.scope)::uuid, NULL
  FROM store.unwritten_end u
  CROSS JOIN (VALUES ('list'), ('kubelet')) AS w (scope)
  WHERE u.node_id = n.node_id AND u.from_at < u.to_at - interval '2 minutes' AND (w.scope = 'list' OR u.has_kubelet)
) g;

CREATE TYPE plegwatch.undeclared_gap AS (cluster text, node text, scope text, from_at timestamptz, to_at timestamptz, epoch uuid);

-- Periods that neither evidence nor a gap covers: there should be none, and a row is a defect of plegwatch. Checks each epoch from
-- its start to the last moment that was observed, or up to which its records have arrived; how the time between two epochs is
-- covered is said at `store.epoch_span`. Older epochs than findings are kept are left out.
--
--   stream            covered by a session from its first event to its end
--   list, kubelet     covered by the minutes with a relist, or a scrape of the kubelet. Holes of up to two minutes are left out: a
--                     relist may take place once in 66 s, and the last row of an agent that is killed is not recorded; of more than two
--                     minutes of it, the gaps say so
CREATE FUNCTION plegwatch.undeclared_gaps(since timestamptz DEFAULT '-infinity', until timestamptz DEFAULT 'infinity')
RETURNS SETOF plegwatch.undeclared_gap LANGUAGE sql STABLE PARALLEL SAFE AS $$
SELECT c.name, n.name, h.scope, h.from_at, h.to_at, h.epoch
FROM store.node n
JOIN store.cluster c ON c.cluster_id = n.cluster_id
CROSS JOIN LATERAL (
  WITH kept AS (
    SELECT now() - max(value::int4) FILTER (WHERE key = 'finding_retention_days') * interval '1 day' AS gaps,
           now() - max(value::int4) FILTER (WHERE key = 'event_retention_days') * interval '1 day' AS minutes
    FROM store.setting
  ), span AS (
    SELECT s.epoch, s.last_seq, greatest(s.started_at, since, kept.gaps) AS from_at,
           least(coalesce(s.ended_at, s.complete_through), until) AS to_at,
           -- Only the end of a calm time says how it was: that is still to come, or a gap that follows from the last minute.
           s.ended_at IS NULL AS is_running,
           s.ended_at IS NULL OR s.decided_through < s.ended_at AND s.end_cause NOT IN ('stopped', 'suspended') AS lacks_end
    FROM store.epoch_span s, kept
    WHERE s.node_id = n.node_id AND s.started_at < until AND coalesce(s.ended_at, s.complete_through) > greatest(since, kept.gaps)
  ), session AS (
    SELECT s.epoch, s.armed_at, coalesce(s.closed_at, lead(s.opened_at) OVER (PARTITION BY s.epoch ORDER BY s.session_no), 'infinity') AS closed_at
    FROM store.stream_session s WHERE s.node_id = n.node_id AND s.epoch IN (SELECT epoch FROM span)
  ), minute AS (
    SELECT x.epoch, m.ended_at - m.span_us * interval '1 microsecond' AS from_at, m.ended_at, m.relists, m.kubelet_relists
    FROM store.relist_minute m
    JOIN store.context x ON x.node_id = m.node_id AND x.context_id = m.context_id, kept
    -- Each bound by itself: that of `since` leaves out partitions.
    WHERE m.node_id = n.node_id AND m.day >= (since AT TIME ZONE 'UTC')::date - 1 AND m.day <= (until AT TIME ZONE 'UTC')::date
      AND m.day >= (kept.minutes AT TIME ZONE 'UTC')::date - 1
  ), gap AS (
    SELECT g.epoch, g.scope, g.cause, g.from_at, coalesce(g.to_at, 'infinity') AS to_at
    FROM store.gap g JOIN span s ON s.epoch = g.epoch WHERE g.node_id = n.node_id AND g.scope <> 'seq'
  ), loss AS (
    -- When the lost records were written: between those around them, however late the loss was declared. Minutes are written at their ends.
    SELECT w.scope, g.epoch, coalesce(CASE WHEN w.scope = 'stream' THEN before.at ELSE before.minute END, '-infinity') AS from_at,
           CASE WHEN g.to_seq >= s.last_seq THEN 'infinity' ELSE coalesce(after.at, 'infinity') END AS to_at
    FROM store.gap g JOIN span s ON s.epoch = g.epoch
    CROSS JOIN LATERAL (
      SELECT max(r.at) AS at, max(r.minute) AS minute
      FROM store.context x CROSS JOIN LATERAL (
        (SELECT v.received_at AS at, NULL::timestamptz AS minute FROM store.container_event v
         WHERE v.node_id = x.node_id AND v.context_id = x.context_id AND v.seq < g.from_seq ORDER BY v.seq DESC LIMIT 1)
        UNION ALL
        (SELECT h.window_to, NULL FROM store.relist_change h
         WHERE h.node_id = x.node_id AND h.context_id = x.context_id AND h.seq < g.from_seq ORDER BY h.seq DESC LIMIT 1)
        UNION ALL
        (SELECT m.ended_at, m.ended_at FROM store.relist_minute m
         WHERE m.node_id = x.node_id AND m.context_id = x.context_id AND m.seq < g.from_seq ORDER BY m.seq DESC LIMIT 1)
        UNION ALL
        (SELECT f.detected_at, NULL FROM store.finding f
         WHERE f.node_id = x.node_id AND f.context_id = x.context_id AND f.seq < g.from_seq ORDER BY f.seq DESC LIMIT 1)
      ) r
      WHERE x.node_id = g.node_id AND x.epoch = g.epoch
    ) before
    CROSS JOIN LATERAL (
      SELECT min(r.at) AS at
      FROM store.context x CROSS JOIN LATERAL (
        (SELECT v.received_at AS at FROM store.container_event v
         WHERE v.node_id = x.node_id AND v.context_id = x.context_id AND v.seq > g.to_seq ORDER BY v.seq LIMIT 1)
        UNION ALL
        (SELECT h.window_to FROM store.relist_change h
         WHERE h.node_id = x.node_id AND h.context_id = x.context_id AND h.seq > g.to_seq ORDER BY h.seq LIMIT 1)
        UNION ALL
        (SELECT m.ended_at FROM store.relist_minute m
         WHERE m.node_id = x.node_id AND m.context_id = x.context_id AND m.seq > g.to_seq ORDER BY m.seq LIMIT 1)
        UNION ALL
        (SELECT f.detected_at FROM store.finding f
         WHERE f.node_id = x.node_id AND f.context_id = x.context_id AND f.seq > g.to_seq ORDER BY f.seq LIMIT 1)
      ) r
      WHERE x.node_id = g.node_id AND x.epoch = g.epoch
    ) after
    CROSS JOIN (VALUES ('stream'), ('list'), ('kubelet')) AS w (scope)
    WHERE g.node_id = n.node_id AND g.scope = 'seq' AND g.filled_at IS NULL
  ), told AS (
    -- From when until when a record says that nothing else lasts: a session, or an open gap, excludes another one, and a relist a gap of lists.
    SELECT 'stream' AS scope, epoch, armed_at AS from_at, closed_at AS to_at FROM session WHERE armed_at IS NOT NULL
    UNION ALL
    SELECT 'list', epoch, from_at, from_at FROM minute WHERE relists > 0
    UNION ALL
    SELECT 'kubelet', epoch, from_at, from_at FROM minute WHERE kubelet_relists IS NOT NULL
    UNION ALL
    SELECT w.scope, g.epoch, g.from_at, g.to_at FROM gap g, (VALUES ('stream'), ('list'), ('kubelet')) AS w (scope)
    WHERE g.scope IN (w.scope, 'agent') AND g.to_at = 'infinity'
  ), moment AS (
    -- Sorted together, so that the work does not grow with the product of losses and minutes.
    SELECT scope, epoch, from_at AS at, to_at AS told_to, NULL AS lost_from, NULL AS lost_to FROM told WHERE epoch IN (SELECT epoch FROM loss)
    UNION ALL
    SELECT l.scope, l.epoch, m.at, NULL, m.lost_from, m.lost_to
    FROM loss l, LATERAL (VALUES (l.from_at, NULL, l.to_at), (l.to_at, l.from_at, NULL)) AS m (at, lost_from, lost_to)
  ), known AS (
    SELECT m.*, max(told_to) OVER before >= at AS is_told, told_to IS NOT NULL AND max(lost_to) OVER before >= at AS is_begun_in_loss
    FROM moment m WINDOW before AS (PARTITION BY scope, epoch ORDER BY at RANGE UNBOUNDED PRECEDING)
  ), excuse AS (
    -- But what they began lasts, and its end repeats when it began: until the agent died, or another loss swallowed its end too.
    SELECT scope, epoch, lost_from AS from_at,
           CASE WHEN is_told THEN at WHEN next IS NULL THEN 'infinity' WHEN next = next_in_loss THEN next ELSE at END AS to_at
    FROM (
      SELECT k.*, min(at) FILTER (WHERE told_to IS NOT NULL) OVER after AS next, min(at) FILTER (WHERE is_begun_in_loss) OVER after AS next_in_loss
      FROM known k WINDOW after AS (PARTITION BY scope, epoch ORDER BY at RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
    ) k
    WHERE lost_from IS NOT NULL
  ), watched AS (
    SELECT 'stream' AS scope, s.epoch, s.from_at, s.to_at, interval '0' AS precision FROM span s
    UNION ALL
    SELECT w.scope, s.epoch, greatest(s.from_at, kept.minutes),
           least(s.to_at, CASE WHEN s.lacks_end THEN (SELECT greatest(max(m.ended_at), CASE WHEN s.is_running THEN s.to_at - interval '11 minutes' END)
                                                  FROM minute m WHERE m.epoch = s.epoch) END), interval '2 minutes'
    FROM span s, kept, (VALUES ('list'), ('kubelet')) AS w (scope)
    -- Without --kubelet-url there are neither scrapes nor gaps of the kubelet.
    WHERE w.scope = 'list' OR EXISTS (SELECT FROM minute m WHERE m.epoch = s.epoch AND m.kubelet_relists IS NOT NULL)
       OR EXISTS (SELECT FROM gap g WHERE g.epoch = s.epoch AND g.scope = 'kubelet')
  ), piece AS (
    SELECT w.scope, w.epoch, w.from_at, w.from_at AS to_at FROM watched w
    UNION ALL
    SELECT w.scope, w.epoch, w.to_at, w.to_at FROM watched w
    UNION ALL
    SELECT 'stream', epoch, armed_at, closed_at FROM session
    UNION ALL
    SELECT 'list', epoch, from_at, ended_at FROM minute WHERE relists > 0
    UNION ALL
    SELECT 'kubelet', epoch, from_at, ended_at FROM minute WHERE kubelet_relists IS NOT NULL
    UNION ALL
    SELECT w.scope, g.epoch, g.from_at, g.to_at FROM gap g, (VALUES ('stream'), ('list'), ('kubelet')) AS w (scope)
    WHERE g.scope IN (w.scope, 'agent', 'spool') OR g.scope = 'stream' AND g.cause = 'agent_stalled'
    UNION ALL
    SELECT scope, epoch, from_at, to_at FROM excuse
  ), ordered AS (
    SELECT p.scope, p.epoch, p.from_at, w.precision,
           max(p.to_at) OVER (PARTITION BY p.scope, p.epoch ORDER BY p.from_at, p.to_at
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
    FROM piece p JOIN watched w ON w.scope = p.scope AND w.epoch = p.epoch
    WHERE p.from_at <= w.to_at AND p.to_at >= w.from_at
  )
  SELECT o.scope, o.epoch, o.reached AS from_at, o.from_at AS to_at
  FROM ordered o
  WHERE o.from_at > o.reached + o.precision
) h
$$;

REVOKE ALL ON FUNCTION plegwatch.undeclared_gaps(timestamptz, timestamptz) FROM PUBLIC;

-- Two incarnations of an agent can share a minute: their figures are added. Without a relist there is no longest one, and of null and a number,
-- least is the number.
CREATE VIEW plegwatch.relist_minutes WITH (security_invoker = true) AS
SELECT m.cluster, m.node, m.minute, m.relists, m.errors,
       least(store.hist_quantile(m.hist, 0.5), m.max_ms) AS p50_ms,
       least(store.hist_quantile(m.hist, 0.9), m.max_ms) AS p90_ms,
       least(store.hist_quantile(m.hist, 0.99), m.max_ms) AS p99_ms,
       m.max_ms, m.hist, m.sandboxes, m.containers, m.exited_sandboxes, m.exited_containers, m.sandbox_list_bytes, m.container_list_bytes,
       m.cpu_some, m.io_some, m.io_full, m.memory_some, m.memory_full,
       m.expected, m.matched, m.unobservable, m.covered_ms, m.span_ms, m.day,
       nullif(m.runtime_name, '') AS runtime_name, nullif(m.runtime_version, '') AS runtime_version,
       nullif(m.kubelet_version, '') AS kubelet_version, m.from_at, m.to_at
FROM (
  SELECT c.name AS cluster, n.name AS node, r.minute, r.day, min(r.ended_at - r.span_us * interval '1 microsecond') AS from_at,
         max(r.ended_at) AS to_at, sum(r.relists) AS relists, sum(r.errors) AS errors, max(r.max_us) FILTER (WHERE r.relists > 0) / 1000.0::float8 AS max_ms,
         store.hist_sum(r.hist::int4[]) AS hist, max(r.sandboxes) AS sandboxes, max(r.containers) AS containers,
         max(r.exited_sandboxes) AS exited_sandboxes, max(r.exited_containers) AS exited_containers,
         max(r.sandbox_list_bytes) AS sandbox_list_bytes, max(r.container_list_bytes) AS container_list_bytes,
         store.share_waited(sum(r.cpu_some_us), sum(r.pressure_us)) AS cpu_some,
         store.share_waited(sum(r.io_some_us), sum(r.pressure_us)) AS io_some,
         store.share_waited(sum(r.io_full_us), sum(r.pressure_us)) AS io_full,
         store.share_waited(sum(r.memory_some_us), sum(r.pressure_us)) AS memory_some,
         store.share_waited(sum(r.memory_full_us), sum(r.pressure_us)) AS memory_full,
         sum(r.expected) AS expected, sum(r.matched) AS matched,
         sum(r.unobservable) AS unobservable, sum(r.covered_us)::float8 / 1000 AS covered_ms,
         sum(r.span_us)::float8 / 1000 AS span_ms,
         max(x.runtime_name) AS runtime_name, max(x.runtime_version) AS runtime_version, max(x.kubelet_version) AS kubelet_version
  FROM store.relist_minute r
  LEFT JOIN store.node n ON n.node_id = r.node_id
  LEFT JOIN store.cluster c ON c.cluster_id = r.cluster_id
  LEFT JOIN store.context x ON x.context_id = r.context_id
  GROUP BY c.name, n.name, r.minute, r.day
) m;

-- The two calls of each relist, and whether their answers were complete. One that failed has its begin and its end for both. For a row about more
-- than two minutes, only the first relist and the last two are here.
CREATE VIEW plegwatch.relists WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node,
       m.began_at + l.sandboxes_from * interval '1 microsecond' AS sandboxes_from,
       m.began_at + l.sandboxes_to * interval '1 microsecond' AS sandboxes_to,
       m.began_at + l.containers_from * interval '1 microsecond' AS containers_from,
       m.began_at + l.containers_to * interval '1 microsecond' AS containers_to,
       NOT (l.flags & 1)::bool AS sandboxes_whole, NOT (l.flags & 2)::bool AS containers_whole, (l.flags & 4)::bool AS failed,
       x.epoch, r.seq, r.day
FROM store.relist_minute r
LEFT JOIN store.node n ON n.node_id = r.node_id
LEFT JOIN store.cluster c ON c.cluster_id = r.cluster_id
LEFT JOIN store.context x ON x.context_id = r.context_id
CROSS JOIN LATERAL (SELECT r.ended_at - r.span_us * interval '1 microsecond' AS began_at) m
CROSS JOIN LATERAL store.relists_of(r.lists) AS l;

-- Every list call. A condition on minute keeps others from being unpacked.
CREATE VIEW store.list_call WITH (security_invoker = true) AS
SELECT m.node_id, m.cluster_id, x.epoch, m.day, m.minute, m.ended_at, l.from_at, l.to_at
FROM store.relist_minute m
JOIN store.context x ON x.context_id = m.context_id
CROSS JOIN LATERAL (SELECT m.ended_at - m.span_us * interval '1 microsecond' AS began_at) b
CROSS JOIN LATERAL store.relists_of(m.lists) AS r
CROSS JOIN LATERAL (VALUES
  (b.began_at + r.sandboxes_from * interval '1 microsecond', b.began_at + r.sandboxes_to * interval '1 microsecond'),
  (b.began_at + r.containers_from * interval '1 microsecond', b.began_at + r.containers_to * interval '1 microsecond')) AS l (from_at, to_at);

-- The same by the hour and context, kept longer than minutes.
CREATE VIEW plegwatch.relist_hours WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, h.hour, bit_count(h.minute_bits::bit(64))::int4 AS minutes, h.relists, h.errors,
       least(store.hist_quantile(h.hist, 0.5), m.max_ms) AS p50_ms,
       least(store.hist_quantile(h.hist, 0.9), m.max_ms) AS p90_ms,
       least(store.hist_quantile(h.hist, 0.99), m.max_ms) AS p99_ms,
       m.max_ms, h.hist, h.sandboxes, h.containers, h.exited_sandboxes, h.exited_containers, h.sandbox_list_bytes, h.container_list_bytes,
       store.share_waited(h.cpu_some_us, h.pressure_us) AS cpu_some,
       store.share_waited(h.io_some_us, h.pressure_us) AS io_some,
       store.share_waited(h.io_full_us, h.pressure_us) AS io_full,
       store.share_waited(h.memory_some_us, h.pressure_us) AS memory_some,
       store.share_waited(h.memory_full_us, h.pressure_us) AS memory_full,
       h.expected, h.matched, h.unobservable, h.covered_us / 1000.0::float8 AS covered_ms,
       h.span_us / 1000.0::float8 AS span_ms, h.day,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version, x.epoch
FROM store.relist_hour h
LEFT JOIN store.node n ON n.node_id = h.node_id
LEFT JOIN store.cluster c ON c.cluster_id = h.cluster_id
LEFT JOIN store.context x ON x.context_id = h.context_id
CROSS JOIN LATERAL (SELECT CASE WHEN h.relists > 0 THEN h.max_us / 1000.0::float8 END AS max_ms) m;

-- Minutes in which the agent asked for statuses because relists were slow.
CREATE VIEW plegwatch.status_checks WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, r.minute, r.statuses_asked AS asked, r.statuses_slow AS slow, r.slow_status_at AS at,
       store.uid_text(o.pod_uid) AS pod_uid, o.pod_namespace, o.pod_name, nullif(o.container_name, '') AS container_name, o.container_id,
       coalesce(o.sandbox_key = o.container_key, false) AS is_sandbox, r.slow_status_us::float8 / 1000 AS status_ms, r.slow_status_timed_out AS timed_out,
       CASE WHEN r.relists > 0 THEN r.max_us::float8 / 1000 END AS longest_relist_ms,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version, x.epoch, r.seq, r.day, r.hang_call AS list_call, r.hang_verdict AS verdict
FROM store.relist_minute r
LEFT JOIN store.node n ON n.node_id = r.node_id
LEFT JOIN store.cluster c ON c.cluster_id = r.cluster_id
LEFT JOIN store.context x ON x.context_id = r.context_id
LEFT JOIN store.container o ON o.node_id = r.node_id AND o.container_key = r.slow_status_key AND o.day = r.day
WHERE r.statuses_asked IS NOT NULL;

-- Why a list that hangs got its verdict, in a sentence: for reports, timelines and views alike.
CREATE FUNCTION store.list_hang_why(call text, verdict text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE verdict
  WHEN 'container' THEN call || ' waits for this container, whose status does not answer; others answer'
  WHEN 'pod' THEN call || ' waits for this pod, whose sandbox''s status does not answer; others answer'
  WHEN 'runtime' THEN call || ' does not answer, and statuses do not either, or only slowly'
  WHEN 'none' THEN call || ' does not answer, but every status does'
  ELSE call || ' does not answer; too few statuses were asked for to say more' END;

-- One row for each list of an agent that hung, by the last minute that has it. An agent that ended meanwhile did not see the end.
CREATE VIEW store.list_hang WITH (security_invoker = true) AS
SELECT h.node_id, h.cluster_id, h.context_id, x.epoch, h.seq, h.day, h.hang_call AS list_call, h.hang_from AS from_at,
       coalesce(h.hang_to, CASE WHEN s.ended_at IS NOT NULL THEN greatest(s.ended_at, h.hang_from) END) AS to_at, h.hang_waited_us::float8 / 1000 AS waited_ms, h.hang_verdict AS verdict,
       store.list_hang_why(h.hang_call, h.hang_verdict) AS why, store.uid_text(o.pod_uid) AS pod_uid, o.pod_namespace, o.pod_name,
       nullif(o.container_name, '') AS container_name, o.container_id,
       h.hang_listed AS listed, h.hang_asked AS asked, h.hang_quick AS quick, h.hang_unanswered AS unanswered
FROM (
  SELECT DISTINCT ON (r.node_id, r.hang_from) r.* FROM store.relist_minute r
  WHERE r.hang_from IS NOT NULL ORDER BY r.node_id, r.hang_from, r.minute DESC, r.seq DESC
) h
LEFT JOIN store.context x ON x.context_id = h.context_id
LEFT JOIN store.epoch_span s ON s.node_id = h.node_id AND s.epoch = x.epoch AND h.hang_to IS NULL
LEFT JOIN store.container o ON o.node_id = h.node_id AND o.container_key = h.slow_status_key AND o.day = h.day
                           AND h.hang_verdict IN ('container', 'pod');

CREATE VIEW plegwatch.list_hangs WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, h.list_call, h.from_at, h.to_at, h.waited_ms, h.verdict, h.why, h.pod_uid, h.pod_namespace, h.pod_name,
       h.container_name, h.container_id, h.listed, h.asked, h.quick, h.unanswered,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version, h.epoch, h.seq, h.day
FROM store.list_hang h
LEFT JOIN store.node n ON n.node_id = h.node_id
LEFT JOIN store.cluster c ON c.cluster_id = h.cluster_id
LEFT JOIN store.context x ON x.context_id = h.context_id;

-- The kubelet's own figures; a row only for minutes in which it was scraped.
CREATE VIEW plegwatch.kubelet_minutes WITH (security_invoker = true) AS
SELECT m.cluster, m.node, m.minute, m.relists, store.hist_quantile(m.hist, store.kubelet_hist_bounds(), 0.99) AS relist_p99_ms, m.hist,
       m.last_seen_age_ms, m.discarded, m.stream_errors, m.list_p99_ms, m.day, m.relist_period_ms,
       m.counted_from, m.counted_to, m.relist_ms, m.longest_list_ms,
       m.sandbox_lists, m.sandbox_list_errors, m.sandbox_list_ms, m.container_lists, m.container_list_errors, m.container_list_ms, m.sandbox_statuses,
       m.sandbox_status_errors, m.sandbox_status_ms, m.container_statuses, m.container_status_errors, m.container_status_ms,
       m.cpu_share, m.resident_bytes,
       nullif(m.runtime_name, '') AS runtime_name, nullif(m.runtime_version, '') AS runtime_version,
       nullif(m.kubelet_version, '') AS kubelet_version
FROM (
  SELECT c.name AS cluster, n.name AS node, r.minute, r.day,
         sum(r.kubelet_relists) AS relists, store.hist_sum(r.kubelet_hist::int4[]) AS hist,
         max(r.kubelet_last_seen_age_ms) AS last_seen_age_ms, sum(r.kubelet_discarded) AS discarded,
         max(r.kubelet_stream_errors) AS stream_errors, max(r.kubelet_list_p99_ms) AS list_p99_ms,
         sum(r.kubelet_interval_us)::float8 / 1000 / nullif(sum(r.kubelet_intervals), 0) AS relist_period_ms,
         min(r.kubelet_counted_from) AS counted_from, max(r.kubelet_counted_to) AS counted_to,
         sum(r.kubelet_relist_us)::float8 / 1000 AS relist_ms,
         max(r.kubelet_longest_list_us)::float8 / 1000 AS longest_list_ms,
         sum(r.kubelet_sandbox_lists) AS sandbox_lists,
         CASE WHEN sum(r.kubelet_sandbox_lists) IS NOT NULL THEN coalesce(sum(r.kubelet_sandbox_list_errors), 0) END AS sandbox_list_errors,
         sum(r.kubelet_sandbox_list_us)::float8 / 1000 AS sandbox_list_ms,
         sum(r.kubelet_container_lists) AS container_lists,
         CASE WHEN sum(r.kubelet_container_lists) IS NOT NULL THEN coalesce(sum(r.kubelet_container_list_errors), 0) END AS container_list_errors,
         sum(r.kubelet_container_list_us)::float8 / 1000 AS container_list_ms,
         sum(r.kubelet_sandbox_statuses) AS sandbox_statuses,
         CASE WHEN sum(r.kubelet_sandbox_statuses) IS NOT NULL THEN coalesce(sum(r.kubelet_sandbox_status_errors), 0) END AS sandbox_status_errors,
         sum(r.kubelet_sandbox_status_us)::float8 / 1000 AS sandbox_status_ms,
         sum(r.kubelet_container_statuses) AS container_statuses,
         CASE WHEN sum(r.kubelet_container_statuses) IS NOT NULL THEN coalesce(sum(r.kubelet_container_status_errors), 0) END AS container_status_errors,
         sum(r.kubelet_container_status_us)::float8 / 1000 AS container_status_ms,
         sum(r.kubelet_cpu_us)::float8 / 1e6
           / nullif(sum(extract(epoch FROM r.kubelet_counted_to - r.kubelet_counted_from)) FILTER (WHERE r.kubelet_cpu_us IS NOT NULL), 0)::float8
           AS cpu_share,
         max(r.kubelet_resident_bytes) AS resident_bytes,
         max(x.runtime_name) AS runtime_name, max(x.runtime_version) AS runtime_version, max(x.kubelet_version) AS kubelet_version
  FROM store.relist_minute r
  LEFT JOIN store.node n ON n.node_id = r.node_id
  LEFT JOIN store.cluster c ON c.cluster_id = r.cluster_id
  LEFT JOIN store.context x ON x.context_id = r.context_id
  WHERE r.kubelet_relists IS NOT NULL
  GROUP BY c.name, n.name, r.minute, r.day
) m;

-- The same by the hour and context, kept longer than minutes.
CREATE VIEW plegwatch.kubelet_hours WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, h.hour, h.kubelet_relists AS relists,
       store.hist_quantile(h.kubelet_hist, store.kubelet_hist_bounds(), 0.99) AS relist_p99_ms, h.kubelet_hist AS hist,
       h.kubelet_last_seen_age_ms AS last_seen_age_ms, h.kubelet_discarded AS discarded, h.kubelet_stream_errors AS stream_errors,
       h.kubelet_list_p99_ms AS list_p99_ms, h.kubelet_interval_us::float8 / 1000 / nullif(h.kubelet_intervals, 0) AS relist_period_ms,
       h.kubelet_counted_us::float8 / 1000 AS counted_ms, h.kubelet_relist_us::float8 / 1000 AS relist_ms,
       h.kubelet_longest_list_us::float8 / 1000 AS longest_list_ms,
       h.kubelet_sandbox_lists AS sandbox_lists,
       CASE WHEN h.kubelet_sandbox_lists IS NOT NULL THEN coalesce(h.kubelet_sandbox_list_errors, 0) END AS sandbox_list_errors,
       h.kubelet_sandbox_list_us::float8 / 1000 AS sandbox_list_ms,
       h.kubelet_container_lists AS container_lists,
       CASE WHEN h.kubelet_container_lists IS NOT NULL THEN coalesce(h.kubelet_container_list_errors, 0) END AS container_list_errors,
       h.kubelet_container_list_us::float8 / 1000 AS container_list_ms,
       h.kubelet_sandbox_statuses AS sandbox_statuses,
       CASE WHEN h.kubelet_sandbox_statuses IS NOT NULL THEN coalesce(h.kubelet_sandbox_status_errors, 0) END AS sandbox_status_errors,
       h.kubelet_sandbox_status_us::float8 / 1000 AS sandbox_status_ms,
       h.kubelet_container_statuses AS container_statuses,
       CASE WHEN h.kubelet_container_statuses IS NOT NULL THEN coalesce(h.kubelet_container_status_errors, 0) END AS container_status_errors,
       h.kubelet_container_status_us::float8 / 1000 AS container_status_ms,
       h.kubelet_cpu_us::float8 / nullif(h.kubelet_cpu_counted_us, 0) AS cpu_share, h.kubelet_resident_bytes AS resident_bytes, h.day,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version, x.epoch
FROM store.relist_hour h
LEFT JOIN store.node n ON n.node_id = h.node_id
LEFT JOIN store.cluster c ON c.cluster_id = h.cluster_id
LEFT JOIN store.context x ON x.context_id = h.context_id
WHERE h.kubelet_relists IS NOT NULL;

-- Since when each node's kubelet is in a mode, and until when that is certain.
CREATE VIEW store.mode_period WITH (security_invoker = true) AS
SELECT m.node_id, m.to_mode AS mode, m.at AS from_at, coalesce(lead(m.not_before) OVER of_node, 'infinity') AS to_at
FROM store.mode_transition m WHERE m.from_mode <> m.to_mode
WINDOW of_node AS (PARTITION BY m.node_id ORDER BY m.at, m.seq);

-- Kubelet lag: how long after a start or a stop the kubelet's own status showed it. A row for each node, minute and kind of transition that has one; by
-- the hour also for each context. A quantile is an upper bound: that of its bucket.
CREATE VIEW plegwatch.kubelet_lag_minutes WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, r.minute, h.event_type, store.hist_count(h.hist) AS transitions,
       store.hist_quantile_bound(h.hist, store.kubelet_lag_bounds(), 0.5) AS p50_ms,
       store.hist_quantile_bound(h.hist, store.kubelet_lag_bounds(), 0.99) AS p99_ms, h.hist, coalesce(p.mode, 'Unknown') AS mode,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version, x.epoch, r.seq, r.day
FROM store.relist_minute r
CROSS JOIN LATERAL (VALUES ('STARTED', r.kubelet_start_hist::int4[]), ('STOPPED', r.kubelet_stop_hist::int4[])) AS h (event_type, hist)
LEFT JOIN store.node n ON n.node_id = r.node_id
LEFT JOIN store.cluster c ON c.cluster_id = r.cluster_id
LEFT JOIN store.context x ON x.context_id = r.context_id
LEFT JOIN store.mode_period p ON p.node_id = r.node_id AND p.from_at <= r.ended_at - r.span_us * interval '1 microsecond' AND p.to_at >= r.ended_at
-- Most rows have neither: they are left out before anything is looked up for them.
WHERE h.hist IS NOT NULL AND (r.kubelet_start_hist IS NOT NULL OR r.kubelet_stop_hist IS NOT NULL);

CREATE VIEW plegwatch.kubelet_lag_hours WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, r.hour, h.event_type, store.hist_count(h.hist) AS transitions,
       store.hist_quantile_bound(h.hist, store.kubelet_lag_bounds(), 0.5) AS p50_ms,
       store.hist_quantile_bound(h.hist, store.kubelet_lag_bounds(), 0.99) AS p99_ms, h.hist, coalesce(p.mode, 'Unknown') AS mode,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version, x.epoch, r.day
FROM store.relist_hour r
CROSS JOIN LATERAL (VALUES ('STARTED', r.kubelet_start_hist), ('STOPPED', r.kubelet_stop_hist)) AS h (event_type, hist)
LEFT JOIN store.node n ON n.node_id = r.node_id
LEFT JOIN store.cluster c ON c.cluster_id = r.cluster_id
LEFT JOIN store.context x ON x.context_id = r.context_id
LEFT JOIN store.mode_period p ON p.node_id = r.node_id AND p.from_at <= r.hour AND p.to_at >= least(r.hour + interval '1 hour', now())
WHERE h.hist IS NOT NULL AND (r.kubelet_start_hist IS NOT NULL OR r.kubelet_stop_hist IS NOT NULL);

CREATE VIEW plegwatch.node_conditions WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, k.at, k.status, k.reason, k.message, k.pleg_seen_ago_ms, k.threshold_ms
FROM store.node_condition k
LEFT JOIN store.node n ON n.node_id = k.node_id
LEFT JOIN store.cluster c ON c.cluster_id = k.cluster_id;

CREATE VIEW plegwatch.not_ready_intervals WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, r.at AS from_at, r.next_at AS to_at,
       extract(epoch FROM coalesce(r.next_at, now()) - r.at)::float8 / 60 AS minutes, r.status, nullif(r.reason, '') AS reason, r.causes
FROM (
  SELECT r.*, lead(r.at) OVER (PARTITION BY r.node_id ORDER BY r.at) AS next_at FROM store.ready_change r
) r
LEFT JOIN store.node n ON n.node_id = r.node_id
LEFT JOIN store.cluster c ON c.cluster_id = r.cluster_id
WHERE r.status <> 'True';

CREATE VIEW plegwatch.node_info WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, i.at AS from_at, lead(i.at) OVER (PARTITION BY i.node_id ORDER BY i.at) AS to_at,
       nullif(i.os_image, '') AS os_image, nullif(i.kernel_version, '') AS kernel_version, i.labels
FROM store.node_info i
LEFT JOIN store.node n ON n.node_id = i.node_id
LEFT JOIN store.cluster c ON c.cluster_id = i.cluster_id;

-- One row per announced start or stop whose status lag is measured, also while its pod is still read if its kubelet fell back. With the numbers of
-- node and cluster, for other views.
CREATE VIEW store.status_lag_detail WITH (security_invoker = true) AS
SELECT l.node_id, l.cluster_id, l.at, l.event_type, l.lag_min_ms, l.lag_max_ms, l.happened_at, l.lag_reason, l.pod_namespace, l.pod_name,
       l.container_name, l.container_id, false AS is_read
FROM store.status_lag l
UNION ALL
SELECT w.node_id, w.cluster_id, w.stale_read_at, w.event_type, greatest(0, extract(epoch FROM w.stale_read_at - w.latest_at) * 1000)::float8, NULL,
       w.latest_at, NULL, w.pod_namespace, w.pod_name, w.container_name, w.container_id, true
FROM store.status_lag_watch w
WHERE w.kind = 'fallback' AND w.stale_read_at IS NOT NULL;

CREATE VIEW plegwatch.status_lags WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, l.at, l.event_type, l.lag_min_ms, l.lag_max_ms,
       CASE WHEN l.container_id IS NULL THEN 'sample' ELSE 'fallback' END AS kind, l.happened_at, l.lag_reason, l.pod_namespace, l.pod_name,
       l.container_name, l.container_id
FROM store.status_lag_detail l
LEFT JOIN store.node n ON n.node_id = l.node_id
LEFT JOIN store.cluster c ON c.cluster_id = l.cluster_id;

-- Refused input cannot be attributed: `node` is always null, and claimed_node is only what the input says. bytes: its size.
CREATE VIEW plegwatch.rejected WITH (security_invoker = true) AS
SELECT c.name AS cluster, NULL::text AS node, r.at, r.queue, r.reason, r.claimed_node, r.bytes, r.times,
       r.last_at, r.error, r.head
FROM store.rejected r
LEFT JOIN store.cluster c ON c.cluster_id = r.cluster_id;

-- Containers and states that listing could not see, and how likely a Generic PLEG would have missed them altogether.
--
--   life_min_ms, life_max_ms   bounds of how long it lasted
--   list_before, list_after    the lists that did not show it
--   relist_period_ms           of the kubelet, from the latest of the 15 minutes before that reports it; null without one
--   chance_min, chance_max     max(0, 1 - duration / period), for the longest and the shortest that it can have lasted.
--                              A probability, never a certainty
CREATE VIEW plegwatch.short_lives WITH (security_invoker = true) AS
SELECT f.cluster, f.node, f.finding_id, f.detected_at, f.cause, f.container_id,
       f.pod_uid, f.pod_namespace, f.pod_name, f.container_name,
       l.life_min_ms, l.life_max_ms, f.window_from AS list_before, f.window_to AS list_after,
       f.mode, k.relist_period_ms,
       store.chance_to_miss(l.life_max_ms, k.relist_period_ms) AS chance_min,
       store.chance_to_miss(l.life_min_ms, k.relist_period_ms) AS chance_max
FROM store.finding_detail f
-- A proof comes from an agent: any JSON.
CROSS JOIN LATERAL (
  SELECT CASE WHEN jsonb_typeof(f.proof -> 'lifeMinMs') = 'number'
              THEN least(greatest((f.proof -> 'lifeMinMs')::numeric, 0), 1e12)::float8 END AS life_min_ms,
         CASE WHEN jsonb_typeof(f.proof -> 'lifeMaxMs') = 'number'
              THEN least(greatest((f.proof -> 'lifeMaxMs')::numeric, 0), 1e12)::float8 END AS life_max_ms
) l
LEFT JOIN LATERAL (
  -- Two incarnations of an agent can share a minute.
  SELECT sum(m.kubelet_interval_us)::float8 / 1000 / nullif(sum(m.kubelet_intervals), 0) AS relist_period_ms FROM store.relist_minute m
  WHERE m.node_id = f.node_id AND m.minute > f.window_to - interval '15 minutes' AND m.minute <= f.window_to
    AND m.day BETWEEN ((f.window_to - interval '15 minutes') AT TIME ZONE 'UTC')::date AND (f.window_to AT TIME ZONE 'UTC')::date
  GROUP BY m.minute
  HAVING sum(m.kubelet_interval_us) > 0 AND sum(m.kubelet_intervals) > 0
  ORDER BY m.minute DESC LIMIT 1
) k ON true
WHERE f.kind = 'short_life';

-- The evidence of each finding, for somebody who wants to check it: a row for each time and each record, in words.
--   line             the order in which to read the rows
--   at, until        the time, or the period, that the row is about
--   fact, record     what was seen, and the view and key where it is stored; record is null for what only the proof says
CREATE VIEW plegwatch.finding_evidence WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, f.finding_id, f.kind, f.event_type, f.container_id, v.line, v.at, v.until, v.fact, v.record
FROM store.finding f
LEFT JOIN store.node n ON n.node_id = f.node_id
LEFT JOIN store.cluster c ON c.cluster_id = f.cluster_id
LEFT JOIN store.context x ON x.context_id = f.context_id
LEFT JOIN store.epoch e ON e.node_id = f.node_id AND e.epoch = x.epoch
CROSS JOIN LATERAL (
  SELECT coalesce(f.window_from, f.occurred_at, f.detected_at) AS from_at,
         concat_ws(' of ', f.event_type, coalesce('container or sandbox ' || f.container_id, 'the stream as a whole')) AS subject,
         CASE WHEN jsonb_typeof(f.proof) = 'object' THEN f.proof ELSE '{}' END AS proof
) w
CROSS JOIN LATERAL (
  SELECT 10 AS line, f.detected_at AS at, NULL::timestamptz AS until,
         concat('found: ', CASE WHEN f.kind = 'missed' AND EXISTS (
                  SELECT FROM store.finding_update u WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved')
                THEN 'overdue' ELSE f.kind END, ' ', w.subject, ' (' || nullif(f.cause, '') || ')') AS fact,
         format('findings %s, epoch %s seq %s', f.finding_id, x.epoch, f.seq) AS record
  UNION ALL
  SELECT 20, f.window_from, l.to_at,
         CASE WHEN w.proof -> 'lowerBoundKnown' = 'false' THEN 'nothing says since when it can have happened: this is the start of the agent'
              WHEN l.to_at IS NOT NULL THEN 'it had not happened yet when this list began'
              ELSE 'it had not happened yet: by its creation, by an event, or by the lead of a sandbox''s DELETED before a list' END,
         CASE WHEN l.to_at IS NOT NULL THEN format('relists, epoch %s, call from %s', x.epoch, f.window_from) END
  FROM (SELECT) AS once LEFT JOIN LATERAL (
    SELECT l.to_at FROM store.list_call l
    WHERE l.node_id = f.node_id AND l.epoch = x.epoch AND l.from_at = f.window_from
      AND l.day BETWEEN (f.window_from AT TIME ZONE 'UTC')::date - 1 AND (f.window_from AT TIME ZONE 'UTC')::date + 1
      AND l.minute BETWEEN f.window_from - interval '1 day' AND f.window_from + interval '15 minutes' AND l.ended_at >= f.window_from
    LIMIT 1
  ) l ON true
  WHERE f.window_from IS NOT NULL
  UNION ALL
  SELECT 30, coalesce(l.from_at, f.window_to), f.window_to,
         concat('it had happened by then: ', coalesce(w.proof ->> 'evidence', f.cause)),
         CASE WHEN l.from_at IS NOT NULL THEN format('relists, epoch %s, call until %s', x.epoch, f.window_to) END
  FROM (SELECT) AS once LEFT JOIN LATERAL (
    SELECT l.from_at FROM store.list_call l
    WHERE l.node_id = f.node_id AND l.epoch = x.epoch AND l.to_at = f.window_to
      AND l.day BETWEEN (f.window_to AT TIME ZONE 'UTC')::date - 1 AND (f.window_to AT TIME ZONE 'UTC')::date + 1
      AND l.minute BETWEEN f.window_to - interval '1 day' AND f.window_to + interval '15 minutes' AND l.ended_at >= f.window_to
    LIMIT 1
  ) l ON true
  WHERE f.window_to IS NOT NULL
  UNION ALL
  SELECT 40, h.window_from, h.window_to,
         format('lists showed it %s, then %s', store.pleg_state_name(h.states & 15), store.pleg_state_name((h.states >> 4) & 15)),
         format('relist_changes, epoch %s seq %s', hx.epoch, h.seq)
  FROM store.container o
  JOIN store.relist_change h ON h.node_id = o.node_id AND h.container_key = o.container_key AND h.day = o.day
  LEFT JOIN store.context hx ON hx.context_id = h.context_id
  WHERE o.node_id = f.node_id AND o.container_id = f.container_id
    AND o.day BETWEEN (w.from_at AT TIME ZONE 'UTC')::date AND (f.detected_at AT TIME ZONE 'UTC')::date
    AND h.window_to >= w.from_at - interval '1 hour' AND h.window_from <= f.detected_at
  UNION ALL
  SELECT 50, v.received_at, NULL,
         concat('event ', store.event_type_name(v.flags & 255), ' received', ', ' || store.exit_text(v.flags),
                CASE WHEN v.flags & 256 <> 0 THEN ', replayed from before the subscription' END),
         format('container_events, epoch %s seq %s', vx.epoch, v.seq)
  FROM store.container o
  JOIN store.container_event v ON v.node_id = o.node_id AND v.container_key = o.container_key AND v.day = o.day
  LEFT JOIN store.context vx ON vx.context_id = v.context_id
  WHERE o.node_id = f.node_id AND o.container_id = f.container_id
    AND o.day BETWEEN (w.from_at AT TIME ZONE 'UTC')::date AND (f.detected_at AT TIME ZONE 'UTC')::date + 1
    AND v.received_at BETWEEN w.from_at - interval '1 hour' AND f.detected_at + interval '1 hour'
  UNION ALL
  SELECT 51, w.from_at, f.detected_at, format('no event %s of it was received', f.event_type), 'container_events'
  WHERE f.event_type IS NOT NULL AND NOT EXISTS (
    SELECT FROM store.container o
    JOIN store.container_event v ON v.node_id = o.node_id AND v.container_key = o.container_key AND v.day = o.day
    WHERE o.node_id = f.node_id AND o.container_id = f.container_id
      AND o.day BETWEEN (w.from_at AT TIME ZONE 'UTC')::date - 1 AND (f.detected_at AT TIME ZONE 'UTC')::date
      AND store.event_type_name(v.flags & 255) = f.event_type AND v.received_at <= f.detected_at)
  UNION ALL
  SELECT 52, u.at, NULL, 'it was overdue: no such event of it had been received by then', format('findings %s', f.finding_id)
  FROM store.finding_update u WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what = 'overdue'
  UNION ALL
  SELECT 60, t.at, NULL, t.fact, NULL
  FROM (VALUES
    (store.proof_ns(w.proof #> '{exactTimes,createdNs}'), 'created, by its status'),
    (store.proof_ns(w.proof #> '{exactTimes,startedNs}'), 'started, by its status'),
    (store.proof_ns(w.proof #> '{exactTimes,finishedNs}'),
     concat('finished, by its status', ', exit ' || (w.proof #>> '{exactTimes,exitCode}'), ' ' || nullif(w.proof #>> '{exactTimes,reason}', ''))),
    (f.occurred_at, 'this is when it happened, on the clock of the agent')) AS t (at, fact)
  WHERE t.at IS NOT NULL
  UNION ALL
  SELECT 61, NULL, NULL,
         CASE WHEN w.proof ->> 'statusAnswer' = 'not_asked' THEN 'the runtime was not asked for its status'
              ELSE concat('the runtime was asked for its status: ', w.proof ->> 'statusAnswer') END, NULL
  WHERE w.proof ? 'statusAnswer'
  UNION ALL
  SELECT 70, s.opened_at, s.closed_at,
         format('subscription %s: first event %s, %s events in all, %s', s.session_no,
                coalesce('at ' || s.armed_at, 'never'), s.events, coalesce('ended with ' || s.code, 'no end recorded')),
         format('stream_sessions, epoch %s session_no %s', s.epoch, s.session_no)
  FROM store.stream_session s
  WHERE s.node_id = f.node_id AND s.epoch = x.epoch AND s.opened_at <= f.detected_at
    AND coalesce(s.closed_at, 'infinity') >= w.from_at
  UNION ALL
  SELECT 71, t.at, NULL, t.fact, NULL
  FROM (VALUES
    (store.proof_time(e.started_at, w.proof -> 'coveredSince'), 'the stream was watched without a gap from here on'),
    (store.proof_time(e.started_at, w.proof -> 'received'), 'the event that this is about was received'),
    (store.proof_time(e.started_at, w.proof -> 'firstReceived'), 'the same event was received before'),
    (store.proof_time(e.started_at, w.proof -> 'afterReceived'), concat('the event of a later stage was received: ', w.proof ->> 'after')),
    (store.proof_time(e.started_at, w.proof #> '{list,from}'), 'a list that began here had shown its stage passed'),
    (store.proof_time(e.started_at, w.proof #> '{lists,0,from}'), concat('a list that began here contradicts the event: ', w.proof #>> '{lists,0,shown}')),
    (store.proof_time(e.started_at, w.proof #> '{lists,1,from}'), concat('so does one that began here: ', w.proof #>> '{lists,1,shown}')),
    (store.proof_time(e.started_at, w.proof #> '{listedExited,from}'), 'a list that began here showed it exited'),
    (store.proof_time(e.started_at, w.proof #> '{listedRunning,from}'), 'a list that began here showed it running'),
    (store.proof_time(e.started_at, w.proof -> 'drainedTo'), 'the reader had read everything that was sent until here')) AS t (at, fact)
  WHERE t.at IS NOT NULL
  UNION ALL
  SELECT 62, t.at, t.until, t.fact, NULL
  FROM (VALUES
    (store.proof_time(e.started_at, w.proof -> 'watchSince'), NULL, 'the status of the kubelet was watched without a gap from here on'),
    (store.proof_time(e.started_at, w.proof -> 'asked'), store.proof_time(e.started_at, w.proof -> 'answered'),
     'the kubelet was asked for the pod; its status showed the container ' || (w.proof ->> 'podState')),
    (store.proof_time(e.started_at, w.proof #> '{kubelet,until}'), NULL,
     'the kubelet was asked for the pod; its status did not show this')) AS t (at, until, fact)
  WHERE t.at IS NOT NULL AND f.kind IN ('kubelet_late', 'missed')
  UNION ALL
  SELECT 80, g.from_at, g.to_at, format('gap of the scope %s: %s', g.scope, g.cause), format('gaps %s', g.gap_id)
  FROM plegwatch.gaps g
  WHERE g.cluster = c.name AND g.node = n.name AND g.scope <> 'kubelet' AND g.from_at <= f.detected_at
    AND coalesce(g.to_at, 'infinity') >= w.from_at
  UNION ALL
  SELECT 81, w.from_at, f.detected_at, 'the stream had no gap', 'gaps'
  WHERE NOT EXISTS (
    SELECT FROM plegwatch.gaps g
    WHERE g.cluster = c.name AND g.node = n.name AND g.scope IN ('stream', 'agent') AND g.from_at <= f.detected_at
      AND coalesce(g.to_at, 'infinity') >= w.from_at)
  UNION ALL
  SELECT 90, NULL, NULL,
         format('runtime %s %s, kubelet %s, agent %s; overdue after %s ms, missed after %s ms, late after %s ms, relists every %s ms',
                x.runtime_name, x.runtime_version,
                coalesce((SELECT d.kubelet_version FROM store.finding_detail d WHERE d.node_id = f.node_id AND d.finding_id = f.finding_id), 'unknown'),
                x.agent_version,
                x.overdue_after_us / 1000, x.missed_after_us / 1000, x.late_after_us / 1000, x.relist_period_us / 1000),
         format('epochs %s', x.epoch)
  UNION ALL
  SELECT 95, u.at, NULL, concat_ws(' ', 'later:', u.what, u.value_ms || CASE WHEN u.what <> 'lag_anomalous' THEN ' ms' ELSE '' END, u.note), format('findings %s', f.finding_id)
  FROM store.finding_update u WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what <> 'overdue'
) v;


-- When PLEG was unhealthy or relists were slow: was it a container, the runtime, the kubelet, or a node without time?
--
-- One row for each period in which a Node reported that PLEG was not healthy (`unhealthy`), and for each minute in which its
-- kubelet reported a relist of more than ten seconds, or none started in the last ten (`slow`; with Evented PLEG, where relists are 300 s apart,
-- the age is null). The lists of the kubelet and of the
-- agent are compared over the same period: both slow is the runtime, only the kubelet's is the kubelet. Anything that proves
-- none of them is `unknown`, and `why` says what is missing.
--
--   from_at, to_at   unhealthy: from one threshold before the condition, when PLEG was last seen active at the latest, until it
--                    recovered (null: not yet);
--                    slow: from the start of the longest list that ended, as far as it is proven, to the last scrape
--   kubelet_lists    slow: one took 5 s or more, and lists took at least half of the time of its relists and, if unhealthy, at least
--                    half of the period; failing: at least half of them failed. A call counts when it ends: nothing is known yet of
--                    one that hangs, and a period is not judged if the kubelet reported less than half of it. A relist that is slow
--                    for another reason (statuses, no CPU) is not_slow here.
--   our_lists        slow: the agent waited for lists (`list` gaps: slow, deadline_exceeded, unavailable), without the time in which
--                    it stalled or did not run, for at least half of the period (slow: half of the kubelet's longest list).
--                    A list that hangs is an open gap. fast: its minutes cover the period, none has a failure, a gap or a list of a
--                    second or more, and it listed so often that whatever held up the kubelet's longest list would have held up
--                    one of ours for more than that second.
--   hang             a list of the agent that hung in the period for at least half of it (slow: for 5 s, while the kubelet had not
--                    relisted for ten), and what it waited for (store.list_hang): the verdict on it is the smallest thing that is
--                    proven. It holds for the kubelet, which makes the same call, unless the lists of the kubelet were not slow.
--   node             where our lists were not fast, and an ordinary process of the node is known to have had no time: the agent did not get to run for
--                    a tenth of the period, and the kernel says what for: for at least half of the period all tasks that were not idle waited for
--                    the disk or for memory, or at least one waited for a processor for nine tenths of it. Pressure alone proves nothing about
--                    the runtime: on a node that is idle otherwise, a single reader of the disk is all tasks. It is shown beside the verdict, as is
--                    what was measured for less than half of the period. A container or pod that holds up a list is smaller; and where
--                    a list hung and every status was answered, the node had time.
--
-- A condition on node_id, at or day reaches the table, because there is no window function above it: a query for a few nodes or the latest condition
-- of each does not read the history of all.
CREATE VIEW store.pleg_verdict WITH (security_invoker = true) AS
WITH period AS (
  SELECT cluster_id, node_id, day, 'unhealthy' AS kind, at, message, pleg_seen_ago_ms, threshold_ms,
         at - coalesce(threshold_ms, 0) * interval '1 millisecond' AS from_at, next_at AS to_at,
         coalesce(next_at, now()) AS until
  FROM (
    SELECT k.*, (SELECT min(n.at) FROM store.node_condition n
                 WHERE n.node_id = k.node_id AND n.at > k.at AND n.day >= k.day) AS next_at
    FROM store.node_condition k
  ) transition
  -- The rule of src/controller/nodes/plegMessage.ts; every other row ends the period.
  WHERE status <> 'True' AND message ~ 'PLEG|\mpleg\M'
  UNION ALL
  SELECT cluster_id, node_id, day, 'slow', minute, NULL, NULL, NULL,
         least(kubelet_counted_from, kubelet_counted_to - kubelet_longest_list_us * interval '1 microsecond'),
         kubelet_counted_to, kubelet_counted_to
  FROM store.relist_minute
  WHERE kubelet_counted_to IS NOT NULL AND (kubelet_hist[12] > 0 OR kubelet_last_seen_age_ms > 10000)
), kubelet AS (
  SELECT p.*, k.*, extract(epoch FROM least(p.until, k.counted_to) - p.from_at)::float8 * 1000 AS counted_ms
  FROM period p
  CROSS JOIN LATERAL (
    SELECT max(m.kubelet_counted_to) AS counted_to, (sum(m.kubelet_sandbox_lists) + sum(m.kubelet_container_lists))::int8 AS lists,
           (coalesce(sum(m.kubelet_sandbox_list_errors), 0) + coalesce(sum(m.kubelet_container_list_errors), 0))::int8 AS list_errors,
           (sum(m.kubelet_sandbox_list_us) + sum(m.kubelet_container_list_us))::float8 / 1000 AS list_ms,
           max(m.kubelet_longest_list_us)::float8 / 1000 AS longest_list_ms, sum(m.kubelet_relist_us)::float8 / 1000 AS relist_ms,
           (sum(m.kubelet_sandbox_status_us) + sum(m.kubelet_container_status_us))::float8 / 1000 AS status_ms,
           coalesce(max(m.kubelet_last_seen_age_ms) > 10000, false) AS kubelet_hangs
    FROM store.relist_minute m
    WHERE m.node_id = p.node_id
      -- A minute that overlaps the period is not far from it: these conditions let an index find it.
      AND m.day BETWEEN ((p.from_at - interval '15 minutes') AT TIME ZONE 'UTC')::date AND ((p.until + interval '1 hour') AT TIME ZONE 'UTC')::date
      AND m.minute BETWEEN p.from_at - interval '15 minutes' AND p.until + interval '1 hour'
      -- A call that started in the period belongs to it even if it ended later.
      AND m.kubelet_counted_to > p.from_at
      AND least(m.kubelet_counted_from, m.kubelet_counted_to - m.kubelet_longest_list_us * interval '1 microsecond') < p.until
  ) k
), ours AS (
  SELECT k.*, m.*, g.*
  FROM kubelet k
  CROSS JOIN LATERAL (
    SELECT count(*) AS minutes, sum(m.relists)::int8 AS our_relists, sum(m.errors)::int8 AS our_errors,
           max(m.max_us)::float8 / 1000 AS our_longest_ms,
           max(m.span_us::float8 / 1000 / nullif(m.relists, 0)) AS our_period_ms, max(m.ended_at) AS our_minutes_to,
           sum(m.pressure_us)::float8 / 1000 AS pressure_ms,
           store.share_waited(sum(m.cpu_some_us), sum(m.pressure_us)) AS cpu_some,
           store.share_waited(sum(m.io_some_us), sum(m.pressure_us)) AS io_some,
           store.share_waited(sum(m.io_full_us), sum(m.pressure_us)) AS io_full,
           store.share_waited(sum(m.memory_some_us), sum(m.pressure_us)) AS memory_some,
           store.share_waited(sum(m.memory_full_us), sum(m.pressure_us)) AS memory_full,
           coalesce(sum(store.overlap_ms(m.ended_at - m.span_us * interval '1 microsecond', m.ended_at,
                                         k.from_at, least(k.until, k.counted_to))) FILTER (WHERE m.relists > 0), 0) AS our_minutes_ms
    FROM store.relist_minute m
    WHERE m.node_id = k.node_id
      AND m.day BETWEEN ((k.from_at - interval '15 minutes') AT TIME ZONE 'UTC')::date AND (k.until AT TIME ZONE 'UTC')::date
      AND m.minute BETWEEN k.from_at - interval '15 minutes' AND k.until
      AND m.ended_at > k.from_at AND m.ended_at - m.span_us * interval '1 microsecond' < k.until
  ) m
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE g.scope = 'list') AS list_gaps,
           coalesce(sum(store.overlap_ms(g.from_at, g.to_at, k.from_at, k.until)) FILTER (
             WHERE g.scope = 'stream'), 0) AS our_stalled_ms,
           greatest(0,
             coalesce(sum(store.overlap_ms(g.from_at, g.to_at, k.from_at, k.until)) FILTER (
               WHERE g.scope = 'list' AND g.cause IN ('slow', 'deadline_exceeded', 'unavailable')), 0)
             - coalesce(sum(store.overlap_ms(g.from_at, g.to_at, k.from_at, k.until)) FILTER (
               WHERE g.scope IN ('agent', 'stream')), 0)
           ) AS our_waiting_ms,
           -- How much longer a list has hung that hung at the end of the last minute: while the gap is open that was open then, or its deadline has passed.
           -- Every minute of a hang is recorded: where the next one is missing, nothing is known of later times.
           greatest(0,
             coalesce(max(store.overlap_ms(m.our_minutes_to, m.our_minutes_to + interval '1 minute', g.from_at, least(g.to_at, k.until))) FILTER (
               WHERE g.scope = 'list' AND g.is_open AND (g.from_at <= m.our_minutes_to OR g.cause = 'deadline_exceeded')), 0)
             - coalesce(sum(store.overlap_ms(m.our_minutes_to, m.our_minutes_to + interval '1 minute', g.from_at, least(g.to_at, k.until))) FILTER (
               WHERE g.scope IN ('agent', 'stream')), 0)
           ) AS our_hang_goes_on_ms
    FROM (
      -- A dead agent waits for no list. A minute after the last row of a silent one nobody knows whether it still does.
      SELECT g.scope, g.cause, g.from_at, g.to_at IS NULL AS is_open,
             least(coalesce(g.to_at, CASE WHEN g.scope <> 'agent' AND s.ended_at IS NOT NULL THEN greatest(s.ended_at, g.from_at) END,
                            s.next_started_at, now()),
                   CASE WHEN g.scope = 'list' AND g.to_at IS NULL
                        THEN greatest(g.from_at, m.our_minutes_to) + interval '1 minute' END) AS to_at
      FROM store.gap g LEFT JOIN store.epoch_span s ON s.node_id = g.node_id AND s.epoch = g.epoch AND g.to_at IS NULL
      WHERE g.node_id = k.node_id AND g.from_at < k.until
        AND (g.scope IN ('list', 'agent') OR g.scope = 'stream' AND g.cause = 'agent_stalled')
    ) g
    WHERE g.to_at > k.from_at
  ) g
), kubelet_judged AS (
  SELECT o.*,
         CASE
           WHEN coalesce(lists, 0) = 0 THEN 'unknown'
           WHEN kind = 'unhealthy' AND counted_ms * 2 < extract(epoch FROM until - from_at) * 1000 THEN 'unknown'
           WHEN list_errors * 2 >= lists AND longest_list_ms < 5000 THEN 'failing'
           WHEN longest_list_ms >= 5000 AND list_ms * 2 >= relist_ms AND (kind = 'slow' OR list_ms * 2 >= counted_ms) THEN 'slow'
           ELSE 'not_slow'
         END AS kubelet_lists,
         extract(epoch FROM until - from_at)::float8 * 1000 AS period_ms
  FROM ours o
), judged AS (
  SELECT o.*,
         CASE
           WHEN our_waiting_ms >= greatest(5000, CASE WHEN kind = 'slow' AND kubelet_lists = 'slow' THEN longest_list_ms
                                                      ELSE extract(epoch FROM until - from_at)::float8 * 1000 END / 2) THEN 'slow'
           WHEN list_gaps = 0 AND our_errors = 0 AND our_longest_ms < 1000 AND our_minutes_ms >= 0.9 * counted_ms
                AND CASE kubelet_lists WHEN 'slow' THEN longest_list_ms ELSE counted_ms END > 1.25 * our_period_ms + 2000 THEN 'fast'
           ELSE 'unknown'
         END AS our_lists
  FROM kubelet_judged o
), hung AS (
  SELECT j.*, h.*
  FROM judged j
  LEFT JOIN LATERAL (
    SELECT * FROM (
      SELECT m.hang_call AS list_call, m.hang_verdict, m.hang_asked AS statuses_asked, m.hang_quick AS statuses_quick,
             m.hang_unanswered AS statuses_unanswered, m.slow_status_key AS hung_key, m.day AS hung_day, m.minute AS hung_minute, m.seq AS hung_seq,
             least(m.hang_waited_us / 1000 + t.goes_on_ms,
                   store.overlap_ms(m.hang_from, coalesce(m.hang_to, m.ended_at + t.goes_on_ms * interval '1 millisecond'), j.from_at, j.until)) AS hung_ms
      FROM store.relist_minute m
      -- The last minute of a hang that lasts is up to a minute old, and the time that it is compared with ends now.
      CROSS JOIN LATERAL (SELECT CASE WHEN m.hang_to IS NULL AND m.ended_at = j.our_minutes_to THEN j.our_hang_goes_on_ms ELSE 0 END AS goes_on_ms) t
      WHERE m.node_id = j.node_id AND m.hang_from < j.until AND coalesce(m.hang_to, m.ended_at) > j.from_at
        AND m.day BETWEEN ((j.from_at - interval '15 minutes') AT TIME ZONE 'UTC')::date AND ((j.until + interval '15 minutes') AT TIME ZONE 'UTC')::date
        AND m.minute BETWEEN j.from_at - interval '15 minutes' AND j.until + interval '15 minutes'
    ) m
    WHERE (j.kubelet_lists <> 'not_slow' OR j.kubelet_hangs)
      AND hung_ms >= CASE WHEN j.kind = 'slow' AND j.kubelet_hangs THEN 5000 ELSE greatest(5000, j.period_ms / 2) END
    ORDER BY hang_verdict = 'unknown', hung_minute DESC, hung_seq DESC LIMIT 1
  ) h ON true
), pressed AS (
  SELECT h.*, l.lacking, CASE l.lacking WHEN 'disk' THEN io_full WHEN 'memory' THEN memory_full WHEN 'processor' THEN cpu_some END AS lacking_share,
         our_stalled_ms >= 0.1 * period_ms AS we_lacked_it
  FROM hung h
  CROSS JOIN LATERAL (
    SELECT CASE
             WHEN pressure_ms * 2 < period_ms OR our_lists = 'fast' OR hang_verdict = 'none' THEN NULL
             WHEN io_full >= 0.5 AND io_full >= memory_full THEN 'disk'
             WHEN memory_full >= 0.5 THEN 'memory'
             WHEN cpu_some >= 0.9 THEN 'processor'
           END AS lacking
  ) l
)
SELECT j.cluster_id, j.node_id, j.kind, j.from_at, j.to_at,
       -- The smallest first.
       CASE
         WHEN j.hang_verdict IN ('container', 'pod') THEN j.hang_verdict
         WHEN j.lacking IS NOT NULL AND j.we_lacked_it THEN 'node'
         WHEN j.hang_verdict IN ('runtime', 'none') THEN 'runtime'
         WHEN j.kubelet_lists IN ('slow', 'failing') AND j.our_lists = 'slow' THEN 'runtime'
         WHEN j.kubelet_lists IN ('slow', 'failing') AND j.our_lists = 'fast' THEN 'kubelet'
         ELSE 'unknown'
       END AS verdict,
       CASE
         WHEN j.hang_verdict IN ('container', 'pod') THEN store.list_hang_why(j.list_call, j.hang_verdict)
         WHEN j.lacking IS NOT NULL AND j.we_lacked_it
           THEN format('tasks of the node waited for its %s for %s %% of the time, and the agent did not run for %s %%', j.lacking,
                       round(100 * j.lacking_share), round(100 * j.our_stalled_ms / j.period_ms))
         WHEN j.hang_verdict <> 'unknown' THEN store.list_hang_why(j.list_call, j.hang_verdict)
         WHEN j.lists IS NULL THEN 'the kubelet reported nothing'
         WHEN j.kubelet_lists = 'unknown' THEN 'no list of the kubelet ended, or it reported too little of the period'
         WHEN j.kubelet_lists = 'not_slow' THEN 'the lists of the kubelet that ended were not slow'
         WHEN j.minutes = 0 AND j.list_gaps = 0 THEN 'the agent reported nothing'
         WHEN j.our_lists = 'unknown' THEN 'our lists were neither slow nor fast all the time'
         WHEN j.our_lists = 'slow' THEN 'both waited for lists'
         ELSE 'only the kubelet waited for lists'
       END || CASE WHEN j.lacking IN ('disk', 'memory') AND NOT j.we_lacked_it AND j.hang_verdict IS DISTINCT FROM 'container' AND j.hang_verdict IS DISTINCT FROM 'pod'
                     THEN format('; meanwhile all tasks of the node that were not idle waited for its %s for %s %% of the time', j.lacking,
                                 round(100 * j.lacking_share)) ELSE '' END AS why,
       j.kubelet_lists, j.our_lists,
       j.lists AS kubelet_list_calls, j.list_errors AS kubelet_list_errors, j.list_ms AS kubelet_list_ms,
       j.longest_list_ms AS kubelet_longest_list_ms, j.relist_ms AS kubelet_relist_ms, j.status_ms AS kubelet_status_ms,
       j.our_relists, j.our_errors, j.our_longest_ms AS our_longest_relist_ms, j.our_period_ms, j.our_waiting_ms,
       j.at, j.message, j.pleg_seen_ago_ms, j.threshold_ms, j.day,
       j.list_call, store.uid_text(o.pod_uid) AS pod_uid, o.pod_namespace, o.pod_name, nullif(o.container_name, '') AS container_name,
       o.container_id, j.statuses_asked, j.statuses_quick, j.statuses_unanswered, j.cpu_some, j.io_some, j.io_full, j.memory_some, j.memory_full
FROM pressed j
LEFT JOIN store.container o ON o.node_id = j.node_id AND o.container_key = j.hung_key AND o.day = j.hung_day
                           AND j.hang_verdict IN ('container', 'pod');

CREATE VIEW plegwatch.pleg_verdicts WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, v.kind, v.from_at, v.to_at, v.verdict, v.why, v.kubelet_lists, v.our_lists,
       v.kubelet_list_calls, v.kubelet_list_errors, v.kubelet_list_ms, v.kubelet_longest_list_ms, v.kubelet_relist_ms, v.kubelet_status_ms,
       v.our_relists, v.our_errors, v.our_longest_relist_ms, v.our_period_ms, v.our_waiting_ms,
       v.at, v.message, v.pleg_seen_ago_ms, v.threshold_ms, v.day,
       v.list_call, v.pod_uid, v.pod_namespace, v.pod_name, v.container_name, v.container_id,
       v.statuses_asked, v.statuses_quick, v.statuses_unanswered, v.cpu_some, v.io_some, v.io_full, v.memory_some, v.memory_full
FROM store.pleg_verdict v
LEFT JOIN store.node n ON n.node_id = v.node_id
LEFT JOIN store.cluster c ON c.cluster_id = v.cluster_id;
