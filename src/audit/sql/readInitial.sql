-- What the first list showed, of the ids that changed later: their state before their first change.
-- $1 node_id, $2 context_ids, $3 up to seq, $4 earliest end in microseconds since 1970
SELECT h.states, h.key,
       store.id_text(o.container_id, o.flags) AS id, store.id_text(s.container_id, s.flags) AS sandbox, o.attempt, o.pod_uid,
       o.pod_namespace, o.pod_name, o.container_name
FROM (
  SELECT DISTINCT ON (h.container_key) h.*, h.container_key::text AS key
  FROM store.relist_change h
  WHERE h.node_id = $1 AND h.context_id = ANY ($2::int4[]) AND h.seq <= $3
    AND h.window_to >= timestamptz 'epoch' + $4::float8 * interval '1 microsecond'
    AND h.day >= ((timestamptz 'epoch' + $4::float8 * interval '1 microsecond') AT TIME ZONE 'UTC')::date - 1
  ORDER BY h.container_key, h.seq
) h
LEFT JOIN store.container o ON o.node_id = h.node_id AND o.container_key = h.container_key AND o.day = h.day
LEFT JOIN store.container s ON s.node_id = o.node_id AND s.container_key = o.sandbox_key AND s.day = o.day
WHERE h.states & 15 <> 0
