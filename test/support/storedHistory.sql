-- A history of `size`: clusters east and west, nodes of three runtimes, an upgrade of every kubelet on the fourth day. It begins at midnight (UTC)
-- as many days ago, or a day later if it goes on until now. The history of a node depends on its number, so the truth of every question is known:
--
--   number % 3 = 0, 1, 2   containerd 2.0.5 loses the STOPPED of every 20th container, containerd 2.1.4 of every 200th, cri-o 1.33.1 none.
--                          Every fifth of the misses is resolved 40 s later
--   number % 10 = 1        the status of one sandbox hangs on the fourth day at 05:00, and its kubelet waits for it
--   number % 10 = 3        its kubelet falls back on the third day at 03:12, as a runtime restart breaks the stream, until 09:12 of the fourth.
--                          It then needs 5 % of a core instead of 3 %
--   number % 10 = 4        its stream is broken on the second day from 10:00 to 16:00
--   number % 10 = 5        its runtime answers lists after 12 s on the sixth day from 12:00 to 12:10; NotReady from 12:05 to 12:12. In cluster west,
--                          all its tasks wait for the disk meanwhile for 85 % of the time
--   number % 10 = 6        two containers of one name ran at once on the fifth day at 06:00
--   number % 10 = 6        of 400 containers, two are OOMKilled; the STOPPED of one of them is lost
--   number % 10 = 2        of 400 containers, one exits with 7; all others end with 0
--   number % 10 = 7        its kubelet discards 5 events on the second day at 07:00
--   number % 10 = 8        it keeps every exited container: 800 more each day, of 1700 bytes in the list
--   number % 10 = 8        with cri-o, of 400 containers, the STARTED of one comes after its STOPPED; on the fifth day a list takes back an exit
--   number % 10 = 0        its gate is switched off at noon of the last day but one. Statuses come after 5 s with the gate on, after 0.5 s with it off.
--                          It is upgraded to 1.37, which offers its own status: that shows starts within 2 ms, and stops within 2 ms with the gate on and
--                          within 512 ms with it off. On the fifth day at 07:00 it does not show a stop for 40 s
--   every node             20 % of the time a task waits for a processor; one container in 50 lives between two lists; a container that shows a blind spot, on containerd
CREATE TEMP TABLE begin AS SELECT (now() AT TIME ZONE 'UTC')::date - (SELECT days - until_now::int4 FROM size) AS day;

SELECT store.make_partition(t.name, b.day + d)
FROM begin b, size, generate_series(0, size.days) AS d,
     unnest(ARRAY['container_event', 'container', 'relist_change', 'relist_minute', 'finding', 'finding_update',
                  'stream_session',
                  'mode_change', 'node_condition', 'relist_hour']) AS t (name);

INSERT INTO store.cluster (name) VALUES ('east'), ('west');
INSERT INTO store.node (cluster_id, name, first_seen, last_seen, incarnation, context_no)
SELECT c.cluster_id, c.name || '-' || lpad(g::text, greatest(3, length(g::text)), '0'), b.day, now(), 1, 2
FROM store.cluster c, begin b, size, generate_series(1, size.nodes) AS g WHERE c.name IN ('east', 'west');
-- A Node without an agent.
INSERT INTO store.node (cluster_id, name) SELECT cluster_id, 'east-idle' FROM store.cluster WHERE name = 'east';

-- Beyond the busy nodes, each starts a fifth of the pods.
CREATE TEMP TABLE member AS
SELECT n.node_id, n.cluster_id, n.number, md5(n.name)::uuid AS epoch, b.day::timestamp AT TIME ZONE 'UTC' AS began,
       CASE WHEN n.number <= size.busy THEN size.lives ELSE size.lives / 5 END AS lives
FROM begin b, size, (SELECT *, right(name, 3)::int4 AS number FROM store.node WHERE first_seen IS NOT NULL) n;

-- Three pools, of one runtime each, in three zones. Node 9 had another kernel for the first three days, and was in the pool spot.
INSERT INTO store.node_info (node_id, cluster_id, at, labels, os_image, kernel_version)
SELECT m.node_id, m.cluster_id, m.began + i.after,
       jsonb_build_object('pool', i.pool, 'topology.kubernetes.io/zone', 'zone-' || m.number % 2), 'Ubuntu 24.04.3 LTS', i.kernel
