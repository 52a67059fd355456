-- A history for the questions of lake/: storedHistory.sql, with more of what agents and retention make of one:
--
--   every agent    reports until the tests end, except that of west-010, which died at 18:00 of the last day
--   Nodes          west-010 was deleted two hours after that, and west-014, which was created again (lake.ts), at noon of the third day
--   kubelets       are restarted for their upgrade, those that had fallen back too. The 1.31 of west-006 falls back at 11:59 of the last day until 20:00
--   samples        of status lags are of the last day, differ, and one in seven was not shown in time
--   east-009       is in another pool within an hour, and of east-010 none is known until the third day. East-016 was first seen on the second day at 14:00
--   east-013       did not list on the last day
--   stream         of east-003 is starved from 06:00 to 12:00 of the fifth day, and that of west-010 from noon of the last day on
--   east-011       does not say the version of its runtime, east-012 not how long its kubelet relists, east-015 not for what tasks waited. East-014 does not
--                  know its kubelet's version
--   numbers        differ that are alike there, and some are halves, which are rounded to even ones
--   records        of the second and the fourth day were lost on nodes 4, and some of the latter arrived after all
CREATE TEMP TABLE member AS
SELECT n.node_id, n.cluster_id, n.name, right(n.name, 3)::int4 AS number, e.epoch, e.started_at AS began,
       date_trunc('day', now(), 'UTC') - interval '1 day' AS last_day
FROM store.node n JOIN store.epoch e USING (node_id);
CREATE TEMP TABLE context AS
SELECT m.name, m.number, m.began, m.last_day, m.epoch, x.node_id, x.cluster_id, x.context_id, x.context_no
FROM member m JOIN store.context x USING (node_id);

UPDATE store.node SET last_seen = now() + interval '1 day' WHERE last_seen IS NOT NULL;
UPDATE store.epoch SET last_seen = now() + interval '1 day';
UPDATE store.node n SET last_seen = m.last_day + interval '18 hours' FROM member m WHERE m.node_id = n.node_id AND m.name = 'west-010';
UPDATE store.epoch e SET last_seen = m.last_day + interval '18 hours', kubelet_seen_to = m.last_day + interval '18 hours', last_record_at = m.last_day + interval '18 hours',
                         complete_through = m.last_day + interval '18 hours', decided_through = m.last_day + interval '18 hours', closed_at = now(),
                         close_cause = 'released'
FROM member m WHERE m.epoch = e.epoch AND m.name = 'west-010';
INSERT INTO store.report (node_id, cluster_id, node_deleted_at)
SELECT node_id, cluster_id, CASE name WHEN 'west-010' THEN last_day + interval '20 hours' ELSE began + interval '2 days 12 hours' END
FROM member WHERE name IN ('west-010', 'west-014')
ON CONFLICT (node_id) DO UPDATE SET node_deleted_at = excluded.node_deleted_at;

UPDATE store.context SET kubelet_version = 'v1.31.9' WHERE context_id = (SELECT context_id FROM context WHERE name = 'west-006' AND context_no = 2);
UPDATE store.mode_change c SET context_id = x.context_id FROM context x
WHERE x.node_id = c.node_id AND x.context_no = 2 AND c.from_mode = 'Evented' AND c.to_mode = 'EventedHint';
UPDATE store.mode_change c SET at = m.began + interval '3 days', not_before = m.began + interval '3 days' - interval '10 s' FROM member m
WHERE m.node_id = c.node_id AND c.from_mode = 'Fallback';
INSERT INTO store.mode_change (at, not_before, day, node_id, context_id, seq, cluster_id, model, from_mode, to_mode, reason, proof)
SELECT c.at, c.at - interval '10 s', (c.at AT TIME ZONE 'UTC')::date, x.node_id, x.context_id, 800000010 + c.no, x.cluster_id, 'EventedCache', c.from_mode,
       c.to_mode, c.reason,
       jsonb_build_object('v', 1, 'before', jsonb_build_object('errors', 0, 'relists', 1234, 'at', c.at - interval '10 s',
                                                               'process_start', extract(epoch FROM c.at) - 432000.5), 'after', '{"errors": 5}'::jsonb)
FROM context x
CROSS JOIN LATERAL (VALUES
  (1, x.began + interval '3 days', 'Evented', 'Evented', 'KubeletRestarted'),
  (2, x.last_day + interval '11 hours 59 minutes', 'Evented', 'Fallback', 'StreamBroke'),
  (3, x.last_day + interval '20 hours', 'Fallback', 'Evented', 'KubeletRestarted')) AS c (no, at, from_mode, to_mode, reason)
WHERE x.context_no = 2 AND CASE c.no WHEN 1 THEN x.number % 10 NOT IN (0, 3) ELSE x.name = 'west-006' END;

