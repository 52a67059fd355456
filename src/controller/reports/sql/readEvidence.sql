-- Everything a report says, one row for each node of $1. own.since: from here on, the evidence is of the
-- present machine of that name, by the clock of its first agent.
WITH w AS (SELECT now() AS now, now() - interval '24 hours' AS day_ago, now() - interval '1 hour' AS hour_ago)
SELECT n.node_id, n.name AS node, w.now, n.first_seen, n.last_seen,
       coalesce(r.created_at, n.first_seen, w.now) AS created_at, r.written_at, r.status_digest,
       e.epoch, e.complete_through, e.attributed, e.head_seq, e.head_from, e.head, o.kubelet_seen_to,
       coalesce(x.agent_version, '') AS agent_version, coalesce(x.runtime_name, '') AS runtime_name,
       coalesce(x.runtime_version, '') AS runtime_version, coalesce(x.kubelet_version, '') AS kubelet_version,
       CASE WHEN s.node_id IS NOT NULL THEN to_jsonb(s) END AS state,
       hang.list_hang, coalesce(b.boots, '[]') AS boots,
       coalesce(m.expected, 0) AS expected, coalesce(m.matched, 0) AS matched, coalesce(m.unobservable, 0) AS unobservable,
       coalesce(m.covered_us, 0) + coalesce(d.covered_us, 0) AS covered_us,
       greatest(w.day_ago, least(n.first_seen, m.since)) AS observed_from, m.until AS observed_to,
       least(store.hist_quantile(m.hist, 0.5), m.max_us / 1000) AS p50_ms,
       least(store.hist_quantile(m.hist, 0.99), m.max_us / 1000) AS p99_ms,
       m.errors AS relist_errors, s.kubelet_stream_errors,
       m.kubelet_relist_period_ms,
       f.total AS missed_total, f.last24h AS missed_last24h, f.resolved24h AS missed_resolved24h,
       f.last_at AS missed_last_at, f.oldest24h AS missed_oldest24h,
       coalesce(k.findings, '[]') AS findings,
       coalesce(l.missed_events, '[]') AS missed_events,
       coalesce(h.mode_history, '[]') AS mode_history,
       EXISTS (
         SELECT FROM store.gap g
         WHERE g.node_id = n.node_id AND g.scope = 'seq' AND g.filled_at IS NULL AND coalesce(g.to_at, w.now) > greatest(w.day_ago, own.since)
       ) AS records_lost,
       coalesce(c.conditions, '[]') AS conditions,
       store.caught_up_ms(i.said_at, i.caught_up_since) AS ingest_caught_up_ms