FROM member m
CROSS JOIN LATERAL (SELECT (ARRAY['general', 'memory', 'crio'])[m.number % 3 + 1] AS pool) own
CROSS JOIN LATERAL (VALUES (interval '0', CASE m.number WHEN 9 THEN 'spot' ELSE own.pool END, CASE m.number WHEN 9 THEN '6.8.0-45-generic' ELSE '6.8.0-50-generic' END),
                           (interval '3 days', own.pool, '6.8.0-50-generic')) AS i (after, pool, kernel)
WHERE i.after = interval '0' OR m.number = 9;

INSERT INTO store.context (node_id, cluster_id, epoch, context_no, runtime_name, runtime_version, kubelet_version, agent_version, relist_period_us,
                           overdue_after_us, missed_after_us, late_after_us)
SELECT m.node_id, m.cluster_id, m.epoch, no, CASE WHEN m.number % 3 = 2 THEN 'cri-o' ELSE 'containerd' END,
       (ARRAY['2.0.5', '2.1.4', '1.33.1'])[m.number % 3 + 1],
       CASE WHEN n.name = 'west-043' AND no = 1 THEN 'v1.31.9' WHEN no = 2 AND m.number % 10 = 0 THEN 'v1.37.2'
            ELSE (ARRAY['v1.35.4', 'v1.36.2'])[no] END, '0.1.0', 5e6, 2e6, 30e6, 1e6
FROM member m JOIN store.node n ON n.node_id = m.node_id, generate_series(1, 2) AS no;
UPDATE store.node n SET context_id = x.context_id FROM store.context x WHERE x.node_id = n.node_id AND x.context_no = 2;
INSERT INTO store.epoch (node_id, cluster_id, epoch, incarnation, claimed_incarnation, node_uid, boot_id, started_mono, started_at, ack_generation,
                         last_seq, received, last_record_at, complete_through, decided_through, kubelet_seen_from, kubelet_seen_to, last_seen, last_new_at)
SELECT node_id, cluster_id, epoch, 1, 1, '', 'boot', 0, began, 1, 1000000000, '{[1,1000000000]}', now(), now(), now(), began, now(), now(), now()
FROM member;
INSERT INTO store.node_state (node_id, cluster_id, incarnation, seq, stream_state, stream_since, stream_reason, stream_error, relist_healthy,
                              relist_reason, model, mode, mode_since, mode_reason)
SELECT node_id, cluster_id, 1, 1, 'Active', began, '', '', true, '', 'EventedCache', 'Evented', began, 'Connected' FROM member;

-- A pod with one container, from start to end. no: counts those of a node.
CREATE TEMP TABLE life AS
SELECT m.node_id, m.cluster_id, m.number, x.context_id, d * m.lives + i AS no, b.day + d AS day,
       m.began + d * interval '1 day' + i * interval '86200 s' / m.lives AS at,
       encode(sha256(format('%s/%s/%s', m.epoch, d, i)::bytea), 'hex') AS id, encode(sha256(format('%s/%s/%s/sandbox', m.epoch, d, i)::bytea), 'hex') AS sandbox,
       CASE i % 4 WHEN 0 THEN 'batch' ELSE 'shop' END AS namespace, format('job-%s-%s', d, i) AS pod,
       CASE m.number % 3 WHEN 0 THEN (d * m.lives + i) % 20 = 0 WHEN 1 THEN (d * m.lives + i) % 200 = 0 ELSE false END AS is_lossy
FROM begin b CROSS JOIN size CROSS JOIN member m CROSS JOIN generate_series(0, size.days - 1) AS d CROSS JOIN generate_series(0, m.lives - 1) AS i
JOIN store.context x ON x.node_id = m.node_id AND x.context_no = CASE WHEN d < 3 THEN 1 ELSE 2 END;
ALTER TABLE life ADD container_key int8, ADD sandbox_key int8;
UPDATE life SET container_key = ('x' || encode(substr(sha256(id::bytea), 1, 8), 'hex'))::bit(64)::int8,
                sandbox_key = ('x' || encode(substr(sha256(sandbox::bytea), 1, 8), 'hex'))::bit(64)::int8;
