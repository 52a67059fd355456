-- The nodes of a pool, at most $10, those next to the node $11 by name if there is one, and what is known of each from $8 to $9. The nodes are those
-- of the clusters $1, null for all, and there those of the cluster $3 ('cluster'), those of the pool $4 of the cluster $3, null for all clusters and
-- for nodes without a pool ('pool'), or those with the runtime $5 $6 and the kubelet $7 ('version'), by the grouping $2.
--
-- of: how many nodes the pool has.
--
-- possibleMs: how long it could have been watched: from the first evidence, or, without an agent, from when the controller knows the Node, until the
-- end of the period, or until the latest minute of an agent whose present minute is still to come. watched: the share of that in which the stream was
-- watched, by the hours and minutes of the agents; null without an agent.
--
-- fallbacks: how often the kubelet fell back, with the fallback in which the period began.
WITH member AS MATERIALIZED (
  SELECT m.*
  FROM (
    SELECT m.*, coalesce(max(m.place) FILTER (WHERE m.node = $11::text) OVER (), 0) AS own
    FROM (
      SELECT p.node_id, p.cluster, p.node, p.first_seen, p.last_seen, p.stream_state, p.relist_healthy, count(*) OVER ()::int4 AS "of",
             row_number() OVER (ORDER BY p.cluster COLLATE "C", p.node COLLATE "C") AS place
      FROM store.node_detail p
      WHERE ($1::text[] IS NULL OR p.cluster = ANY ($1))
        AND CASE $2::text
              WHEN 'cluster' THEN p.cluster = $3
              WHEN 'pool' THEN p.cluster = coalesce($3::text, p.cluster) AND p.pool IS NOT DISTINCT FROM $4
              ELSE (p.runtime_name, p.runtime_version, p.kubelet_version) IS NOT DISTINCT FROM ($5::text, $6::text, $7::text) END
        AND p.deleted_at IS NULL
    ) m
  ) m
  WHERE m.place > least(m.own - 1 - $10::int4 / 2, m."of" - $10)
  ORDER BY m.place
  LIMIT $10
), counted AS MATERIALIZED (
  SELECT c.node_id, sum(c.covered_us)::float8 AS covered_us, sum(c.matched)::float8 AS matched, max(c.max_us)::float8 / 1000 AS max_ms,
         (array_agg(c.context_id ORDER BY c.at DESC, c.context_id DESC))[1] AS context_id
  FROM (
    SELECT c.node_id, c.context_id, sum(c.covered_us) AS covered_us, sum(c.matched) AS matched, max(c.max_us) FILTER (WHERE c.relists > 0) AS max_us,
           max(c.at) AS at
    FROM store.coverage($8, $9) c
    WHERE c.node_id = ANY (ARRAY(SELECT m.node_id FROM member m))
    GROUP BY c.node_id, c.context_id
  ) c
  GROUP BY c.node_id
), missed AS MATERIALIZED (
  SELECT f.node_id, count(*) AS missed
  FROM store.finding f
  WHERE f.kind = 'missed' AND f.detected_at >= $8 AND f.detected_at < $9 AND f.day >= ($8::timestamptz AT TIME ZONE 'UTC')::date
    AND f.node_id = ANY (ARRAY(SELECT m.node_id FROM member m))
    AND NOT EXISTS (
      SELECT FROM store.finding_update u WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved')
  GROUP BY f.node_id
), latest AS MATERIALIZED (
  -- As in the fleet: if the last one began longer ago, the agent is behind.
  SELECT r.node_id, max(r.ended_at) AS ended_at FROM store.relist_minute r
  WHERE r.minute > now() - interval '22 minutes' AND r.day >= ((now() - interval '22 minutes') AT TIME ZONE 'UTC')::date
    AND r.node_id = ANY (ARRAY(SELECT m.node_id FROM member m))
  GROUP BY r.node_id
)
SELECT m.node_id AS "nodeId", m."of", m.cluster, m.node, m.last_seen AS "lastSeen", store.caught_up_ms(g.said_at, g.caught_up_since) AS "caughtUpMs",
       q.status AS "agentStatus", q.since AS "agentSince", m.relist_healthy AS "relistHealthy",
       coalesce(b.mode, 'Unknown') AS mode, m.stream_state AS "streamState",
       b.fallbacks, v.verdict,
       store.readiness_reason(v.verdict, b.fallbacks, k.keeps_wrong, u.stream_state, i.low, i.high, s.share, s.share IS NOT NULL, d.decided) AS reason,
       CASE WHEN s.share > 0 OR f.missed > 0 THEN d.missed END AS missed, d.decided, i.high AS "highPerMillion",
       s.share AS watched, s.covered_ms AS "coveredMs", s.possible_ms AS "possibleMs", c.max_ms AS "maxMs",
       nullif(x.runtime_name, '') AS "runtimeName", nullif(x.runtime_version, '') AS "runtimeVersion",
       nullif(x.kubelet_version, '') AS "kubeletVersion", nullif(x.agent_version, '') AS "agentVersion",
       nullif(o.os_image, '') AS "osImage", nullif(o.kernel_version, '') AS "kernelVersion"
FROM member m
LEFT JOIN counted c ON c.node_id = m.node_id
LEFT JOIN missed f ON f.node_id = m.node_id
LEFT JOIN latest t ON t.node_id = m.node_id
LEFT JOIN store.context x ON x.context_id = c.context_id
LEFT JOIN store.report_condition q ON q.node_id = m.node_id AND q.type = 'AgentReporting'
LEFT JOIN store.node n ON n.node_id = m.node_id
LEFT JOIN store.ingest g ON g.cluster_id = n.cluster_id
LEFT JOIN LATERAL (
  SELECT os_image, kernel_version FROM store.node_info o WHERE o.node_id = m.node_id AND o.at < $9 ORDER BY o.at DESC LIMIT 1
) o ON true
CROSS JOIN LATERAL (SELECT least($9, now()) AS at) w
CROSS JOIN LATERAL (
  -- The reason why there was no stream at the end of a past period: the one that the agent recorded then.
  SELECT CASE WHEN $9 >= now() THEN m.stream_state ELSE (
    SELECT initcap(g.cause) FROM store.gap g JOIN store.epoch e ON e.node_id = g.node_id AND e.epoch = g.epoch
    WHERE g.node_id = m.node_id AND g.scope = 'stream' AND g.cause IN ('unsupported', 'disabled', 'unsafe', 'off')
      AND g.from_at < w.at AND coalesce(g.to_at, e.last_seen) >= w.at
    ORDER BY g.from_at DESC LIMIT 1) END AS stream_state
) u
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE p.mode IN ('Fallback', 'HintDisabled') AND p.to_at > $8) AS fallbacks,
         max(p.mode) FILTER (WHERE p.from_at <= w.at AND p.to_at > w.at) AS mode
  FROM store.mode_period p WHERE p.node_id = m.node_id AND p.from_at < $9
) b
CROSS JOIN LATERAL (
  SELECT greatest($8, CASE WHEN m.first_seen IS NULL THEN (SELECT min(o.at) FROM store.node_info o WHERE o.node_id = m.node_id)
                      ELSE least(m.first_seen, (SELECT min(e.started_at) FROM store.epoch e WHERE e.node_id = m.node_id)) END) AS from_at,
         CASE WHEN m.last_seen >= now() - store.silent_after() THEN least(t.ended_at, w.at) ELSE w.at END AS to_at
) p
CROSS JOIN LATERAL (
  SELECT least(y.covered_ms, y.possible_ms) AS covered_ms, y.possible_ms,
         CASE WHEN m.first_seen IS NOT NULL AND y.possible_ms > 0 THEN least(1, y.covered_ms / y.possible_ms) END AS share
  FROM (SELECT coalesce(c.covered_us, 0) / 1000 AS covered_ms, greatest(0, extract(epoch FROM p.to_at - p.from_at)::float8 * 1000) AS possible_ms) y
) s
CROSS JOIN LATERAL (SELECT coalesce(store.fallback_consequence('Fallback', '', nullif(x.kubelet_version, '')) = 'wrong_until_restart', false) AS keeps_wrong) k
CROSS JOIN LATERAL (SELECT coalesce(f.missed, 0)::float8 AS missed, coalesce(c.matched, 0) + coalesce(f.missed, 0) AS decided) d
CROSS JOIN LATERAL (SELECT 1e6 * store.wilson_low(d.missed, d.decided) AS low, 1e6 * store.wilson_high(d.missed, d.decided) AS high) i
CROSS JOIN LATERAL (SELECT store.readiness_verdict(b.fallbacks, k.keeps_wrong, u.stream_state, i.low, i.high, s.share) AS verdict) v
ORDER BY m.cluster COLLATE "C", m.node COLLATE "C";
