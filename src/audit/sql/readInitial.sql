-- The states in the first list, for the ids that changed later: before their first change.
-- $1 node_id, $2 context_ids, $3 up to seq, $4 earliest end in microseconds since 1970
SELECT h.states, h.key, h.day
FROM (
  SELECT DISTINCT ON (h.container_key) h.states, h.container_key AS key, h.day
  FROM store.relist_change h
  WHERE h.node_id = $1 AND h.context_id = ANY ($2::int4[]) AND h.seq <= $3
    AND h.window_to >= timestamptz 'epoch' + $4::float8 * interval '1 microsecond'
    AND h.day >= ((timestamptz 'epoch' + $4::float8 * interval '1 microsecond') AT TIME ZONE 'UTC')::date - 1
  ORDER BY h.container_key, h.seq
) h
WHERE h.states & 15 <> 0
