-- Stores the conditions of reports. $1 node_id, $2 type, $3 status, $4 reason, $5 message, $6 since: arrays of one length
INSERT INTO store.report_condition AS c (node_id, cluster_id, type, status, reason, message, since, is_unproven)
SELECT u.node_id, n.cluster_id, u.type, u.status, u.reason, u.message, u.since,
       u.type = 'EvidenceComplete' AND u.reason = 'CoverageLow' AND coalesce(g.seconds, 0) <= 86.4
FROM unnest($1::int4[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
  AS u (node_id, type, status, reason, message, since)
JOIN store.node n ON n.node_id = u.node_id
LEFT JOIN LATERAL (
  -- Not store.overlap_ms: it would not be inlined, and gaps may be many.
  -- A gap that its agent could not close lasts until the next agent. The subquery runs only for open ones.
  SELECT sum(greatest(0, extract(epoch FROM
           least(now(), coalesce(g.to_at, (SELECT s.next_started_at FROM store.epoch_span s WHERE s.node_id = g.node_id AND s.epoch = g.epoch)))
           - greatest(g.from_at, now() - interval '24 hours'))::float8)) AS seconds
  FROM store.gap g
  WHERE g.node_id = u.node_id AND g.scope IN ('stream', 'agent') AND g.cause <> 'unproven' AND g.from_at > now() - interval '2 days'
) g ON u.type = 'EvidenceComplete' AND u.reason = 'CoverageLow'
ON CONFLICT (node_id, type) DO UPDATE SET status = excluded.status, reason = excluded.reason, message = excluded.message,
  is_unproven = excluded.is_unproven, since = CASE WHEN c.status = excluded.status THEN c.since ELSE excluded.since END
WHERE (c.status, c.reason, c.message, c.is_unproven)
  IS DISTINCT FROM (excluded.status, excluded.reason, excluded.message, excluded.is_unproven);