ANALYZE life;

INSERT INTO store.container (container_key, sandbox_key, node_id, day, cluster_id, attempt, container_id, pod_uid, pod_namespace, pod_name,
                             container_name)
SELECT l.container_key, l.sandbox_key, l.node_id, l.day, l.cluster_id, 0, l.id, store.uid_bytes('uid-' || left(l.sandbox, 12)), l.namespace, l.pod, 'app'
FROM life l
UNION ALL
SELECT l.sandbox_key, l.sandbox_key, l.node_id, l.day, l.cluster_id, 0, l.sandbox, store.uid_bytes('uid-' || left(l.sandbox, 12)), l.namespace, l.pod, ''
FROM life l;

-- type: of the event. step: 1 to 8 of a life.
CREATE TEMP TABLE transition AS
SELECT l.*, t.step, t.type, t.is_sandbox, l.at + t.after * interval '1 second' AS happened_at,
       l.number % 10 = 4 AND l.at >= m.began + interval '1 day 10 hours' AND l.at < m.began + interval '1 day 16 hours' AS is_in_gap,
       l.is_lossy AND t.type = 2 AND NOT t.is_sandbox AS is_lost,
       -- How its container ended, as flags of the event.
       CASE WHEN t.type <> 2 OR t.is_sandbox THEN 0
            WHEN l.number % 10 = 6 AND l.no % 400 IN (20, 30) THEN 2048 + 3 * 4096 + 137 * 65536
            WHEN l.number % 10 = 2 AND l.no % 400 = 40 THEN 2048 + 2 * 4096 + 7 * 65536
            ELSE 2048 + 4096 END AS exit_flags
FROM life l JOIN member m USING (node_id),
     (VALUES (1, 0, true, 0.0), (2, 1, true, 0.1), (3, 0, false, 1.0), (4, 1, false, 1.2), (5, 2, false, 60.0), (6, 2, true, 61.0),
             (7, 3, false, 70.0), (8, 3, true, 80.0)) AS t (step, type, is_sandbox, after);

INSERT INTO store.container_event (received_at, created_ns, container_key, day, node_id, context_id, seq, cluster_id, flags)
SELECT happened_at + CASE WHEN type = 1 AND NOT is_sandbox AND number % 10 = 8 AND number % 3 = 2 AND no % 400 = 350 THEN interval '58.803 s'
                          ELSE interval '2 ms' END, (extract(epoch FROM happened_at) * 1e9)::int8, CASE WHEN is_sandbox THEN sandbox_key ELSE container_key END,
       day, node_id, context_id, no * 20 + step, cluster_id, type + CASE WHEN is_sandbox THEN 1024 ELSE 0 END + exit_flags
FROM transition WHERE NOT is_lost AND NOT is_in_gap
ORDER BY happened_at;

INSERT INTO store.relist_change (window_from, window_to, container_key, day, node_id, context_id, seq, cluster_id, states, pleg_events)
SELECT date_bin('5 s', happened_at, '2020-01-01'), date_bin('5 s', happened_at, '2020-01-01') + interval '5 s',
       CASE WHEN is_sandbox THEN sandbox_key ELSE container_key END, day, node_id, context_id, no * 20 + 8 + step, cluster_id,
       CASE type WHEN 1 THEN 32 WHEN 2 THEN 50 ELSE 3 END + CASE WHEN is_sandbox THEN 256 ELSE 0 END, CASE type WHEN 1 THEN 1 WHEN 2 THEN 2 ELSE 4 END
FROM transition WHERE type > 0
ORDER BY happened_at;

-- A minute record of `step` seconds each.
CREATE TEMP TABLE due AS
SELECT node_id, date_bin(size.step * interval '1 s', happened_at, '2020-01-01') AS at, count(*) AS expected,
       count(*) FILTER (WHERE NOT is_lost AND NOT is_in_gap) AS matched, count(*) FILTER (WHERE is_in_gap) AS unobservable
