-- Stores the conditions of reports. $1 node_id, $2 type, $3 status, $4 reason, $5 message, $6 since: arrays of one length
INSERT INTO store.report_condition AS c (node_id, cluster_id, type, status, reason, message, since)
SELECT u.node_id, n.cluster_id, u.type, u.status, u.reason, u.message, u.since
FROM unnest($1::int4[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
  AS u (node_id, type, status, reason, message, since)
JOIN store.node n ON n.node_id = u.node_id
ON CONFLICT (node_id, type) DO UPDATE SET status = excluded.status, reason = excluded.reason, message = excluded.message,
  since = CASE WHEN c.status = excluded.status THEN c.since ELSE excluded.since END
WHERE (c.status, c.reason, c.message) IS DISTINCT FROM (excluded.status, excluded.reason, excluded.message);
