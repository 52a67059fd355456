-- A fleet beside the history (storedHistory.sql): kubelets in fallback until now, agents that do not report, streams that are not watched.
CREATE TEMP TABLE member AS
SELECT n.node_id, n.name, right(n.name, 3)::int4 AS number, n.first_seen AS began FROM store.node n WHERE n.first_seen IS NOT NULL;

-- Every other kubelet that fell back has not been restarted.
DELETE FROM store.mode_change c USING member m WHERE c.node_id = m.node_id AND m.number % 20 = 13 AND c.reason = 'KubeletRestarted';
UPDATE store.node_state s SET mode = 'Fallback', mode_reason = 'StreamBroke', mode_since = m.began + interval '2 days 3 hours 12 minutes'
FROM member m WHERE m.node_id = s.node_id AND m.number % 20 = 13;
UPDATE store.node_state s SET mode = 'Generic', mode_reason = 'GateDisabled', model = 'EventedHint' FROM member m WHERE m.node_id = s.node_id AND m.number % 10 = 0;

-- Two agents are silent.
UPDATE store.node n SET last_seen = now() - interval '5 hours' FROM member m WHERE m.node_id = n.node_id AND m.number = 17;
UPDATE store.epoch e SET last_seen = x.at, last_new_at = x.at, last_record_at = x.at, complete_through = x.at, decided_through = x.at, kubelet_seen_to = x.at
FROM member m, (SELECT now() - interval '5 hours' AS at) x WHERE m.node_id = e.node_id AND m.number = 17;
DELETE FROM store.container_event r USING member m WHERE m.node_id = r.node_id AND m.number = 17 AND r.received_at > now() - interval '5 hours';
DELETE FROM store.relist_change r USING member m WHERE m.node_id = r.node_id AND m.number = 17 AND r.window_to > now() - interval '5 hours';
DELETE FROM store.relist_minute r USING member m WHERE m.node_id = r.node_id AND m.number = 17 AND r.ended_at > now() - interval '5 hours';
DELETE FROM store.relist_hour r USING member m WHERE m.node_id = r.node_id AND m.number = 17 AND r.hour > now() - interval '6 hours';

UPDATE store.node_state s SET stream_state = 'Starved', stream_reason = 'Starved', stream_since = now() - interval '3 hours' FROM member m
WHERE m.node_id = s.node_id AND m.name = 'west-024';
UPDATE store.node_state s SET mode = 'Unknown', mode_reason = 'NotObserved', kubelet_error = 'Forbidden', mode_since = now() - interval '2 days' FROM member m
WHERE m.node_id = s.node_id AND m.number IN (8, 9);
DELETE FROM store.mode_change c USING member m WHERE c.node_id = m.node_id AND m.number IN (8, 9);
UPDATE store.epoch e SET kubelet_seen_to = now() - interval '2 days' FROM member m WHERE m.node_id = e.node_id AND m.number IN (8, 9);

-- However long it takes: the others report, and everything that agents sent is stored.
UPDATE store.node SET last_seen = now() + interval '5 minutes' WHERE last_seen > now() - interval '1 hour';
INSERT INTO store.ingest SELECT cluster_id, now() - interval '1 hour', now() + interval '1 hour' FROM store.cluster;
DROP TABLE member;