FROM transition, size GROUP BY 1, 2;
INSERT INTO store.relist_minute (minute, day, node_id, context_id, seq, cluster_id, relists, errors, max_us, hist, sandboxes, containers, exited_sandboxes,
                                 exited_containers, sandbox_list_bytes, container_list_bytes, expected,
                                 matched, unobservable, covered_us, span_us, ended_at, kubelet_relists, kubelet_hist, kubelet_last_seen_age_ms,
                                 kubelet_discarded, kubelet_stream_errors, kubelet_list_p99_ms, kubelet_intervals, kubelet_interval_us,
                                 kubelet_counted_from, kubelet_counted_to, kubelet_relist_us, kubelet_sandbox_lists, kubelet_container_lists,
                                 kubelet_sandbox_list_us, kubelet_container_list_us, kubelet_sandbox_statuses, kubelet_container_statuses,
                                 kubelet_sandbox_status_us, kubelet_container_status_us, kubelet_longest_list_us, wall_at, lists, kubelet_cpu_us, statuses_asked, statuses_slow,
                                 slow_status_key, slow_status_at, slow_status_us, slow_status_timed_out, pressure_us, cpu_some_us, io_some_us,
                                 io_full_us, hang_call, hang_verdict, hang_from, hang_to, hang_waited_us, hang_listed, hang_asked, hang_quick,
                                 hang_unanswered, kubelet_start_hist, kubelet_stop_hist)
SELECT t.at, (t.at AT TIME ZONE 'UTC')::date, m.node_id, x.context_id, 500000000 + t.no, m.cluster_id, size.step / 5, 0,
       CASE WHEN t.is_slow THEN 12000000 ELSE 4000 + 100 * (m.number % 50) END, CASE WHEN t.is_slow THEN ARRAY[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]
       ELSE ARRAY[0, 0, size.step / 5 - 1, 1] END::int2[], 20 + m.number % 50, 20 + m.number % 50 + t.kept, 0, t.kept,
       1200 * (20 + m.number % 50), 1700 * (20 + m.number % 50 + t.kept), coalesce(e.expected, 0), coalesce(e.matched, 0),
       coalesce(e.unobservable, 0),
       CASE WHEN m.number % 10 = 4 AND t.at >= m.began + interval '1 day 10 hours' AND t.at < m.began + interval '1 day 16 hours'
            THEN 0 ELSE size.step * 1000000::int8 END, size.step * 1000000::int8,
       t.at + size.step * interval '1 s', CASE WHEN t.is_fallback THEN size.step ELSE size.step / 300 END,
       CASE WHEN t.is_slow THEN '{0,0,0,0,0,0,0,0,0,0,0,5}' ELSE ARRAY[size.step / 5] END::int2[], CASE WHEN t.is_slow THEN 12000 ELSE 900 END,
       CASE WHEN m.number % 10 = 7 AND t.at = m.began + interval '1 day 7 hours' THEN 5 ELSE 0 END, CASE WHEN t.is_fallback THEN 5 ELSE 0 END,
       2.5, CASE WHEN t.is_fallback THEN size.step ELSE greatest(size.step / 300, 1) END,
       CASE WHEN t.is_fallback THEN size.step ELSE greatest(size.step / 300, 1) * 300 END * 1000000::int8,
       t.at, t.at + size.step * interval '1 s', CASE WHEN t.is_slow THEN size.step * 1000000::int8 WHEN t.is_hung THEN 260000000 ELSE 100000 END, 2, 3,
       20000, CASE WHEN t.is_slow THEN least(size.step * 1000000::int8, 2147483647) - 20000 ELSE 30000 END,
       CASE WHEN t.is_hung THEN 52 ELSE 2 END, 4,
       CASE WHEN t.is_hung THEN 247000000 ELSE 4000 END, CASE WHEN t.is_hung THEN 3000000 ELSE 6000 END, CASE WHEN t.is_slow THEN 12000000 ELSE 20000 END,
       t.at + size.step * interval '1 s', '', size.step * CASE WHEN t.is_fallback THEN 50000 ELSE 30000 END,
       CASE WHEN t.is_hung THEN 9 WHEN t.is_locked THEN 40 END, CASE WHEN t.is_hung THEN 3 WHEN t.is_locked THEN 1 END,
       CASE WHEN t.is_hung THEN hung.sandbox_key WHEN t.is_locked THEN hung.container_key END,
       CASE WHEN t.is_hung OR t.is_locked THEN t.at + interval '12 s' END, CASE WHEN t.is_hung THEN 5000000 WHEN t.is_locked THEN 200000000 END,
       CASE WHEN t.is_hung OR t.is_locked THEN true END,
       p.us, p.us / 5, CASE WHEN t.is_slow AND c.name = 'west' THEN p.us * 0.95 END, CASE WHEN t.is_slow AND c.name = 'west' THEN p.us * 0.85 END,
       locked.call, locked.verdict, locked.from_at, locked.to_at, locked.waited_us, locked.listed,
       locked.asked, locked.quick, locked.unanswered, CASE WHEN x.kubelet_version = 'v1.37.2' THEN '{0,2}'::int2[] END,
       CASE WHEN x.kubelet_version = 'v1.37.2' AND no * size.step < (size.days - 2) * 86400 + 43200 THEN '{0,2}'::int2[]
            WHEN x.kubelet_version = 'v1.37.2' THEN '{0,0,0,0,0,0,0,0,0,2}'::int2[] END
