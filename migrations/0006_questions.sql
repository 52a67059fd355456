-- Functions that answer questions which no single view does. They run with the rights of whoever calls them, so row-level security holds.

CREATE TYPE plegwatch.timeline_entry AS (
  at timestamptz,
  until timestamptz,
  kind text,
  what text,
  pod text,
  container text,
  container_id text,
  detail text,
  epoch uuid,
  seq int4
);

-- In PL/pgSQL because a condition on a node_id that is known when the query is planned reaches below the window functions of views, and prunes
-- partitions.
CREATE FUNCTION plegwatch.timeline(of_cluster text, of_node text, since timestamptz, until timestamptz DEFAULT 'infinity')
RETURNS SETOF plegwatch.timeline_entry LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  first_day date := (since AT TIME ZONE 'UTC')::date;
  last_day date := (until AT TIME ZONE 'UTC')::date;
  id int4;
BEGIN
  SELECT n.node_id INTO id FROM store.node n JOIN store.cluster c ON c.cluster_id = n.cluster_id
  WHERE c.name = of_cluster AND n.name = of_node;
  RETURN QUERY
  SELECT t.at, t.until, t.kind, t.what, t.pod, nullif(t.container, ''), t.container_id, nullif(t.detail, ''), t.epoch, t.seq
  FROM (
    SELECT e.received_at AS at, NULL::timestamptz AS until, 'event' AS kind, store.event_type_name(e.flags & 255) AS what,
           o.pod_namespace || '/' || o.pod_name AS pod, o.container_name AS container, o.container_id AS container_id,
           concat_ws(', ', CASE WHEN e.flags & 1024 <> 0 THEN 'sandbox' END, store.exit_text(e.flags),
                     CASE WHEN e.flags & 256 <> 0 THEN 'replayed from before the subscription' END) AS detail, x.epoch, e.seq
    FROM store.container_event e
    LEFT JOIN store.context x ON x.context_id = e.context_id
    LEFT JOIN store.container o ON o.node_id = e.node_id AND o.container_key = e.container_key AND o.day = e.day
    WHERE e.node_id = id AND e.day BETWEEN first_day AND last_day AND e.received_at BETWEEN timeline.since AND timeline.until
    UNION ALL
    SELECT h.window_to, NULL, 'change',
           store.pleg_state_name(h.states & 15) || ' -> ' || store.pleg_state_name((h.states >> 4) & 15),
           o.pod_namespace || '/' || o.pod_name, o.container_name, o.container_id,
           concat_ws(', ', CASE WHEN h.states & 256 <> 0 THEN 'sandbox' END,
                     'not before ' || h.window_from, nullif(array_to_string(store.pleg_event_names(h.pleg_events), ', '), '')), x.epoch, h.seq
    FROM store.relist_change h
    LEFT JOIN store.context x ON x.context_id = h.context_id
    LEFT JOIN store.container o ON o.node_id = h.node_id AND o.container_key = h.container_key AND o.day = h.day
    WHERE h.node_id = id AND h.day BETWEEN first_day AND last_day + 1 AND h.window_to BETWEEN timeline.since AND timeline.until
    UNION ALL
    SELECT m.slow_status_at, NULL, 'status', CASE WHEN m.slow_status_timed_out THEN 'timed out' ELSE 'slow' END,
           o.pod_namespace || '/' || o.pod_name, o.container_name, o.container_id,
           concat_ws(', ', CASE WHEN o.sandbox_key = o.container_key THEN 'sandbox' END, round(m.slow_status_us / 1000.0) || ' ms',
                     m.statuses_slow || ' of ' || m.statuses_asked || ' in this minute were slow'), x.epoch, m.seq
    FROM store.relist_minute m
    LEFT JOIN store.context x ON x.context_id = m.context_id
    LEFT JOIN store.container o ON o.node_id = m.node_id AND o.container_key = m.slow_status_key AND o.day = m.day
    WHERE m.node_id = id AND m.day BETWEEN first_day - 1 AND last_day + 1 AND m.statuses_asked IS NOT NULL
      AND m.slow_status_at BETWEEN timeline.since AND timeline.until
    UNION ALL
    SELECT h.from_at, h.to_at, 'hang', h.list_call, h.pod_namespace || '/' || h.pod_name, h.container_name, h.container_id,
           concat_ws(', ', h.why, h.asked || ' statuses asked for', h.quick || ' answered within a second', h.unanswered || ' not answered'),
           h.epoch, h.seq
    FROM store.list_hang h
    WHERE h.node_id = id AND h.from_at <= timeline.until AND coalesce(h.to_at, 'infinity') >= timeline.since
    UNION ALL
    SELECT m.at, NULL, 'finding', concat_ws(' ', f.kind, f.event_type), f.pod_namespace || '/' || f.pod_name, f.container_name, f.container_id,
           concat_ws(', ', nullif(f.cause, ''), 'found ' || f.detected_at, 'resolved ' || r.at, 'finding ' || f.finding_id), x.epoch, f.seq
    FROM store.finding f
    CROSS JOIN LATERAL (SELECT coalesce(f.occurred_at, f.window_to, f.detected_at) AS at) m
    LEFT JOIN store.context x ON x.context_id = f.context_id
    LEFT JOIN LATERAL (
      SELECT min(u.at) AS at FROM store.finding_update u
      WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved'
    ) r ON true
    WHERE f.node_id = id AND f.day >= first_day AND f.detected_at >= timeline.since AND m.at BETWEEN timeline.since AND timeline.until
    UNION ALL
    SELECT s.opened_at, s.closed_at, 'session', 'opened', NULL, NULL, NULL,
           concat('first event ' || s.armed_at, CASE WHEN s.armed_at IS NULL THEN 'no event' END), s.epoch, NULL
    FROM plegwatch.stream_sessions s
    WHERE s.cluster = of_cluster AND s.node = of_node AND s.opened_at <= timeline.until
      AND coalesce(s.closed_at, 'infinity') >= timeline.since
    UNION ALL
    SELECT s.closed_at, NULL, 'session', 'ended', NULL, NULL, NULL,
           concat_ws(': ', s.code, nullif(s.message, '')), s.epoch, NULL
    FROM plegwatch.stream_sessions s
    WHERE s.cluster = of_cluster AND s.node = of_node AND s.closed_at BETWEEN timeline.since AND timeline.until
    UNION ALL
    SELECT g.from_at, g.to_at, 'gap', g.scope, NULL, NULL, NULL,
           concat_ws(', ', g.cause, g.records || ' records', 'arrived ' || g.filled_at), g.epoch, NULL
    FROM plegwatch.gaps g
    WHERE g.cluster = of_cluster AND g.node = of_node AND g.from_at <= timeline.until AND coalesce(g.to_at, 'infinity') >= timeline.since
    UNION ALL
    SELECT m.at, NULL, 'mode', m.from_mode || ' -> ' || m.to_mode, NULL, NULL, NULL,
           concat_ws(', ', nullif(m.reason, ''), store.fallback_consequence(m.to_mode, m.reason, x.kubelet_version), 'not before ' || m.not_before),
           coalesce(m.epoch, x.epoch), m.seq
    FROM store.mode_transition m
    LEFT JOIN store.context x ON x.context_id = m.context_id
    WHERE m.node_id = id AND m.at BETWEEN timeline.since AND timeline.until
    UNION ALL
    SELECT k.at, NULL, 'condition', 'Ready=' || k.status, NULL, NULL, NULL, concat_ws(': ', k.reason, nullif(k.message, '')), NULL, NULL
    FROM store.node_condition k
    WHERE k.node_id = id AND k.day BETWEEN first_day AND last_day AND k.at BETWEEN timeline.since AND timeline.until
    UNION ALL
    SELECT r.at, NULL, 'condition', 'Ready=' || r.status, NULL, NULL, NULL,
           concat_ws(': ', nullif(r.reason, ''), nullif(array_to_string(r.causes, ', '), '')), NULL, NULL
    FROM store.ready_change r
    WHERE r.node_id = id AND r.at BETWEEN timeline.since AND timeline.until
      AND NOT EXISTS (SELECT FROM store.node_condition k
                      WHERE k.node_id = id AND k.at = r.at AND k.day = (r.at AT TIME ZONE 'UTC')::date)
    UNION ALL
    SELECT t.at, NULL, 'agent', t.what, NULL, NULL, NULL, t.detail, e.epoch, NULL
    FROM plegwatch.epochs e
    CROSS JOIN LATERAL (VALUES
      (e.started_at, 'started', concat_ws(', ', 'version ' || e.agent_version, 'incarnation ' || e.incarnation)),
      (e.ended_at, 'ended', e.end_cause)) AS t (at, what, detail)
    WHERE e.cluster = of_cluster AND e.node = of_node AND t.at BETWEEN timeline.since AND timeline.until
  ) t
  ORDER BY t.at, t.epoch, t.seq NULLS LAST, t.kind, t.what;
