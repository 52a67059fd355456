-- The nodes of the clusters $1, null for all, at most $2.
--
-- completeness24h: the share of the time in which the stream was watched, by the hours that the minutes of the agents add up to. It begins with the hour in
-- which the last 24 hours begin, or where evidence of the present machine begins. It ends with the latest minute of an agent that reports, whose present minute is still to
-- come, and now for all others.
--
-- Sums are joined to the nodes before anything else: from the joins by name the planner expects one row, and would add up again for each node.
WITH w AS (
  SELECT now() AS now, now() - interval '24 hours' AS day_ago, date_trunc('hour', now() - interval '24 hours', 'UTC') AS since
), own AS (
  -- Where the machine was replaced: since when evidence is of the present one.
  SELECT n.node_id, coalesce(min(e.started_at), n.replaced_at) AS since
  FROM store.node n LEFT JOIN store.epoch e ON e.node_id = n.node_id AND e.last_seen >= n.replaced_at
  WHERE n.replaced_at IS NOT NULL GROUP BY n.node_id
), missed AS MATERIALIZED (
  SELECT f.node_id, count(*)::int4 AS missed
  FROM w CROSS JOIN store.finding f LEFT JOIN own ON own.node_id = f.node_id
  WHERE f.kind = 'missed' AND f.detected_at > w.day_ago AND f.day >= ((now() - interval '24 hours') AT TIME ZONE 'UTC')::date
    AND f.detected_at >= coalesce(own.since, '-infinity')
    AND NOT EXISTS (
      SELECT FROM store.finding_update u WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved')
  GROUP BY f.node_id
), covered AS MATERIALIZED (
  SELECT h.node_id, sum(h.us)::float8 AS us
  FROM (
    SELECT h.node_id, h.context_id, sum(h.covered_us) AS us FROM store.relist_hour h
    WHERE h.hour >= date_trunc('hour', now() - interval '24 hours', 'UTC') AND h.day >= ((now() - interval '24 hours') AT TIME ZONE 'UTC')::date
    GROUP BY h.node_id, h.context_id
  ) h
  JOIN store.node n ON n.node_id = h.node_id
  LEFT JOIN store.context x ON x.context_id = h.context_id
  LEFT JOIN store.epoch e ON e.node_id = h.node_id AND e.epoch = x.epoch
  WHERE coalesce(e.last_seen >= n.replaced_at, true)
  GROUP BY h.node_id
), latest AS MATERIALIZED (
  -- A row is about ten minutes at most and is stored within seconds of their end, and the next one ten minutes later at the latest: if the last one began longer
  -- ago than this, the agent is behind.
  SELECT m.node_id, max(m.ended_at) AS ended_at FROM store.relist_minute m
  WHERE m.minute > now() - interval '22 minutes' AND m.day >= ((now() - interval '22 minutes') AT TIME ZONE 'UTC')::date
  GROUP BY m.node_id
), hang AS MATERIALIZED (
  -- While a list hangs, every minute says so. That of an earlier agent says nothing of the present.
  SELECT DISTINCT ON (m.node_id) m.node_id, m.ended_at, m.hang_verdict AS verdict, o.pod_namespace, o.pod_name, o.container_name, o.container_id
  FROM store.relist_minute m
  JOIN store.node n ON n.node_id = m.node_id
  JOIN store.context x ON x.context_id = m.context_id
  JOIN store.epoch e ON e.node_id = m.node_id AND e.epoch = x.epoch AND e.incarnation = n.incarnation
  LEFT JOIN store.container o ON o.node_id = m.node_id AND o.container_key = m.slow_status_key AND o.day = m.day AND m.hang_verdict IN ('container', 'pod')
  WHERE m.hang_from IS NOT NULL AND m.hang_to IS NULL AND m.minute > now() - interval '22 minutes'
    AND m.day >= ((now() - interval '22 minutes') AT TIME ZONE 'UTC')::date
  ORDER BY m.node_id, m.ended_at DESC
), figure AS MATERIALIZED (
  SELECT n.node_id, m.missed, d.us AS covered_us, t.ended_at, own.since AS own_since, c.reason AS incomplete,
         h.verdict, h.pod_namespace, h.pod_name, h.container_name, h.container_id,
         store.caught_up_ms(g.said_at, g.caught_up_since) AS caught_up_ms, a.status AS agent_status, a.since AS agent_since
  FROM store.node n
  JOIN store.cluster k ON k.cluster_id = n.cluster_id
  LEFT JOIN own ON own.node_id = n.node_id
  LEFT JOIN missed m ON m.node_id = n.node_id
  LEFT JOIN covered d ON d.node_id = n.node_id
  LEFT JOIN latest t ON t.node_id = n.node_id
  LEFT JOIN store.report_condition c ON c.node_id = n.node_id AND c.type = 'EvidenceComplete' AND c.status <> 'True'
  LEFT JOIN hang h ON h.node_id = n.node_id AND h.ended_at = t.ended_at
  LEFT JOIN store.report_condition a ON a.node_id = n.node_id AND a.type = 'AgentReporting'
  LEFT JOIN store.ingest g ON g.cluster_id = n.cluster_id
  WHERE ($1::text[] IS NULL OR k.name = ANY ($1))
    AND NOT EXISTS (SELECT FROM store.report r WHERE r.node_id = n.node_id AND r.node_deleted_at IS NOT NULL)
)
SELECT p.cluster, p.node, p.pool, f.caught_up_ms AS "caughtUpMs", f.agent_status AS "agentStatus", f.agent_since AS "agentSince", p.relist_healthy AS "relistHealthy",
       p.mode, p.mode_reason AS "modeReason",
       p.mode_since AS "modeSince", p.stream_state AS "streamState", p.stream_reason AS "streamReason",
       CASE WHEN s.share > 0 OR f.missed > 0 THEN coalesce(f.missed, 0) END AS "missed24h",
       s.share AS "completeness24h", f.incomplete AS "incompleteReason",
       f.verdict, f.pod_namespace, f.pod_name, f.container_name, f.container_id,
       p.runtime_name AS "runtimeName", p.runtime_version AS "runtimeVersion", p.kubelet_version AS "kubeletVersion",
       p.agent_version AS "agentVersion", p.last_seen AS "lastSeen"
FROM w
CROSS JOIN figure f
JOIN store.node_detail p ON p.node_id = f.node_id
CROSS JOIN LATERAL (SELECT coalesce(p.last_seen < w.now - store.silent_after(), false) AS is_silent) a
CROSS JOIN LATERAL (
  SELECT CASE WHEN f.own_since IS NOT NULL THEN greatest(w.since, f.own_since)
              WHEN p.first_seen < w.since THEN w.since
              ELSE greatest(w.since, least(p.first_seen, (SELECT min(e.started_at) FROM store.epoch e WHERE e.node_id = f.node_id)))
         END AS from_at,
         CASE WHEN a.is_silent THEN w.now ELSE least(coalesce(f.ended_at, w.now), w.now) END AS to_at
) o
CROSS JOIN LATERAL (
  -- Nothing is known yet of an agent that has not reported its first minute.
  SELECT CASE WHEN p.first_seen IS NOT NULL AND (f.covered_us IS NOT NULL OR a.is_silent) AND o.to_at > o.from_at THEN
           least(1, coalesce(f.covered_us, 0) / (extract(epoch FROM o.to_at - o.from_at)::float8 * 1e6))
         END AS share
) s
ORDER BY p.cluster COLLATE "C", p.node COLLATE "C"
LIMIT $2;