FROM size CROSS JOIN member m
CROSS JOIN LATERAL (
  SELECT m.began + no * size.step * interval '1 s' AS at, no,
         m.number % 10 = 5 AND no * size.step >= 5 * 86400 + 43200 AND no * size.step < 5 * 86400 + 43800 AS is_slow,
         m.number % 10 = 3 AND no * size.step >= 2 * 86400 + 11520 AND no * size.step < 3 * 86400 + 33120 AS is_fallback,
         m.number % 10 = 1 AND no * size.step = 3 * 86400 + 18000 AS is_hung,
         m.number % 10 = 8 AND no * size.step = 3 * 86400 + 21600 AS is_locked,
         CASE WHEN m.number % 10 = 8 THEN 800 * (no * size.step / 86400 + 1) ELSE 0 END AS kept
  FROM generate_series(0, size.days * 86400 / size.step - 1) AS no
) t
CROSS JOIN LATERAL (SELECT least(size.step * 1000000::int8, 2147483647)::int4 AS us) p
JOIN store.cluster c ON c.cluster_id = m.cluster_id
JOIN store.context x ON x.node_id = m.node_id AND x.context_no = CASE WHEN t.at < m.began + interval '3 days' THEN 1 ELSE 2 END
LEFT JOIN due e ON e.node_id = m.node_id AND e.at = t.at
LEFT JOIN LATERAL (
  SELECT l.sandbox_key, l.container_key FROM life l WHERE (t.is_hung OR t.is_locked) AND l.node_id = m.node_id AND l.at <= t.at ORDER BY l.at DESC LIMIT 1
) hung ON true
LEFT JOIN LATERAL (
  -- The status of one container held up ListContainers.
  SELECT 'ListContainers' AS call, 'container' AS verdict, t.at + interval '5 s' AS from_at, t.at + interval '220 s' AS to_at, 215000000 AS waited_us,
         56 AS listed, 40 AS asked, 39 AS quick, 1 AS unanswered
) locked ON t.is_locked
ORDER BY t.at;
INSERT INTO store.finding (finding_id, detected_at, day, node_id, context_id, seq, cluster_id, kind, event_type, cause, container_id, pod_uid,
                           pod_namespace, pod_name, container_name, window_from, window_to, occurred_at, proof)
