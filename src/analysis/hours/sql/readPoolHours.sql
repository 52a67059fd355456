-- Problems in the pools of the clusters $1, null for all, from $2 until $3, in slices of $4 seconds, whole hours from a whole hour on. At most
-- $5 pools, those with the most nodes; `pools` says how many there are.
--
-- A node is in the pool of its latest labels. It counts from its first evidence, or from when the controller knew it, until it was removed, and one whose
-- agent reports until its latest minute: the next one is still to come. If a Node came back under its name as another machine, the time in between
-- does not count. `nodes`: those that are there now; `silent`: of them, those whose agent does not report. Nodes are numbered by pool, not joined to
-- pools: from such a join the planner expects one row, and would read the hours node by node.
WITH machine AS (
  -- When the machine that is there now, and those before it, ran an agent.
  SELECT e.node_id, min(e.started_at) FILTER (WHERE is_own) AS started_at, min(e.started_at) FILTER (WHERE NOT is_own) AS past_from,
         max(e.last_seen) FILTER (WHERE NOT is_own) AS past_to
  FROM store.epoch e JOIN store.node n ON n.node_id = e.node_id CROSS JOIN LATERAL (SELECT coalesce(e.last_seen >= n.replaced_at, true) AS is_own) o
  GROUP BY e.node_id
), member AS MATERIALIZED (
  SELECT x.*, dense_rank() OVER (ORDER BY x.cluster, x.pool)::int4 AS no
  FROM (
    SELECT n.node_id, k.name AS cluster, store.pool_of(i.labels) AS pool, r.node_deleted_at AS gone_at,
           coalesce(n.last_seen < now() - store.silent_after(), true) AS is_silent,
           extract(epoch FROM greatest($2, least(n.first_seen, e.started_at), CASE WHEN n.first_seen IS NULL THEN coalesce(n.replaced_at, r.created_at) END)
                   - $2::timestamptz)::float8 AS from_s,
           extract(epoch FROM least($3, coalesce(r.node_deleted_at, 'infinity'), CASE WHEN n.last_seen >= now() - store.silent_after()
                                    THEN coalesce(t.ended_at, now()) ELSE now() END) - $2::timestamptz)::float8 AS to_s,
           extract(epoch FROM greatest($2, e.past_from) - $2::timestamptz)::float8 AS past_from_s,
           CASE WHEN e.past_to IS NULL THEN 0 ELSE extract(epoch FROM least($3, e.past_to, n.replaced_at) - $2::timestamptz)::float8 END AS past_to_s
    FROM store.node n
    JOIN store.cluster k ON k.cluster_id = n.cluster_id
    LEFT JOIN machine e ON e.node_id = n.node_id
    LEFT JOIN store.report r ON r.node_id = n.node_id
    LEFT JOIN (
      -- As in the fleet: if the last one began longer ago, the agent is behind.
      SELECT m.node_id, max(m.ended_at) AS ended_at FROM store.relist_minute m
      WHERE m.minute > now() - interval '22 minutes' AND m.day >= ((now() - interval '22 minutes') AT TIME ZONE 'UTC')::date
      GROUP BY m.node_id
    ) t ON t.node_id = n.node_id
    LEFT JOIN (
      SELECT DISTINCT ON (i.node_id) i.node_id, i.labels FROM store.node_info i ORDER BY i.node_id, i.at DESC
    ) i ON i.node_id = n.node_id
    WHERE $1::text[] IS NULL OR k.name = ANY ($1)
  ) x
  WHERE x.to_s > x.from_s OR x.past_to_s > x.past_from_s
), pool AS (
  SELECT no, cluster, pool, count(*) FILTER (WHERE gone_at IS NULL)::int4 AS nodes,
         count(*) FILTER (WHERE gone_at IS NULL AND is_silent)::int4 AS silent, (count(*) OVER ())::int4 AS pools
  FROM member GROUP BY no, cluster, pool ORDER BY nodes DESC, no LIMIT $5
), known AS (
  -- For how long nodes of a pool were known: in the slices in which that begins and ends, and by how many in the slices between.
  SELECT m.no, e.slice, sum(e.part) AS part, sum(e.more) AS more
  FROM (SELECT no, from_s, to_s FROM member UNION ALL SELECT no, past_from_s, past_to_s FROM member) m
  CROSS JOIN LATERAL (SELECT floor(m.from_s / $4)::int4 AS a, floor(m.to_s / $4)::int4 AS b) s
  CROSS JOIN LATERAL (VALUES
    (s.a, CASE WHEN s.a = s.b THEN m.to_s - m.from_s ELSE (s.a + 1) * $4 - m.from_s END, 0),
    (s.b, CASE WHEN s.a = s.b THEN 0 ELSE m.to_s - s.b * $4 END, CASE WHEN s.a = s.b THEN 0 ELSE -1 END),
    (s.a + 1, 0, CASE WHEN s.a = s.b THEN 0 ELSE 1 END)) AS e (slice, part, more)
  WHERE m.to_s > m.from_s
  GROUP BY m.no, e.slice
), numbered AS MATERIALIZED (
  -- The number of the pool of each node, at the place of its id; 0 for others. Parallel workers read it, and no CTE.
  SELECT array_agg(coalesce(m.no, 0) ORDER BY i.id) AS nos
  FROM generate_series(1, (SELECT max(node_id) FROM member)) AS i (id) LEFT JOIN member m ON m.node_id = i.id
), hour AS (
  -- slow: the kubelet reported a relist of more than ten seconds, or none that started in the last ten, as in store.pleg_verdict.
  SELECT m.no, floor(extract(epoch FROM h.hour - $2::timestamptz) / $4)::int4 AS slice, sum(h.covered_us) AS covered_us,
         array_agg(h.node_id) FILTER (WHERE h.kubelet_hist[12] > 0 OR h.kubelet_last_seen_age_ms > 10000) AS slow
  FROM (SELECT i.id, (SELECT nos FROM numbered)[i.id] AS no FROM generate_series(1, (SELECT cardinality(nos) FROM numbered)) AS i (id)) m
  JOIN store.relist_hour h ON h.node_id = m.id
  WHERE m.no > 0 AND h.hour >= $2 AND h.hour < $3
    AND h.day BETWEEN ($2::timestamptz AT TIME ZONE 'UTC')::date AND ($3::timestamptz AT TIME ZONE 'UTC')::date
  GROUP BY m.no, h.hour
), missed AS (
  SELECT m.no, floor(extract(epoch FROM f.detected_at - $2::timestamptz) / $4)::int4 AS slice, count(*)::int4 AS missed
  FROM store.finding f JOIN member m ON m.node_id = f.node_id
  WHERE f.kind = 'missed' AND f.detected_at >= $2 AND f.detected_at < $3 AND f.day >= ($2::timestamptz AT TIME ZONE 'UTC')::date
    AND NOT EXISTS (
      SELECT FROM store.finding_update u WHERE u.node_id = f.node_id AND u.finding_id = f.finding_id AND u.what = 'resolved')
  GROUP BY 1, 2
), period AS (
  -- In which a kubelet was in fallback, or its Node not Ready because of PLEG.
  SELECT c.node_id, 'fallback' AS kind, c.at AS from_at, c.next_at AS to_at
  FROM (SELECT t.*, lead(t.at) OVER (PARTITION BY t.node_id ORDER BY t.at, t.seq) AS next_at FROM store.mode_transition t) c
  WHERE c.to_mode IN ('Fallback', 'HintDisabled')
  UNION ALL
  SELECT c.node_id, 'slow', c.at, c.next_at
  FROM (SELECT r.*, lead(r.at) OVER (PARTITION BY r.node_id ORDER BY r.at) AS next_at FROM store.ready_change r) c
  WHERE c.status <> 'True' AND 'pleg' = ANY (c.causes)
), affected AS (
  -- Until its Node was deleted: nothing says that such a period has ended.
  SELECT x.no, x.slice, count(DISTINCT x.node_id) FILTER (WHERE x.kind = 'fallback')::int4 AS fallen,
         count(DISTINCT x.node_id) FILTER (WHERE x.kind = 'slow')::int4 AS slow
  FROM (
    SELECT m.no, s.slice, m.node_id, p.kind
    FROM period p JOIN member m ON m.node_id = p.node_id
    CROSS JOIN LATERAL generate_series(
      greatest(0, floor(extract(epoch FROM p.from_at - $2::timestamptz) / $4)::int4),
      ceil(extract(epoch FROM least(p.to_at, m.gone_at, $3) - $2::timestamptz) / $4)::int4 - 1) AS s (slice)
    WHERE p.from_at < $3 AND coalesce(p.to_at, 'infinity') > $2
    UNION ALL
    SELECT h.no, h.slice, unnest(h.slow), 'slow' FROM hour h
  ) x
  GROUP BY x.no, x.slice
), slice AS (
  SELECT s.slice, least($4::float8, extract(epoch FROM $3 - $2::timestamptz)::float8 - s.slice * $4) AS seconds
  FROM generate_series(0, ceil(extract(epoch FROM $3 - $2::timestamptz) / $4)::int4 - 1) AS s (slice)
)
SELECT x.cluster, x.pool, x.nodes, x.silent, x.pools,
       array_agg(coalesce(x.missed, 0) ORDER BY x.slice) AS missed, array_agg(coalesce(x.fallen, 0) ORDER BY x.slice) AS fallen,
       array_agg(coalesce(x.slow, 0) ORDER BY x.slice) AS slow,
       array_agg(round(x.known)::int4 ORDER BY x.slice) AS "knownSeconds",
       array_agg(round(least(coalesce(x.covered_us, 0) / 1e6, x.known))::int4 ORDER BY x.slice) AS "watchedSeconds"
FROM (
  SELECT p.*, s.slice, m.missed, a.fallen, a.slow, h.covered_us,
         coalesce(k.part, 0) + s.seconds * coalesce(sum(k.more) OVER (PARTITION BY p.no ORDER BY s.slice), 0) AS known
  FROM pool p CROSS JOIN slice s
  LEFT JOIN known k ON k.no = p.no AND k.slice = s.slice
  LEFT JOIN (SELECT no, slice, sum(covered_us) AS covered_us FROM hour GROUP BY no, slice) h ON h.no = p.no AND h.slice = s.slice
  LEFT JOIN missed m ON m.no = p.no AND m.slice = s.slice
  LEFT JOIN affected a ON a.no = p.no AND a.slice = s.slice
) x
GROUP BY x.no, x.cluster, x.pool, x.nodes, x.silent, x.pools
ORDER BY x.no;
