-- Times are microseconds since the epoch began. $1 node_id, $2 context_id, $3 after seq, $4 up to seq, $5 start of the epoch and
-- $6 earliest receipt, both in microseconds since 1970, $7 how many rows
SELECT v.seq, (extract(epoch FROM v.received_at) * 1000000)::float8 - $5::float8 AS received, v.created_ns, v.flags,
       v.container_key AS key, v.day
FROM store.container_event v
WHERE v.node_id = $1 AND v.context_id = $2 AND v.seq > $3 AND v.seq <= $4
  AND v.received_at >= timestamptz 'epoch' + $6::float8 * interval '1 microsecond'
  AND v.day >= ((timestamptz 'epoch' + $6::float8 * interval '1 microsecond') AT TIME ZONE 'UTC')::date - 1
ORDER BY v.seq LIMIT $7