SELECT md5(id || 'missed')::uuid, happened_at + interval '32 s', day, node_id, context_id, no * 20 + 17, cluster_id, 'missed', 'STOPPED',
       CASE no / 20 % 2 WHEN 0 THEN 'runtime_state_late' ELSE 'unannounced_by_list' END,
       id, 'uid-' || left(sandbox, 12), namespace, pod, 'app', date_bin('5 s', happened_at, '2020-01-01'),
       date_bin('5 s', happened_at, '2020-01-01') + interval '5 s', happened_at,
       jsonb_build_object('v', 1, 'evidence', 'listed_exited',
                          'exactTimes', jsonb_build_object('finishedNs', ((extract(epoch FROM happened_at) * 1e9)::int8)::text,
                                                             'exitCode', store.exit_code(exit_flags), 'reason', store.exit_reason(exit_flags)))
         || CASE WHEN kubelet_version = 'v1.37.2' THEN '{"kubelet": {"is": "shown", "atLeast": 0, "atMost": 640000}}' ELSE '{}'::jsonb END
FROM (SELECT t.*, x.kubelet_version FROM transition t JOIN store.context x USING (context_id)) transition WHERE is_lost AND NOT is_in_gap
UNION ALL
SELECT md5(id || 'short')::uuid, at + interval '30 s', day, node_id, context_id, no * 20 + 18, cluster_id, 'short_life', NULL, 'life', id,
       'uid-' || left(sandbox, 12), namespace, pod, 'init', at, at + interval '5 s', at + interval '1 s', '{"v": 1, "lifeMinMs": 200, "lifeMaxMs": 600}'
FROM life WHERE no % 50 = 7
UNION ALL
SELECT md5(epoch || 'blind')::uuid, began + interval '1 hour', began::date, node_id, x.context_id, 600000000, cluster_id, 'unannounced', 'CREATED',
       'never_sent', 'ab', 'uid-x', 'shop', 'cart', '', began, began + interval '1 hour', NULL, '{"v": 1}'
FROM member m JOIN store.context x USING (node_id, cluster_id, epoch) WHERE x.context_no = 1 AND x.runtime_name = 'containerd'
UNION ALL
SELECT md5(epoch || 'twins')::uuid, began + interval '4 days 6 hours', (began + interval '4 days')::date, node_id, x.context_id, 600000001, cluster_id,
       'duplicate_container', NULL, 'listed_running', 'cd', 'uid-y', 'shop', 'twin', 'app', began + interval '4 days 6 hours',
       began + interval '4 days 6 hours 5 s', NULL, '{"v": 1}'
FROM member m JOIN store.context x USING (node_id, cluster_id, epoch) WHERE x.context_no = 2 AND m.number % 10 = 6
UNION ALL
SELECT md5(epoch || 'back')::uuid, began + interval '4 days 7 hours', (began + interval '4 days')::date, node_id, x.context_id, 600000002, cluster_id,
       'regression', NULL, 'state_went_back', 'ef', 'uid-z', 'shop', 'again', 'app', NULL, NULL, NULL, '{"v": 1}'
FROM member m JOIN store.context x USING (node_id, cluster_id, epoch) WHERE x.context_no = 2 AND m.number % 10 = 8;
INSERT INTO store.finding_update (finding_id, node_id, cluster_id, day, what, at, value_ms)
SELECT f.finding_id, f.node_id, f.cluster_id, f.day, u.what, f.detected_at + interval '40 s', u.value_ms
FROM store.finding f JOIN life l ON l.node_id = f.node_id AND l.no = f.seq / 20,
     (VALUES ('resolved', NULL::float8), ('lag_min', 291000), ('lag_max', 302000), ('lag_anomalous', 1)) AS u (what, value_ms)
WHERE f.kind = 'missed' AND (u.what <> 'resolved' OR l.no / CASE l.number % 3 WHEN 0 THEN 20 ELSE 200 END % 5 = 4);

INSERT INTO store.finding (finding_id, detected_at, day, node_id, context_id, seq, cluster_id, kind, event_type, cause, container_id, pod_uid,
                           pod_namespace, pod_name, container_name, window_from, window_to, lateness_us, proof)
SELECT md5(epoch || 'late')::uuid, late.at + interval '15 s', late.at::date, node_id, x.context_id, 600000003, cluster_id, 'kubelet_late', 'STOPPED',
       'not_shown', 'a1', 'uid-w', 'shop', 'slow', 'app', late.at, late.at + interval '1 s', 11e6, '{"v": 1, "podState": "running"}'