END $$;
REVOKE ALL ON FUNCTION plegwatch.timeline(text, text, timestamptz, timestamptz) FROM PUBLIC;

-- A day after the other, from the newest, until there are enough: a partition is read only if the days after it had too few, and only if some epoch of
-- the node can have an event in it: an agent may have received one shortly before its epoch began. The day of an event is that of its received_at. Containers are looked up for the events that are returned.
CREATE FUNCTION plegwatch.last_events(of_cluster text, of_node text, n int4 DEFAULT 50)
RETURNS SETOF plegwatch.container_events LANGUAGE plpgsql STABLE AS $$
DECLARE
  id int4;
  wanted int4 := least(n, 10000);
  one_day date;
  earliest timestamptz;
  found_count int4;
BEGIN
  SELECT m.node_id INTO id FROM store.node m JOIN store.cluster c ON c.cluster_id = m.cluster_id
  WHERE c.name = of_cluster AND m.name = of_node;
  FOR one_day IN
    SELECT p.day
    FROM (SELECT to_date(right(child.relname, 8), 'YYYYMMDD') AS day
          FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid
          WHERE i.inhparent = 'store.container_event'::regclass AND NOT i.inhdetachpending) p
    WHERE EXISTS (SELECT FROM store.epoch e
                  WHERE e.node_id = id
                    AND p.day BETWEEN (e.started_at AT TIME ZONE 'UTC')::date - 1 AND (e.last_record_at AT TIME ZONE 'UTC')::date)
    ORDER BY p.day DESC
  LOOP
    EXIT WHEN wanted <= 0;
    SELECT min(last.received_at) INTO earliest
    FROM (SELECT e.received_at FROM store.container_event e
          WHERE e.node_id = id AND e.day = one_day ORDER BY e.received_at DESC LIMIT wanted) last;
    CONTINUE WHEN earliest IS NULL;
    RETURN QUERY
    SELECT v.* FROM plegwatch.container_events v
    WHERE v.cluster = of_cluster AND v.node = of_node AND v.day = one_day AND v.received_at >= earliest
    ORDER BY v.received_at DESC, v.seq DESC LIMIT wanted;
    GET DIAGNOSTICS found_count = ROW_COUNT;
    wanted := wanted - found_count;
  END LOOP;
