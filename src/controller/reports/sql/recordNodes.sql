-- The Nodes of cluster $1 have these names, UIDs and creation times ($2, $3, $4). A Node whose UID is not the one that is known is another machine, of
-- which nothing is known until an agent ran on it: what is stored is history. A Node may also be registered again while its agent runs, which
-- it then is known to have done after the creation.
WITH changed AS (
  SELECT n.node_id, n.node_uid IS NOT NULL AS is_other, u.uid, u.created_at,
         EXISTS (SELECT FROM store.epoch e
                 WHERE e.node_id = n.node_id AND e.incarnation = n.incarnation AND e.last_seen >= u.created_at) AS is_seen
  FROM unnest($2::text[], $3::text[], $4::timestamptz[]) AS u (name, uid, created_at)
  JOIN store.node n ON n.cluster_id = $1::int2 AND n.name = u.name
  WHERE n.node_uid IS DISTINCT FROM u.uid
), conditions AS (
  DELETE FROM store.report_condition c USING changed x WHERE c.node_id = x.node_id AND x.is_other
)
UPDATE store.node n SET
  node_uid = x.uid,
  replaced_at = CASE WHEN x.is_other THEN x.created_at ELSE n.replaced_at END,
  first_seen = CASE WHEN NOT x.is_other THEN n.first_seen WHEN x.is_seen THEN greatest(n.first_seen, x.created_at) END,
  last_seen = CASE WHEN NOT x.is_other OR x.is_seen THEN n.last_seen END,
  -- Above that of every agent of the earlier machine.
  incarnation = CASE WHEN NOT x.is_other OR x.is_seen THEN n.incarnation ELSE n.incarnation + 1 END,
  context_no = CASE WHEN NOT x.is_other OR x.is_seen THEN n.context_no ELSE 0 END,
  context_id = CASE WHEN NOT x.is_other OR x.is_seen THEN n.context_id END,
  is_pleg_unhealthy = n.is_pleg_unhealthy AND NOT (x.is_other AND n.pleg_condition_at < x.created_at)
FROM changed x
WHERE n.node_id = x.node_id;
