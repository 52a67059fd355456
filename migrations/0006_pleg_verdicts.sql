-- Whose fault is it when PLEG is unhealthy, or relists are slow: the runtime's, or the kubelet's?
--
--   k_from, k_to   the looks at the kubelet's metrics between which the figures of its calls were counted
--   k_lists …      ListPodSandbox and ListContainers of the kubelet that ended: how many, how many in vain, how long together,
--                  and how long one of them took at least
--   k_relist_us    its relists together; k_status_us its PodSandboxStatus and ContainerStatus
ALTER TABLE store.sample
  ADD COLUMN k_from timestamptz,
  ADD COLUMN k_to timestamptz,
  ADD COLUMN k_relist_us int8,
  ADD COLUMN k_lists int4,
  ADD COLUMN k_list_errors int4,
  ADD COLUMN k_list_us int8,
  ADD COLUMN k_longest_list_us int8,
  ADD COLUMN k_status_us int8;

-- How long two stretches have in common, in milliseconds.
CREATE FUNCTION store.overlap_ms(from_a timestamptz, to_a timestamptz, from_b timestamptz, to_b timestamptz) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(0, extract(epoch FROM least(to_a, to_b) - greatest(from_a, from_b)))::float8 * 1000;

-- As before, and what the kubelet's calls took.
CREATE OR REPLACE VIEW plegwatch.kubelet_minutes WITH (security_invoker = true) AS
SELECT m.cluster, m.node, m.minute, m.relists, store.hist_quantile(m.hist, store.kubelet_hist_bounds(), 0.99) AS relist_p99_ms, m.hist,
       m.last_seen_age_ms, m.discarded, m.stream_errors, m.list_p99_ms, m.day, m.relist_period_ms,
       m.counted_from, m.counted_to, m.relist_ms, m.list_calls, m.list_errors, m.list_ms, m.longest_list_ms, m.status_ms
FROM (
  SELECT c.name AS cluster, n.name AS node, s.minute, s.day,
         sum(s.k_relists) AS relists, store.hist_sum(s.k_hist::int4[]) AS hist,
         max(s.k_last_seen_age_ms) AS last_seen_age_ms, sum(s.k_discarded) AS discarded,
         max(s.k_stream_errors) AS stream_errors, max(s.k_list_p99_ms) AS list_p99_ms,
         sum(s.k_interval_us)::float8 / 1000 / nullif(sum(s.k_intervals), 0) AS relist_period_ms,
         min(s.k_from) AS counted_from, max(s.k_to) AS counted_to, sum(s.k_relist_us)::float8 / 1000 AS relist_ms,
         sum(s.k_lists) AS list_calls, sum(s.k_list_errors) AS list_errors, sum(s.k_list_us)::float8 / 1000 AS list_ms,
         max(s.k_longest_list_us)::float8 / 1000 AS longest_list_ms, sum(s.k_status_us)::float8 / 1000 AS status_ms
  FROM store.sample s
  LEFT JOIN store.node n ON n.node_id = s.node_id
  LEFT JOIN store.cluster c ON c.cluster_id = s.cluster_id
  WHERE s.k_relists IS NOT NULL
  GROUP BY c.name, n.name, s.minute, s.day
) m;

