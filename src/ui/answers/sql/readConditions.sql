-- The changes of the condition Ready of the node $1 from $2 to $3, and the one before them, the latest $4, these first. Where
-- PLEG is a cause, with the message about it.
SELECT r.at, r.status, r.reason, r.causes, p.message
FROM (
  SELECT r.*, lead(r.at) OVER (ORDER BY r.at) AS next_at
  FROM store.ready_change r
  WHERE r.node_id = $1 AND r.at <= $3
    AND r.at >= coalesce((SELECT max(b.at) FROM store.ready_change b WHERE b.node_id = $1 AND b.at <= $2), '-infinity')
) r
LEFT JOIN LATERAL (
  SELECT k.message FROM store.node_condition k
  WHERE k.node_id = $1 AND k.at >= r.at AND k.at < coalesce(r.next_at, 'infinity') AND k.day >= (r.at AT TIME ZONE 'UTC')::date
  ORDER BY k.at LIMIT 1
) p ON 'pleg' = ANY (r.causes)
ORDER BY r.at DESC
LIMIT $4;