FROM w
CROSS JOIN unnest($1::int4[]) AS asked (node_id)
JOIN store.node n ON n.node_id = asked.node_id
CROSS JOIN LATERAL (
  SELECT coalesce((SELECT min(e.started_at) FROM store.epoch e WHERE e.node_id = n.node_id AND e.last_seen >= n.replaced_at),
                  n.replaced_at, '-infinity') AS since
) own
LEFT JOIN store.ingest i ON i.cluster_id = n.cluster_id
LEFT JOIN store.report r ON r.node_id = n.node_id
LEFT JOIN store.context x ON x.context_id = n.context_id
-- The report of an earlier agent says nothing of the present.
LEFT JOIN store.node_state s ON s.node_id = n.node_id AND s.incarnation = n.incarnation
LEFT JOIN LATERAL (
  SELECT e.epoch, e.complete_through, e.is_attributed AS attributed, e.head_seq, e.head_from, e.head FROM store.epoch e
  WHERE e.node_id = n.node_id AND e.incarnation = n.incarnation ORDER BY e.last_stored_at DESC LIMIT 1
) e ON true
LEFT JOIN LATERAL (
  -- As store.list_hang, of the last minute only: while a list hangs, every minute says so.
  SELECT jsonb_build_object('list_call', m.hang_call, 'from_at', m.hang_from, 'verdict', m.hang_verdict,
                            'why', store.list_hang_why(m.hang_call, m.hang_verdict), 'pod_namespace', o.pod_namespace, 'pod_name', o.pod_name,
                            'container_name', nullif(o.container_name, ''), 'container_id', o.container_id) AS list_hang
  FROM (
    SELECT m.* FROM store.relist_minute m
    JOIN store.context mx ON mx.context_id = m.context_id AND mx.epoch = e.epoch
    WHERE m.node_id = n.node_id AND m.minute > w.now - interval '15 minutes' AND m.day >= ((w.now - interval '15 minutes') AT TIME ZONE 'UTC')::date
    ORDER BY m.ended_at DESC LIMIT 1
  ) m
  LEFT JOIN store.container o ON o.node_id = m.node_id AND o.container_key = m.slow_status_key AND o.day = m.day
                             AND m.hang_verdict IN ('container', 'pod')
  WHERE m.hang_from IS NOT NULL AND m.hang_to IS NULL
) hang ON true
LEFT JOIN LATERAL (
  SELECT jsonb_agg(to_jsonb(boot) ORDER BY boot.started_at, boot.boot_id) AS boots FROM store.boots_at_once(n.node_id) AS boot
) b ON true
LEFT JOIN LATERAL (
  SELECT max(e.kubelet_seen_to) AS kubelet_seen_to FROM store.epoch e
  WHERE e.node_id = n.node_id AND coalesce(e.last_seen >= n.replaced_at, true)
) o ON true
LEFT JOIN LATERAL (
  -- A minute at the edge of the window counts for the part inside.
  SELECT sum(m.expected)::float8 AS expected, sum(m.matched)::float8 AS matched, sum(m.unobservable)::float8 AS unobservable,
         sum(m.covered_us * store.share_within(m.ended_at, m.span_us, w.day_ago, 'infinity'))::float8 AS covered_us,
         min(m.minute) AS since, max(m.ended_at) AS until,
         store.hist_sum(m.hist::int4[]) FILTER (WHERE m.minute > w.hour_ago) AS hist,
         max(m.max_us) FILTER (WHERE m.minute > w.hour_ago AND m.relists > 0)::float8 AS max_us,
         sum(m.errors) FILTER (WHERE m.minute > w.hour_ago)::float8 AS errors,
         -- The kubelet's own times between relists, in its present mode only: they differ between modes.
         sum(m.kubelet_interval_us) FILTER (WHERE m.ended_at > greatest(w.hour_ago, s.mode_since))::float8 / 1000
           / nullif(sum(m.kubelet_intervals) FILTER (WHERE m.ended_at > greatest(w.hour_ago, s.mode_since)), 0) AS kubelet_relist_period_ms
  FROM store.relist_minute m
  WHERE m.node_id = n.node_id AND m.minute > w.day_ago - interval '12 minutes' AND m.ended_at > w.day_ago AND m.minute >= own.since
    AND m.day >= ((w.day_ago - interval '12 minutes') AT TIME ZONE 'UTC')::date
) m ON true
LEFT JOIN LATERAL (
  -- No row has the end of a calm time in which an agent was killed.
  SELECT sum(store.overlap_ms(u.from_at, u.to_at, w.day_ago, m.until)) * 1000 AS covered_us FROM store.unwritten_end u
  WHERE u.node_id = n.node_id AND u.is_covered AND u.to_at > w.day_ago AND u.to_at <= m.until AND u.from_at >= own.since
) d ON true
LEFT JOIN LATERAL (
  SELECT count(*) FILTER (WHERE u.finding_id IS NULL)::float8 AS total,
         count(*) FILTER (WHERE u.finding_id IS NULL AND f.detected_at > w.day_ago)::float8 AS last24h,
         count(*) FILTER (WHERE u.finding_id IS NOT NULL AND f.detected_at > w.day_ago)::float8 AS resolved24h,
         max(coalesce(f.occurred_at, f.window_to, f.detected_at)) FILTER (WHERE u.finding_id IS NULL) AS last_at,
         min(f.detected_at) FILTER (WHERE f.detected_at > w.day_ago) AS oldest24h
  FROM store.finding f
  LEFT JOIN (
    SELECT DISTINCT u.finding_id FROM store.finding_update u WHERE u.node_id = n.node_id AND u.what = 'resolved'
  ) u ON u.finding_id = f.finding_id
  WHERE f.node_id = n.node_id AND f.kind = 'missed' AND f.detected_at >= own.since
) f ON true
LEFT JOIN LATERAL (
  -- `missed` means unresolved, as in the field `missed`.
  SELECT jsonb_agg(jsonb_build_object('kind', kind, 'count', count) ORDER BY kind) AS findings
  FROM (
    SELECT f.kind, count(*) AS count FROM store.finding f
    WHERE f.node_id = n.node_id AND f.detected_at > w.day_ago AND f.detected_at >= own.since AND f.day >= ((w.day_ago) AT TIME ZONE 'UTC')::date
      AND (f.kind <> 'missed' OR NOT EXISTS (
        SELECT FROM store.finding_update u WHERE u.node_id = n.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved'))
    GROUP BY f.kind
  ) counted
) k ON true
LEFT JOIN LATERAL (
  SELECT jsonb_agg(to_jsonb(latest) ORDER BY latest.detected_at DESC, latest.finding_id) AS missed_events
  FROM (
    SELECT f.finding_id, coalesce(f.occurred_at, f.window_to, f.detected_at) AS at, f.detected_at, f.event_type, f.cause,
           f.pod_namespace, f.pod_name, nullif(f.container_name, '') AS container_name,
           (SELECT min(u.value_ms) FROM store.finding_update u
            WHERE u.node_id = n.node_id AND u.finding_id = f.finding_id AND u.what = 'lag_min') AS lag_ms
    FROM store.finding f
    WHERE f.node_id = n.node_id AND f.kind = 'missed' AND f.detected_at >= own.since AND NOT EXISTS (
      SELECT FROM store.finding_update u WHERE u.node_id = n.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved')
    ORDER BY f.detected_at DESC, f.finding_id LIMIT 5
  ) latest
) l ON true
LEFT JOIN LATERAL (
  SELECT jsonb_agg(to_jsonb(latest) - 'seq' ORDER BY latest.at DESC, latest.seq DESC) AS mode_history
  FROM (
    SELECT h.at, h.from_mode, h.to_mode, h.reason, h.seq FROM store.mode_transition h
    WHERE h.node_id = n.node_id AND h.at >= own.since
      -- The latest five are not older than the fifth latest that an agent saw.
      AND h.at >= coalesce((SELECT m.at FROM store.mode_change m WHERE m.node_id = n.node_id ORDER BY m.at DESC OFFSET 4 LIMIT 1),
                           '-infinity')
    ORDER BY h.at DESC, h.seq DESC LIMIT 5
  ) latest
) h ON true
LEFT JOIN LATERAL (
  SELECT jsonb_agg(jsonb_build_object('type', c.type, 'status', c.status, 'since', c.since)) AS conditions
  FROM store.report_condition c WHERE c.node_id = n.node_id
) c ON true
ORDER BY n.name COLLATE "C";
