-- The nodes of the clusters $1, null for all, at most $2.
--
-- pool: the first stored label that names one, such as karpenter.sh/nodepool, eks.amazonaws.com/nodegroup or one's own pool.
--
-- completeness24h: the share of the time that no gap of stream or agent covers, and in which the stream was not broken and the agent not silent. A
-- gap that lasts longer than two days shows in these two. It rests on gaps, not on minutes, because a day of minutes of a large fleet takes long to read.
WITH w AS (SELECT now() AS now, now() - interval '24 hours' AS day_ago), missed AS (
  SELECT f.node_id, count(*)::int4 AS missed
  FROM store.finding f, w
  WHERE f.kind = 'missed' AND f.detected_at > w.day_ago AND f.day >= ((now() - interval '24 hours') AT TIME ZONE 'UTC')::date
    AND NOT EXISTS (
      SELECT FROM store.finding_update u WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved')
  GROUP BY f.node_id
)
SELECT p.cluster, p.node, l.pool, a.agent, p.mode, p.mode_reason AS "modeReason",
       p.mode_since AS "modeSince", p.stream_state AS "streamState", p.stream_reason AS "streamReason",
       CASE WHEN s.share > 0 OR m.missed > 0 THEN coalesce(m.missed, 0) END AS "missed24h",
       s.share AS "completeness24h", c.reason AS "incompleteReason",
       p.runtime_name AS "runtimeName", p.runtime_version AS "runtimeVersion", p.kubelet_version AS "kubeletVersion",
       p.agent_version AS "agentVersion", p.last_seen AS "lastSeen"
FROM w
CROSS JOIN plegwatch.nodes p
JOIN store.cluster k ON k.name = p.cluster
JOIN store.node n ON n.cluster_id = k.cluster_id AND n.name = p.node
LEFT JOIN store.report r ON r.node_id = n.node_id
LEFT JOIN store.report_condition c ON c.node_id = n.node_id AND c.type = 'EvidenceComplete' AND c.status <> 'True'
LEFT JOIN missed m ON m.node_id = n.node_id
LEFT JOIN LATERAL (
  SELECT value AS pool FROM jsonb_each_text(p.labels) WHERE key ~ '(pool|nodegroup)$' ORDER BY key LIMIT 1
) l ON true
CROSS JOIN LATERAL (
  SELECT CASE WHEN p.last_seen IS NULL THEN 'NeverSeen' WHEN p.last_seen < w.now - store.silent_after() THEN 'AgentSilent'
              WHEN p.relist_healthy IS NULL THEN 'NotReportedYet' ELSE 'Reporting' END AS agent
) a
-- Where the node is younger than a day, from its first agent on.
CROSS JOIN LATERAL (
  SELECT CASE WHEN p.first_seen < w.day_ago THEN w.day_ago
              ELSE greatest(w.day_ago, least(p.first_seen, (SELECT min(e.started_at) FROM store.epoch e WHERE e.node_id = n.node_id)))
         END AS observed_from
) o
CROSS JOIN LATERAL (
  SELECT CASE WHEN p.first_seen IS NOT NULL THEN
           1 - coalesce(sum(extract(epoch FROM upper(hole) - lower(hole))), 0)::float8
                 / nullif(extract(epoch FROM w.now - o.observed_from)::float8, 0)
         END AS share
  FROM unnest((
    SELECT range_agg(tstzrange(least(b.from_at, b.to_at), b.to_at))
    FROM (
      SELECT g.from_at, coalesce(g.to_at, (
               SELECT s.next_started_at FROM store.epoch_span s WHERE s.node_id = g.node_id AND s.epoch = g.epoch)) AS to_at
      FROM store.gap g
      WHERE g.node_id = n.node_id AND g.scope IN ('stream', 'agent') AND g.from_at > w.now - interval '2 days'
      UNION ALL
      SELECT p.last_seen, NULL WHERE a.agent = 'AgentSilent'
      UNION ALL
      SELECT p.stream_since, NULL WHERE p.stream_state <> 'Active'
    ) g
    CROSS JOIN LATERAL (
      SELECT greatest(g.from_at, o.observed_from) AS from_at, least(coalesce(g.to_at, w.now), w.now) AS to_at
    ) b
    WHERE b.to_at > b.from_at
  )) AS hole
) s
WHERE ($1::text[] IS NULL OR p.cluster = ANY ($1)) AND r.node_deleted_at IS NULL
ORDER BY p.cluster COLLATE "C", p.node COLLATE "C"
LIMIT $2;
