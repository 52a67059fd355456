-- Nodes on which almost nothing happens, in clusters of their own, beside a history of storedHistory.sql: `calm` has their number and that of the clusters.
-- Each is a copy of a node of the history without its pods. It has a row of hours for each hour of the history, and rows of minutes, of ten minutes each,
-- for the last `minute_days`. Every tenth copies what happens on any of them, with a hundredth of its findings; the others are like nodes on which
-- nothing slow or broken happens. Their agents go on for two hours after they were written.
INSERT INTO store.cluster (name) SELECT 'calm-' || g FROM calm, generate_series(1, calm.clusters) AS g;
CREATE TEMP TABLE original AS
SELECT n.*, right(n.name, 3)::int4 % 10 AS digit FROM store.node n WHERE n.first_seen IS NOT NULL;
CREATE TEMP TABLE copied AS
SELECT g AS no, g % 10 = 0 AS is_eventful, c.cluster_id, format('%s-%s', c.name, lpad(g::text, 6, '0')) AS name
FROM calm, generate_series(0, calm.nodes - 1) AS g JOIN store.cluster c ON c.name = 'calm-' || 1 + g / 10 % (SELECT clusters FROM calm);
CREATE TEMP TABLE pair AS
SELECT c.*, md5(c.name)::uuid AS epoch, s.node_id AS source, NULL::int4 AS node_id
FROM copied c
JOIN (
  SELECT e.is_eventful, o.node_id, row_number() OVER of_kind - 1 AS place, count(*) OVER (PARTITION BY e.is_eventful) AS places
  FROM original o JOIN (VALUES (true), (false)) AS e (is_eventful) ON e.is_eventful OR o.digit IN (0, 2, 6, 7, 9)
  WINDOW of_kind AS (PARTITION BY e.is_eventful ORDER BY o.node_id)
) s ON s.is_eventful = c.is_eventful AND s.place = c.no / 10 % s.places;
INSERT INTO store.node (cluster_id, name, first_seen, last_seen, incarnation, context_no)
SELECT p.cluster_id, p.name, o.first_seen, o.last_seen, 1, 2 FROM pair p JOIN original o ON o.node_id = p.source ORDER BY p.no;
ANALYZE store.node, pair;
UPDATE pair p SET node_id = n.node_id FROM store.node n WHERE n.cluster_id = p.cluster_id AND n.name = p.name;

-- Copies what the original nodes have in a table, or in a relation with some of its rows, as of their copies; `changed` has the columns with another value.
CREATE FUNCTION pg_temp.copy(of_table text, condition text, changed jsonb DEFAULT '{}', from_relation text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  columns text;
  vals text;
  has_context bool;
BEGIN
  SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum),
         string_agg(coalesce(changed ->> a.attname,
                             CASE WHEN a.attname IN ('node_id', 'cluster_id', 'epoch', 'context_id') THEN 'c.' || a.attname
                                  WHEN a.attname IN ('finding_id', 'gap_id') THEN format('md5(t.%I || ''/'' || c.node_id)::uuid', a.attname)
                                  ELSE 't.' || a.attname END), ', ' ORDER BY a.attnum),
         bool_or(a.attname = 'context_id')
  INTO columns, vals, has_context
  FROM pg_attribute a
  WHERE a.attrelid = ('store.' || of_table)::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity = '';
  EXECUTE format('INSERT INTO store.%I (%s) SELECT %s FROM %s t JOIN %s c ON %s WHERE %s', of_table, columns, vals,
                 coalesce(from_relation, 'store.' || of_table),
                 CASE WHEN has_context THEN 'context_pair' ELSE 'pair' END,
                 CASE WHEN has_context THEN 'c.source_context = t.context_id' ELSE 'c.source = t.node_id' END, condition);
END $$;

-- Copies are inserted as they are: their hours are copied too.
SET session_replication_role = replica;
SELECT pg_temp.copy('context', 'true');
ANALYZE store.context, pair;
CREATE TEMP TABLE context_pair AS
SELECT p.*, s.context_id AS source_context, x.context_id, x.context_no
FROM pair p JOIN store.context x ON x.node_id = p.node_id JOIN store.context s ON s.node_id = p.source AND s.context_no = x.context_no;
ANALYZE context_pair;
UPDATE store.node n SET context_id = x.context_id FROM context_pair x WHERE x.node_id = n.node_id AND x.context_no = 2;

SELECT pg_temp.copy(t.name, 'true') FROM (VALUES ('epoch'), ('node_state'), ('node_info')) AS t (name);
SELECT pg_temp.copy(t.name, 'true') FROM (VALUES ('stream_session'), ('mode_change')) AS t (name);
SELECT pg_temp.copy(t.name, 'c.is_eventful')
FROM (VALUES ('gap'), ('node_condition'), ('ready_change'), ('status_lag')) AS t (name);
SELECT pg_temp.copy(t.name, 'c.is_eventful AND hashtext(t.finding_id::text) % 100 = 0') FROM (VALUES ('finding'), ('finding_update')) AS t (name);

-- By the hour, as they are stored.
CREATE TEMP TABLE original_hour AS SELECT * FROM store.relist_hour;
CREATE TEMP TABLE original_minute AS
SELECT date_trunc('hour', m.minute) AS hour, m.* FROM store.relist_minute m, calm
WHERE m.minute > now() - calm.minute_days * interval '1 day' AND extract(minute FROM m.minute)::int4 % 10 = 0;
CREATE INDEX ON original_hour (hour);
CREATE INDEX ON original_minute (hour);
ANALYZE original_hour, original_minute;
SELECT pg_temp.copy('relist_hour', format('t.hour = %L', h.hour),
                    '{"expected": "t.expected / 100", "matched": "t.matched / 100", "unobservable": "0"}', 'original_hour')
FROM (SELECT DISTINCT hour FROM original_hour) h ORDER BY h.hour;
SELECT pg_temp.copy('relist_minute', format('t.hour = %L', h.hour),
                    '{"span_us": "600000000", "covered_us": "600000000", "relists": "120", "expected": "0", "matched": "0", "unobservable": "0",
                      "ended_at": "t.minute + interval ''10 minutes''", "wall_at": "t.minute + interval ''10 minutes''",
                      "kubelet_counted_to": "t.minute + interval ''10 minutes''", "lists": "''\\x0102030405060708090a0b0c0d0e0f10''",
                      "seq": "(extract(epoch FROM t.minute) / 600)::int4"}', 'original_minute')
FROM (SELECT DISTINCT hour FROM original_minute) h ORDER BY h.hour;
RESET session_replication_role;

UPDATE store.node SET last_seen = now() + interval '2 hours' WHERE first_seen IS NOT NULL;
UPDATE store.epoch SET last_seen = now() + interval '2 hours', kubelet_seen_to = now() + interval '2 hours', complete_through = now(), decided_through = now();
DROP TABLE original, original_hour, original_minute, copied, pair, context_pair;