-- One row for each stretch in which a Node said that PLEG is not healthy (`unhealthy`), and for each minute in which its kubelet
-- told a relist of more than ten seconds, or none that began in the last ten (`slow`). The kubelet's lists and the agent's are
-- compared over the same stretch: both slow is the runtime, only the kubelet's is the kubelet. Whatever does not prove one of
-- the two is `unknown`, and `why` says what is not known.
--
--   from_at, to_at   unhealthy: from the threshold before it was so, when PLEG was last seen active at the latest, to when it was
--                    well again (null: not yet);
--                    slow: from the beginning of the longest list that ended, as far as it is proven, to the last look
--   kubelet_lists    slow: one took 5 s or more, lists took at least half of the time of its relists, and at least half of the
--                    stretch where it was unhealthy; failing: at least half of them failed. A call counts when it ended: of one that
--                    hangs nothing is known yet, and nothing is said of a stretch of which the kubelet told less than half. A relist that is slow for another reason (statuses, no CPU) is not_slow here.
--   our_lists        slow: the agent waited for lists (`list` gaps: slow, deadline_exceeded, unavailable), without the time in
--                    which it stood still itself or was not there, for at least half of the stretch (slow: half of the kubelet's longest list).
--                    A list that hangs is an open gap. fast: its minutes fill the stretch, none has a failure, a gap or a
--                    list of a second or more, and it asked so often that what held the kubelet's longest list up would have
--                    held one of ours up for more than that second.
CREATE VIEW plegwatch.pleg_verdicts WITH (security_invoker = true) AS
WITH stretch AS (
  SELECT cluster_id, node_id, day, 'unhealthy' AS kind, at, message, pleg_seen_ago_ms, threshold_ms,
         at - coalesce(threshold_ms, 0) * interval '1 millisecond' AS from_at, next_at AS to_at,
         coalesce(next_at, now()) AS until
  FROM (
    SELECT k.*, lead(k.at) OVER (PARTITION BY k.node_id ORDER BY k.at) AS next_at FROM store.node_condition k
  ) told
  -- As src/controller/nodeConditions/plegTrouble.ts reads it: the other rows say that it is over.
  WHERE status <> 'True' AND message ~ 'PLEG|\mpleg\M'
  UNION ALL
  SELECT cluster_id, node_id, day, 'slow', minute, NULL, NULL, NULL,
         least(k_from, k_to - k_longest_list_us * interval '1 microsecond'), k_to, k_to
  FROM store.sample
  WHERE k_to IS NOT NULL AND (k_hist[12] > 0 OR k_last_seen_age_ms > 10000)
), kubelet AS (
  SELECT s.*, k.*, extract(epoch FROM least(s.until, k.counted_to) - s.from_at)::float8 * 1000 AS counted_ms
  FROM stretch s
  CROSS JOIN LATERAL (
    SELECT max(m.k_to) AS counted_to, sum(m.k_lists)::int8 AS lists, sum(m.k_list_errors)::int8 AS list_errors,
           sum(m.k_list_us)::float8 / 1000 AS list_ms, max(m.k_longest_list_us)::float8 / 1000 AS longest_list_ms,
           sum(m.k_relist_us)::float8 / 1000 AS relist_ms, sum(m.k_status_us)::float8 / 1000 AS status_ms
    FROM store.sample m
    WHERE m.node_id = s.node_id
      AND m.day BETWEEN (s.from_at AT TIME ZONE 'UTC')::date - 1 AND (s.until AT TIME ZONE 'UTC')::date + 1
      -- A call that ended later, and began in the stretch, belongs to it.
      AND m.k_to > s.from_at
      AND least(m.k_from, m.k_to - m.k_longest_list_us * interval '1 microsecond') < s.until
  ) k
), ours AS (
  SELECT k.*, m.*, g.*
  FROM kubelet k
  CROSS JOIN LATERAL (
    SELECT count(*) AS minutes, sum(m.relists)::int8 AS our_relists, sum(m.errors)::int8 AS our_errors,
           max(m.max_us)::float8 / 1000 AS our_longest_ms,
           max(m.span_us::float8 / 1000 / nullif(m.relists, 0)) AS our_period_ms,
           coalesce(sum(store.overlap_ms(m.ended_at - m.span_us * interval '1 microsecond', m.ended_at,
                                         k.from_at, least(k.until, k.counted_to))) FILTER (WHERE m.relists > 0), 0) AS our_minutes_ms
    FROM store.sample m
    WHERE m.node_id = k.node_id
      AND m.day BETWEEN (k.from_at AT TIME ZONE 'UTC')::date - 1 AND (k.until AT TIME ZONE 'UTC')::date + 1
      AND m.ended_at > k.from_at AND m.ended_at - m.span_us * interval '1 microsecond' < k.until
  ) m
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE g.scope = 'list') AS list_gaps,
           greatest(0,
             coalesce(sum(store.overlap_ms(g.from_at, g.to_at, k.from_at, k.until)) FILTER (
               WHERE g.scope = 'list' AND g.cause IN ('slow', 'deadline_exceeded', 'unavailable')), 0)
             - coalesce(sum(store.overlap_ms(g.from_at, g.to_at, k.from_at, k.until)) FILTER (
               WHERE g.scope = 'agent' OR g.cause = 'agent_paused'), 0)
           ) AS our_waiting_ms
    FROM (
      SELECT g.scope, g.cause, g.from_at,
             coalesce(g.to_at, (SELECT min(e.base_at) FROM store.epoch e WHERE e.node_id = g.node_id AND e.prev = g.epoch),
                      now()) AS to_at
      FROM store.gap g
      WHERE g.node_id = k.node_id AND g.from_at < k.until AND (g.scope IN ('list', 'agent') OR g.cause = 'agent_paused')
    ) g
    WHERE g.to_at > k.from_at
  ) g
), kubelet_judged AS (
  SELECT o.*,
         CASE
           WHEN coalesce(lists, 0) = 0 THEN 'unknown'
           WHEN kind = 'unhealthy' AND counted_ms * 2 < extract(epoch FROM until - from_at) * 1000 THEN 'unknown'
           WHEN list_errors * 2 >= lists AND longest_list_ms < 5000 THEN 'failing'
           WHEN longest_list_ms >= 5000 AND list_ms * 2 >= relist_ms AND (kind = 'slow' OR list_ms * 2 >= counted_ms) THEN 'slow'
           ELSE 'not_slow'
         END AS kubelet_lists
  FROM ours o
), judged AS (
  SELECT o.*,
         CASE
           WHEN our_waiting_ms >= greatest(5000, CASE WHEN kind = 'slow' AND kubelet_lists = 'slow' THEN longest_list_ms
                                                      ELSE extract(epoch FROM until - from_at)::float8 * 1000 END / 2) THEN 'slow'
           WHEN list_gaps = 0 AND our_errors = 0 AND our_longest_ms < 1000 AND our_minutes_ms >= 0.9 * counted_ms
                AND CASE kubelet_lists WHEN 'slow' THEN longest_list_ms ELSE counted_ms END > 1.25 * our_period_ms + 2000 THEN 'fast'
           ELSE 'unknown'
         END AS our_lists
  FROM kubelet_judged o
)
SELECT c.name AS cluster, n.name AS node, j.kind, j.from_at, j.to_at,
       CASE
         WHEN j.kubelet_lists IN ('slow', 'failing') AND j.our_lists = 'slow' THEN 'runtime'
         WHEN j.kubelet_lists IN ('slow', 'failing') AND j.our_lists = 'fast' THEN 'kubelet'
         ELSE 'unknown'
       END AS verdict,
       CASE
         WHEN j.lists IS NULL THEN 'the kubelet told nothing'
         WHEN j.kubelet_lists = 'unknown' THEN 'no list of the kubelet has ended, or it told too little of the time'
         WHEN j.kubelet_lists = 'not_slow' THEN 'the lists of the kubelet that ended were not slow'
         WHEN j.minutes = 0 AND j.list_gaps = 0 THEN 'the agent told nothing'
         WHEN j.our_lists = 'unknown' THEN 'our lists were neither slow nor fast all the time'
         WHEN j.our_lists = 'slow' THEN 'both waited for lists'
         ELSE 'only the kubelet waited for lists'
       END AS why,
       j.kubelet_lists, j.our_lists,
       j.lists AS kubelet_list_calls, j.list_errors AS kubelet_list_errors, j.list_ms AS kubelet_list_ms,
       j.longest_list_ms AS kubelet_longest_list_ms, j.relist_ms AS kubelet_relist_ms, j.status_ms AS kubelet_status_ms,
       j.our_relists, j.our_errors, j.our_longest_ms AS our_longest_relist_ms, j.our_period_ms, j.our_waiting_ms,
       j.at, j.message, j.pleg_seen_ago_ms, j.threshold_ms, j.day
FROM judged j
LEFT JOIN store.node n ON n.node_id = j.node_id
LEFT JOIN store.cluster c ON c.cluster_id = j.cluster_id;