DELETE FROM store.status_lag l USING member m WHERE m.node_id = l.node_id AND l.at < m.last_day;
UPDATE store.status_lag SET lag_min_ms = lag_min_ms * (1 + node_id % 7 / 10.0), lag_max_ms = CASE WHEN node_id % 7 < 6 THEN lag_max_ms * (1 + node_id % 7 / 10.0) END;
-- Pods that started before the fallback: one that never changed, half a second too long ago to be rounded up, and one that changed at once.
INSERT INTO store.status_lag (node_id, cluster_id, at, event_type, lag_min_ms, lag_max_ms, happened_at, container_id, pod_namespace, pod_name, container_name)
SELECT m.node_id, m.cluster_id, m.last_day + interval '12 hours 45 minutes', 'STOPPED', s.lag_min_ms, s.lag_max_ms,
       m.last_day + interval '12 hours 30 minutes', e.container_id, e.pod_namespace, e.pod_name, e.container_name
FROM member m
JOIN plegwatch.container_events e ON e.cluster = 'west' AND e.node = m.name AND e.event_type = 'STARTED' AND e.container_name = 'app' AND e.received_at >= m.last_day
JOIN (VALUES ('-6-41', 894500, NULL), ('-6-42', 900, 2100)) AS s (pod, lag_min_ms, lag_max_ms) ON e.pod_name = 'job' || s.pod
WHERE m.name = 'west-006';

UPDATE store.node_info i SET at = i.at + interval '2 days' FROM member m WHERE m.node_id = i.node_id AND m.name = 'east-010';
UPDATE store.node_info i SET at = i.at + interval '30 minutes' FROM member m WHERE m.node_id = i.node_id AND m.name = 'east-009' AND i.at > m.began;

INSERT INTO store.finding (finding_id, detected_at, day, node_id, context_id, seq, cluster_id, kind, event_type, cause, container_id, pod_uid,
                           pod_namespace, pod_name, container_name, window_from, window_to, occurred_at, proof)
SELECT md5(x.epoch || 'starved')::uuid, s.at + interval '34 s', (s.at AT TIME ZONE 'UTC')::date, x.node_id, x.context_id, 600000004, x.cluster_id, 'silent_stream', NULL,
       'starved', NULL, NULL, NULL, NULL, NULL, s.at, s.at + interval '34 s', NULL, '{"v": 1}'
FROM context x
CROSS JOIN LATERAL (SELECT CASE x.name WHEN 'east-003' THEN x.began + interval '4 days 6 hours' ELSE x.last_day + interval '12 hours' END AS at) s
WHERE x.context_no = 2 AND x.name IN ('east-003', 'west-010');
INSERT INTO store.finding_update (finding_id, node_id, cluster_id, day, what, at)
SELECT f.finding_id, f.node_id, f.cluster_id, f.day, 'resolved', f.window_from + interval '6 hours'
FROM store.finding f JOIN member m USING (node_id) WHERE f.cause = 'starved' AND m.name = 'east-003';
UPDATE store.finding f SET proof = f.proof || '{"hint": "stream_starved"}' FROM member m
WHERE m.node_id = f.node_id AND m.name = 'east-003' AND f.kind = 'missed' AND f.window_from >= m.began + interval '4 days 6 hours';

INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at, from_seq, to_seq, records, filled_at)
SELECT md5(m.epoch || g.no::text)::uuid, m.node_id, m.cluster_id, m.epoch, g.scope, g.cause, m.began + g.after, m.began + g.after + interval '5 minutes', g.from_seq, g.from_seq + 6,
       CASE WHEN g.from_seq IS NOT NULL THEN 7 END, CASE WHEN g.is_filled THEN m.last_day END
FROM member m
CROSS JOIN (VALUES (1, 'seq', 'store_lost', interval '1 day 9 hours', 900000001, false), (2, 'spool', 'evicted', interval '3 days 9 hours', 900000011, false),
                   (3, 'seq', 'store_lost', interval '3 days 10 hours', 900000021, true), (4, 'list', 'slow', interval '6 days 9 hours', NULL, false))
  AS g (no, scope, cause, after, from_seq, is_filled)
WHERE m.number % 10 = 4;

UPDATE store.context SET runtime_version = '' WHERE context_id IN (SELECT context_id FROM context WHERE name = 'east-011');
UPDATE store.context SET kubelet_version = '' WHERE context_id IN (SELECT context_id FROM context WHERE name = 'east-014');
UPDATE store.relist_hour h SET kubelet_relist_us = NULL FROM member m WHERE m.node_id = h.node_id AND m.name = 'east-012';
UPDATE store.relist_minute r SET pressure_us = NULL FROM member m WHERE m.node_id = r.node_id AND m.name = 'east-015';
UPDATE store.node SET first_seen = first_seen + interval '1 day 14 hours' WHERE name = 'east-016';
UPDATE store.node SET first_seen = first_seen + interval '20 days' WHERE name = 'west-014';
UPDATE store.relist_minute r SET relists = 0 FROM member m WHERE m.node_id = r.node_id AND m.name = 'east-013' AND r.minute >= m.last_day;
UPDATE store.relist_hour h SET listed_us = 0 FROM member m WHERE m.node_id = h.node_id AND m.name = 'east-013' AND h.hour >= m.last_day;
UPDATE store.finding SET lateness_us = 10998500 WHERE kind = 'kubelet_late';
UPDATE store.finding_update SET at = at + node_id % 7 * interval '0.123457 s' WHERE what = 'resolved';
DROP TABLE member, context;