FROM member m JOIN store.context x USING (node_id, cluster_id, epoch) CROSS JOIN LATERAL (SELECT m.began + interval '4 days 7 hours' AS at) late
WHERE x.kubelet_version = 'v1.37.2';
INSERT INTO store.finding_update (finding_id, node_id, cluster_id, day, what, at)
SELECT finding_id, node_id, cluster_id, day, 'resolved', window_from + interval '40 s' FROM store.finding WHERE kind = 'kubelet_late';

INSERT INTO store.stream_session (node_id, epoch, session_no, day, cluster_id, context_id, seq, opened_at, armed_at, closed_at, code, message, events,
                                  replayed)
SELECT m.node_id, m.epoch, s.no, (s.opened_at AT TIME ZONE 'UTC')::date, m.cluster_id, x.context_id, 700000000 + s.no, s.opened_at,
       s.opened_at + interval '1 s', s.closed_at, CASE WHEN s.closed_at IS NOT NULL THEN 'UNAVAILABLE' END,
       CASE WHEN s.closed_at IS NOT NULL THEN 'EOF' END, 1000, 0
FROM member m
CROSS JOIN LATERAL (SELECT CASE m.number % 10 WHEN 3 THEN m.began + interval '2 days 3 hours 12 minutes'
                                              WHEN 4 THEN m.began + interval '1 day 10 hours' END AS at,
                           CASE m.number % 10 WHEN 3 THEN interval '20 s' WHEN 4 THEN interval '6 hours' END AS lasted) broken
CROSS JOIN LATERAL (VALUES (1, m.began, broken.at), (2, broken.at + broken.lasted, NULL)) AS s (no, opened_at, closed_at)
JOIN store.context x ON x.node_id = m.node_id AND x.context_no = 1
WHERE s.opened_at IS NOT NULL;
INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at)
SELECT md5(s.epoch || 'stream')::uuid, s.node_id, s.cluster_id, s.epoch, 'stream', 'broken', s.closed_at, n.opened_at
FROM store.stream_session s JOIN store.stream_session n ON n.node_id = s.node_id AND n.session_no = 2 WHERE s.session_no = 1
UNION ALL
SELECT md5(epoch || 'list')::uuid, node_id, cluster_id, epoch, 'list', 'slow', began + interval '5 days 12 hours',
       began + interval '5 days 12 hours 10 minutes'
FROM member WHERE number % 10 = 5;
INSERT INTO store.mode_change (at, not_before, day, node_id, context_id, seq, cluster_id, model, from_mode, to_mode, reason, proof)
SELECT m.began + c.after, m.began + c.after - interval '10 s', ((m.began + c.after) AT TIME ZONE 'UTC')::date, m.node_id, x.context_id, 800000000 + c.no,
       m.cluster_id, CASE WHEN c.no >= 4 THEN 'EventedHint' ELSE 'EventedCache' END, c.from_mode, c.to_mode, c.reason, '{"v": 1, "before": {"errors": 0}, "after": {"errors": 5}}'
FROM member m
CROSS JOIN (VALUES (1, interval '0', 'Unknown', 'Evented', 'Connected'), (2, interval '2 days 3 hours 12 minutes', 'Evented', 'Fallback', 'StreamBroke'),
                   (3, interval '3 days 9 hours 12 minutes', 'Fallback', 'Evented', 'KubeletRestarted'),
                   (4, interval '2 days 23 hours 59 minutes', 'Evented', 'EventedHint', 'KubeletRestarted'),
                   (5, (SELECT (days - 2) * interval '1 day' + interval '12 hours' FROM size), 'EventedHint', 'Generic', 'GateDisabled')) AS c (no, after, from_mode, to_mode, reason)