END $$;
REVOKE ALL ON FUNCTION plegwatch.last_events(text, text, int4) FROM PUBLIC;

-- A fallback that nobody observed to its end is followed by another row once an agent finds the kubelet still in it.
CREATE VIEW plegwatch.fallback_intervals WITH (security_invoker = true) AS
SELECT c.name AS cluster, n.name AS node, m.not_before, m.at AS from_at, m.next_at AS to_at,
       extract(epoch FROM coalesce(m.next_at, now()) - m.at)::float8 / 3600 AS hours,
       m.model, m.to_mode AS mode, nullif(m.reason, '') AS reason, m.next_mode, s.code AS our_stream_ended_with, s.message,
       nullif(x.runtime_name, '') AS runtime_name, nullif(x.runtime_version, '') AS runtime_version,
       nullif(x.kubelet_version, '') AS kubelet_version, store.fallback_consequence(m.to_mode, m.reason, x.kubelet_version) AS consequence,
       (SELECT count(*) FROM store.finding f
        WHERE f.node_id = m.node_id AND f.kind IN ('missed', 'kubelet_late') AND f.detected_at >= m.at AND f.detected_at < coalesce(m.next_at, 'infinity')
          AND f.day >= (m.at AT TIME ZONE 'UTC')::date
          AND NOT EXISTS (
            SELECT FROM store.finding_update u WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved')) AS findings
FROM (
  SELECT m.*, lead(m.at) OVER of_node AS next_at, lead(m.to_mode) OVER of_node AS next_mode
  FROM store.mode_transition m WINDOW of_node AS (PARTITION BY m.node_id ORDER BY m.at, m.seq)
) m
LEFT JOIN store.node n ON n.node_id = m.node_id
LEFT JOIN store.cluster c ON c.cluster_id = m.cluster_id
LEFT JOIN store.context x ON x.context_id = m.context_id
LEFT JOIN LATERAL (
  SELECT s.code, s.message FROM store.stream_session s
  WHERE s.node_id = m.node_id AND m.from_mode <> 'Unknown'
    AND s.closed_at BETWEEN m.not_before - interval '5 minutes' AND m.at + interval '10 seconds'
  ORDER BY s.closed_at DESC LIMIT 1
) s ON true
WHERE m.to_mode IN ('Fallback', 'HintDisabled');

-- The fields of a Node in each period, its first row also before it: labels are older than the controller that stored them.
CREATE VIEW store.node_info_period WITH (security_invoker = true) AS
SELECT i.node_id, i.cluster_id, i.labels, i.os_image, i.kernel_version,
       CASE WHEN lag(i.at) OVER of_node IS NULL THEN timestamptz '-infinity' ELSE i.at END AS from_at,
       coalesce(lead(i.at) OVER of_node, 'infinity') AS to_at
FROM store.node_info i
WINDOW of_node AS (PARTITION BY i.node_id ORDER BY i.at);

-- By what nodes are grouped: a stored label, or os_image or kernel_version. An empty one is none.
CREATE FUNCTION store.node_group(labels jsonb, os_image text, kernel_version text, by_label text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN nullif(CASE by_label WHEN 'os_image' THEN os_image WHEN 'kernel_version' THEN kernel_version ELSE labels ->> by_label END, '');

-- Sums of the minutes from since to until, by context and hour or part of one: whole hours are read as such, minutes only of the hours in which
-- the period begins or ends, and of each what is within it. at: the hour, or the minute. A single query without STRICT, so that the planner inlines it.
CREATE FUNCTION store.coverage(since timestamptz, until timestamptz)
RETURNS TABLE (node_id int4, context_id int4, at timestamptz, is_hour bool, span_us int8, covered_us int8, matched int8, relists int8, max_us int8)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT h.node_id, h.context_id, h.hour, true, h.span_us, h.covered_us, h.matched, h.relists, h.max_us
  FROM store.relist_hour h
  -- Each bound is computed once: the conversions would cost more than reading an hour does. The planner does not know them, and expects a two-hundredth
  -- of the rows of each pair: with a second one for the day, so few that it sorts millions instead of hashing them.
  WHERE h.day >= (SELECT (since AT TIME ZONE 'UTC')::date) AND h.hour >= (SELECT since) AND h.hour < (SELECT date_trunc('hour', until, 'UTC'))
  UNION ALL
  -- Without these casts it is no plain append, and no worker helps to read the hours.
  SELECT m.node_id, m.context_id, greatest(m.minute, since), false,
         (m.span_us * store.share_within(m.ended_at, m.span_us, since, until))::int8,
         (m.covered_us * store.share_within(m.ended_at, m.span_us, since, until))::int8,
         (CASE WHEN m.minute >= since THEN m.matched ELSE 0 END)::int8, (m.relists * store.share_within(m.ended_at, m.span_us, since, until))::int8,
         m.max_us::int8
  FROM store.relist_minute m
  WHERE m.day BETWEEN ((since - interval '12 minutes') AT TIME ZONE 'UTC')::date AND (until AT TIME ZONE 'UTC')::date
    AND m.minute > since - interval '12 minutes' AND m.minute < until AND m.ended_at > since
    -- A row is of the hour in which it begins. So a period that ends with an hour has what its last row says beyond it, and not what the row before says of it.
    AND (m.minute >= date_trunc('hour', since, 'UTC') OR until <> date_trunc('hour', until, 'UTC'))
    AND (m.minute < date_trunc('hour', since + interval '1 hour' - interval '1 microsecond', 'UTC') OR m.minute >= date_trunc('hour', until, 'UTC'))
$$;
REVOKE ALL ON FUNCTION store.coverage(timestamptz, timestamptz) FROM PUBLIC;

CREATE TYPE plegwatch.miss_rate_of_versions AS (
  cluster text,
  runtime_name text,
  runtime_version text,
  kubelet_version text,
  nodes int8,
  decided int8,
  missed int8,
  per_million float8,
  low_per_million float8,
  high_per_million float8,
  label text
);

CREATE FUNCTION plegwatch.miss_rate(since timestamptz DEFAULT now() - interval '7 days', until timestamptz DEFAULT now(),
                                    by_label text DEFAULT NULL)
RETURNS SETOF plegwatch.miss_rate_of_versions LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH label AS MATERIALIZED (
    SELECT i.node_id, i.from_at, i.to_at, store.node_group(i.labels, i.os_image, i.kernel_version, by_label) AS label
    FROM store.node_info_period i WHERE by_label IS NOT NULL
  ), mixed AS MATERIALIZED (
    -- Hours within which a label changed: their minutes are read.
    SELECT DISTINCT l.node_id, h.hour, (h.hour AT TIME ZONE 'UTC')::date AS day
    FROM label l CROSS JOIN LATERAL (SELECT date_trunc('hour', l.from_at, 'UTC') AS hour) h
    WHERE l.from_at > h.hour AND h.hour >= since AND h.hour < date_trunc('hour', until, 'UTC')
  ), counted AS (
    SELECT c.node_id, c.context_id, c.at, c.matched
    FROM store.coverage(since, until) c
    -- NOT IN is hashed, however many labels changed.
    WHERE by_label IS NOT NULL AND (NOT c.is_hour OR (c.node_id, c.at) NOT IN (SELECT x.node_id, x.hour FROM mixed x))
    UNION ALL
    SELECT m.node_id, m.context_id, m.minute, m.matched
    FROM mixed x
    JOIN store.relist_minute m ON m.node_id = x.node_id AND m.day = x.day AND m.minute >= x.hour AND m.minute < x.hour + interval '1 hour'
  ), matched AS (
    -- Without a label nothing is looked up for an hour, and workers help to read them.
    SELECT c.context_id, NULL::text AS label, sum(c.matched) AS matched
    FROM store.coverage(since, until) c WHERE by_label IS NULL
    GROUP BY c.context_id
    UNION ALL
    SELECT c.context_id, l.label, sum(c.matched) AS matched
    FROM counted c
    LEFT JOIN label l ON l.node_id = c.node_id AND c.at >= l.from_at AND c.at < l.to_at
    GROUP BY c.context_id, l.label
  ), missed AS (
    SELECT f.context_id, l.label, count(*) AS missed
    FROM store.finding f
    LEFT JOIN label l ON l.node_id = f.node_id AND f.detected_at >= l.from_at AND f.detected_at < l.to_at
    WHERE f.kind = 'missed' AND f.detected_at >= since AND f.detected_at < until AND f.day >= (since AT TIME ZONE 'UTC')::date
      AND NOT EXISTS (
        SELECT FROM store.finding_update u WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved')
    GROUP BY f.context_id, l.label
  ), seen AS (
    SELECT x.cluster_id, x.runtime_name, x.runtime_version, x.kubelet_version, coalesce(a.label, i.label) AS label, count(DISTINCT x.node_id) AS nodes,
           coalesce(sum(a.matched), 0) + coalesce(sum(i.missed), 0) AS decided, coalesce(sum(i.missed), 0) AS missed
    FROM matched a
    FULL JOIN missed i ON i.context_id = a.context_id AND coalesce(i.label, '') = coalesce(a.label, '')
    JOIN store.context x ON x.context_id = coalesce(a.context_id, i.context_id)
    GROUP BY x.cluster_id, x.runtime_name, x.runtime_version, x.kubelet_version, coalesce(a.label, i.label)
  )
  SELECT c.name, nullif(s.runtime_name, ''), nullif(s.runtime_version, ''), nullif(s.kubelet_version, ''), s.nodes,
         store.fit_int8(s.decided), store.fit_int8(s.missed), s.missed::float8 * 1e6 / nullif(s.decided, 0)::float8,
         store.wilson_low(s.missed::float8, s.decided::float8) * 1e6, store.wilson_high(s.missed::float8, s.decided::float8) * 1e6, s.label
  FROM seen s JOIN store.cluster c USING (cluster_id)
  ORDER BY 1, 11, 2, 3, 4
$$;

CREATE TYPE plegwatch.completeness_of_day AS (
  cluster text,
  day date,
  nodes int8,
  nodes_without_minutes int8,
  listed_share float8,
  stream_share float8,
  decided_share float8,
  records_lost int8,
  label text
);

CREATE FUNCTION plegwatch.evidence_completeness(first_day date DEFAULT (now() AT TIME ZONE 'UTC')::date - 6,
                                                last_day date DEFAULT (now() AT TIME ZONE 'UTC')::date, by_label text DEFAULT NULL)
RETURNS SETOF plegwatch.completeness_of_day LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH minute AS (
    SELECT h.node_id, h.day, sum(h.listed_us) AS listed_us, sum(h.covered_us) AS covered_us, sum(h.expected) AS expected,
           sum(h.unobservable) AS unobservable
    FROM store.relist_hour h WHERE h.day BETWEEN first_day AND last_day
    GROUP BY h.node_id, h.day
  ), lost AS (
    SELECT g.node_id, (g.from_at AT TIME ZONE 'UTC')::date AS day, sum(g.records) AS records
    FROM store.gap g
    WHERE g.scope IN ('seq', 'spool') AND g.filled_at IS NULL AND g.from_at >= first_day::timestamp AT TIME ZONE 'UTC'
    GROUP BY 1, 2
  ), latest AS (
    SELECT m.node_id, max(m.ended_at) AS ended_at FROM store.relist_minute m
    WHERE m.minute > now() - interval '22 minutes' AND m.day >= ((now() - interval '22 minutes') AT TIME ZONE 'UTC')::date
    GROUP BY m.node_id
  ), node_day AS (
    SELECT n.cluster_id, d.day, n.node_id, d.to_at,
           -- As of the fleet: of an agent that reports, until its latest minute, as the next one is still to come.
           greatest(0, 1e6 * extract(epoch FROM least(d.to_at, r.node_deleted_at, CASE WHEN n.last_seen < now() - store.silent_after() THEN now() ELSE coalesce(t.ended_at, now()) END)
                                                - greatest(d.from_at, n.first_seen))) AS possible_us
    FROM generate_series(first_day::timestamp, last_day::timestamp, interval '1 day') AS g (at)
    CROSS JOIN LATERAL (SELECT g.at::date AS day, g.at AT TIME ZONE 'UTC' AS from_at, (g.at + interval '1 day') AT TIME ZONE 'UTC' AS to_at) d
    JOIN store.node n ON n.first_seen < least(d.to_at, now())
    LEFT JOIN latest t ON t.node_id = n.node_id
    LEFT JOIN store.report r ON r.node_id = n.node_id
    WHERE coalesce(r.node_deleted_at > d.from_at, true)
  )
  SELECT c.name, nd.day, count(*), count(*) FILTER (WHERE m.node_id IS NULL),
         CASE WHEN sum(nd.possible_us) > 0 THEN least(1, coalesce(sum(m.listed_us), 0) / sum(nd.possible_us)) END::float8,
         CASE WHEN sum(nd.possible_us) > 0 THEN least(1, coalesce(sum(m.covered_us), 0) / sum(nd.possible_us)) END::float8,
         (1 - sum(m.unobservable)::float8 / nullif(sum(m.expected), 0)::float8),
         coalesce(sum(l.records), 0)::int8, store.node_group(i.labels, i.os_image, i.kernel_version, by_label)
  FROM node_day nd
  JOIN store.cluster c ON c.cluster_id = nd.cluster_id
  LEFT JOIN minute m ON m.node_id = nd.node_id AND m.day = nd.day
  LEFT JOIN lost l ON l.node_id = nd.node_id AND l.day = nd.day
  LEFT JOIN store.node_info_period i ON i.node_id = nd.node_id AND i.from_at < nd.to_at AND i.to_at >= nd.to_at AND by_label IS NOT NULL
  GROUP BY 1, 2, 9
  ORDER BY 1, 9, 2
$$;

-- Would Evented PLEG be safe on a node?
--   unsafe    its kubelet fell back, or would leave pods wrong if it did, or more than 100 of a million events are missed, with 95 % confidence
--   safe      fewer than 1,000 of a million are missed, with 95 % confidence, and the stream was watched for 90 % of the time
--   unknown   everything else; the reason says what is missing
CREATE FUNCTION store.readiness_verdict(fallbacks int8, keeps_wrong bool, stream_state text, low_per_million float8, high_per_million float8,
                                        coverage float8) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN fallbacks > 0 OR keeps_wrong OR low_per_million > 100 THEN 'unsafe'
  WHEN stream_state IN ('Unsupported', 'Disabled', 'Unsafe', 'Off') THEN 'unknown'
  WHEN high_per_million <= 1000 AND coverage >= 0.9 THEN 'safe'
  ELSE 'unknown' END;

-- is_observed: whether an agent reported at all. decided: how many events.
CREATE FUNCTION store.readiness_reason(verdict text, fallbacks int8, keeps_wrong bool, stream_state text, low_per_million float8,
                                       high_per_million float8, coverage float8, is_observed bool, decided float8)
RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
  WHEN verdict = 'unsafe' AND fallbacks > 0 THEN format('its kubelet fell back %s', CASE fallbacks WHEN 1 THEN 'once' ELSE format('%s times', fallbacks) END)
  WHEN verdict = 'unsafe' AND keeps_wrong THEN 'a fallback leaves pods wrong until its kubelet restarts: upgrade it to 1.32'
  WHEN verdict = 'unsafe' THEN format('at least %s of a million events are missed', round(low_per_million::numeric))
  WHEN verdict = 'safe' THEN format('at most %s of a million events are missed', round(high_per_million::numeric))
  WHEN NOT is_observed THEN 'no agent reported'
  WHEN stream_state IN ('Unsupported', 'Disabled', 'Unsafe', 'Off') THEN 'there is no event stream: ' || stream_state
  WHEN coverage < 0.9 THEN format('the stream was watched for %s %% of the time', round(100 * coverage::numeric))
  ELSE format('%s events are too few: up to %s of a million may be missed', decided, coalesce(round(high_per_million::numeric), 1000000)) END;

-- The verdict on each Node that exists, by the last seven days.
-- OFFSET 0 makes what each row is judged by be computed once: without it, the planner computes it again for each of the dozen times that it is named.
CREATE VIEW plegwatch.readiness WITH (security_invoker = true) AS
SELECT r.cluster, r.node, r.verdict,
       store.readiness_reason(r.verdict, r.fallbacks, r.keeps_wrong, r.stream_state, r.low_per_million, r.high_per_million, r.coverage,
                              r.observed_hours IS NOT NULL, r.decided) AS reason,
       r.stream_state, r.mode, r.runtime_name, r.runtime_version, r.kubelet_version, r.observed_hours, r.coverage, r.decided, r.missed,
       r.per_million, r.low_per_million, r.high_per_million, r.fallbacks, r.blind_spots, r.os_image, r.kernel_version, r.labels
FROM (
  SELECT p.cluster, p.node, p.stream_state, p.mode, p.runtime_name, p.runtime_version, p.kubelet_version, p.os_image, p.kernel_version, p.labels,
         w.span_us / 3.6e9 AS observed_hours, w.covered_us / nullif(w.span_us, 0) AS coverage,
         d.decided, f.missed, f.missed * 1e6 / nullif(d.decided, 0) AS per_million, i.low_per_million, i.high_per_million,
         b.fallbacks, f.blind_spots, k.keeps_wrong, v.verdict
  FROM store.node_detail p
  LEFT JOIN (
    SELECT m.node_id, sum(m.matched)::float8 AS matched, sum(m.covered_us)::float8 AS covered_us, sum(m.span_us)::float8 AS span_us
    FROM store.coverage(now() - interval '7 days', 'infinity') m
    GROUP BY m.node_id
  ) w ON w.node_id = p.node_id
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE f.kind = 'missed' AND NOT EXISTS (
             SELECT FROM store.finding_update u
             WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved')) AS missed,
           array_agg(DISTINCT concat(f.event_type, CASE f.container_name WHEN '' THEN ' of a sandbox' ELSE ' of a container' END))
             FILTER (WHERE f.kind = 'unannounced' AND f.cause = 'never_sent') AS blind_spots
    FROM store.finding f
    WHERE f.node_id = p.node_id AND f.detected_at > now() - interval '7 days' AND f.kind IN ('missed', 'unannounced')
      AND f.day >= ((now() - interval '7 days') AT TIME ZONE 'UTC')::date
  ) f
  CROSS JOIN LATERAL (
    SELECT count(*) AS fallbacks FROM store.mode_change m
    WHERE m.node_id = p.node_id AND m.at > now() - interval '7 days' AND m.to_mode IN ('Fallback', 'HintDisabled')
      AND m.day >= ((now() - interval '7 days') AT TIME ZONE 'UTC')::date
  ) b
  CROSS JOIN LATERAL (SELECT coalesce(store.fallback_consequence('Fallback', '', p.kubelet_version) = 'wrong_until_restart', false) AS keeps_wrong OFFSET 0) k
  CROSS JOIN LATERAL (SELECT coalesce(w.matched, 0) + f.missed AS decided) d
  CROSS JOIN LATERAL (SELECT 1e6 * store.wilson_low(f.missed, d.decided) AS low_per_million,
                             1e6 * store.wilson_high(f.missed, d.decided) AS high_per_million OFFSET 0) i
  CROSS JOIN LATERAL (
    SELECT store.readiness_verdict(b.fallbacks, k.keeps_wrong, p.stream_state, i.low_per_million, i.high_per_million,
                                   w.covered_us / nullif(w.span_us, 0)) AS verdict
    OFFSET 0
  ) v
  -- Not p.deleted_at IS NULL: without a report, as without an API server, the planner would expect one Node, and read the hours again for each.
  WHERE NOT EXISTS (SELECT FROM store.report r WHERE r.node_id = p.node_id AND r.node_deleted_at IS NOT NULL)
) r;

REVOKE ALL ON FUNCTION plegwatch.miss_rate(timestamptz, timestamptz, text), plegwatch.evidence_completeness(date, date, text) FROM PUBLIC;
