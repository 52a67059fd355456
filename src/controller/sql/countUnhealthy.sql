-- How many of the nodes $1 have PLEG not healthy at present, by verdict. Only the latest condition of each is judged: the history may be long.
SELECT v.verdict, count(*)::int4 AS nodes
FROM store.node n
CROSS JOIN LATERAL (
  SELECT v.verdict FROM store.pleg_verdict v
  WHERE v.kind = 'unhealthy' AND v.node_id = n.node_id AND v.at = n.pleg_condition_at
    AND v.day = (n.pleg_condition_at AT TIME ZONE 'UTC')::date AND v.to_at IS NULL
  LIMIT 1
) v
WHERE n.node_id = ANY ($1::int4[])
GROUP BY v.verdict;