JOIN store.context x ON x.node_id = m.node_id AND x.context_no = CASE WHEN c.after < interval '3 days' THEN 1 ELSE 2 END
WHERE c.no = 1 OR c.no IN (2, 3) AND m.number % 10 = 3 OR c.no IN (4, 5) AND m.number % 10 = 0;
INSERT INTO store.status_lag (at, node_id, cluster_id, event_type, lag_min_ms, lag_max_ms)
SELECT l.at, m.node_id, m.cluster_id, e.type, l.lag_ms - 100, l.lag_ms + 100
FROM member m, size
CROSS JOIN LATERAL generate_series(0, 46, 2) AS hour
CROSS JOIN (VALUES ('STARTED'), ('STOPPED')) AS e (type)
CROSS JOIN LATERAL (SELECT m.began + (size.days - 2) * interval '1 day' + hour * interval '1 hour' AS at,
                           CASE WHEN m.number % 10 = 0 THEN 500 ELSE 5000 END AS lag_ms) l;
INSERT INTO store.node_condition (at, day, node_id, cluster_id, status, reason, message, pleg_seen_ago_ms, threshold_ms)
SELECT m.began + k.after, ((m.began + k.after) AT TIME ZONE 'UTC')::date, m.node_id, m.cluster_id, k.status, k.reason, k.message, k.ago, k.threshold
FROM member m
CROSS JOIN (VALUES
  (interval '5 days 12 hours 5 minutes', 'False', 'KubeletNotReady', 'PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s', 185000, 180000),
  (interval '5 days 12 hours 12 minutes', 'True', 'KubeletReady', 'kubelet is posting ready status', NULL, NULL)) AS k (after, status, reason, message, ago, threshold)
WHERE m.number % 10 = 5;
-- Nodes 5 said so; nodes 8 were not heard of for half an hour, and nodes 9 had no network after their kernel was upgraded.
INSERT INTO store.ready_change (node_id, cluster_id, at, status, reason, causes)
SELECT m.node_id, m.cluster_id, m.began + r.after, r.status, r.reason, r.causes
FROM member m
JOIN (VALUES
  (5, interval '5 days 12 hours 5 minutes', 'False', 'KubeletNotReady', '{pleg}'::text[]), (5, '5 days 12 hours 12 minutes', 'True', 'KubeletReady', '{}'),
  (8, '4 days 2 hours', 'Unknown', 'NodeStatusUnknown', '{kubelet_silent}'), (8, '4 days 2 hours 30 minutes', 'True', 'KubeletReady', '{}'),
  (9, '3 days 5 minutes', 'False', 'KubeletNotReady', '{network}'), (9, '3 days 7 minutes', 'True', 'KubeletReady', '{}')
) AS r (number, after, status, reason, causes) ON r.number = m.number % 10;
-- The kubelet 1.31 of west-043 fell back, as those of all nodes 3. It never showed that a container stopped which it had started before; that of a
-- later one it showed at once.
INSERT INTO store.status_lag (node_id, cluster_id, at, event_type, lag_min_ms, lag_max_ms, happened_at, container_id, pod_namespace, pod_name, container_name)
SELECT l.node_id, l.cluster_id, m.began + s.stopped + interval '15 minutes', 'STOPPED', s.lag_min_ms, s.lag_max_ms, m.began + s.stopped, l.id, l.namespace, l.pod, 'app'
FROM member m
JOIN life l ON l.node_id = m.node_id
JOIN store.node n ON n.node_id = m.node_id AND n.name = 'west-043'
JOIN (VALUES ('job-2-3', interval '2 days 4 hours', 895000, NULL), ('job-2-4', '2 days 4 hours', 900, 2100)) AS s (pod, stopped, lag_min_ms, lag_max_ms)
  ON s.pod = l.pod;

-- The rest of the present day has not happened.
DO $$ DECLARE t record; BEGIN
  IF (SELECT until_now FROM size) THEN
    FOR t IN SELECT * FROM (VALUES ('container_event', 'received_at'), ('relist_change', 'window_to'), ('relist_minute', 'ended_at'), ('relist_hour', 'hour'),
                                   ('finding', 'detected_at'), ('finding_update', 'at'), ('mode_change', 'at'), ('status_lag', 'at')) AS t (name, time) LOOP
      EXECUTE format('DELETE FROM store.%I WHERE %I > now()', t.name, t.time);
    END LOOP;
  END IF;
END $$;
DROP TABLE transition, due, life, member, begin;
