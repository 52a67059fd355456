-- The changes of the kubelet's mode on the node $1 from $2 to $3, and the one before them, the latest $4, these first.
SELECT to_char(m.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at,
       to_char(m.not_before AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "notBefore",
       m.from_mode AS "fromMode", m.to_mode AS "toMode", nullif(m.reason, '') AS reason
FROM store.mode_transition m
WHERE m.node_id = $1 AND m.at <= $3
  AND m.at >= coalesce((SELECT max(b.at) FROM store.mode_transition b WHERE b.node_id = $1 AND b.at <= $2), '-infinity')
ORDER BY m.at DESC, m.seq DESC NULLS LAST
LIMIT $4;
