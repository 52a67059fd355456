-- Which of these nodes have misses: most have none at all.
-- $1 node_ids, $2 first day of the misses (since 1970)
SELECT u.node_id
FROM unnest($1::int4[]) AS u (node_id)
CROSS JOIN LATERAL (
  SELECT FROM store.finding f
  WHERE f.node_id = u.node_id AND f.kind = 'missed' AND f.day >= date '1970-01-01' + $2::int4
  LIMIT 1) AS f
