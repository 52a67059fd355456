-- What $2 names in the clusters $1, null for all, at most $3 rows: nodes by a part of their name; pods by their name, with or without the namespace,
-- or its beginning; containers by their id or its beginning, as tools print it; the finding of this id. Names are found by an index in every day that is kept,
-- beginnings only in today and yesterday.
WITH asked AS (
  SELECT lower($2) AS part, CASE WHEN strpos($2, '/') > 0 THEN split_part($2, '/', 1) END AS namespace,
         CASE WHEN strpos($2, '/') > 0 THEN split_part($2, '/', 2) ELSE $2 END AS name,
         ARRAY(SELECT c.cluster_id FROM store.cluster c WHERE $1::text[] IS NULL OR c.name = ANY ($1)) AS clusters
), named AS (
  SELECT o.cluster_id, o.node_id, o.container_key, o.day, o.container_id, o.pod_namespace, o.pod_name
  FROM asked a CROSS JOIN LATERAL (
    (SELECT * FROM store.container o
     WHERE o.pod_name = a.name AND o.cluster_id = ANY (a.clusters) AND coalesce(o.pod_namespace = a.namespace, true) LIMIT 1000)
    UNION
    (SELECT * FROM store.container o
     WHERE o.container_id = a.name AND o.cluster_id = ANY (a.clusters) AND coalesce(o.pod_namespace = a.namespace, true) LIMIT 1000)
    UNION
    (SELECT * FROM store.container o
     WHERE o.day >= (now() AT TIME ZONE 'UTC')::date - 1 AND (starts_with(o.pod_name, a.name) OR starts_with(o.container_id, a.part))
       AND o.cluster_id = ANY (a.clusters) AND coalesce(o.pod_namespace = a.namespace, true) LIMIT 1000)
  ) o
), found AS (
  SELECT 1 AS rank, n.cluster_id, n.node_id, 'node' AS found, n.name AS text, n.last_seen AS at
  FROM store.node n, asked a WHERE strpos(lower(n.name), a.part) > 0
  UNION ALL
  SELECT 0, f.cluster_id, f.node_id, 'finding', f.finding_id::text, f.detected_at
  FROM store.finding f, asked a
  WHERE f.finding_id = CASE WHEN a.part ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN a.part::uuid END
  UNION ALL
  SELECT 2, o.cluster_id, o.node_id, k.found, k.text, s.at
  FROM named o CROSS JOIN asked a
  CROSS JOIN LATERAL (
    SELECT CASE WHEN starts_with(o.pod_name, a.name) THEN 'pod' ELSE 'container' END AS found,
           CASE WHEN starts_with(o.pod_name, a.name) THEN concat_ws('/', o.pod_namespace, o.pod_name) ELSE o.container_id END AS text
  ) k
  LEFT JOIN LATERAL (
    SELECT max(e.received_at) AS at FROM store.container_event e
    WHERE e.node_id = o.node_id AND e.container_key = o.container_key AND e.day = o.day
  ) s ON true
)
SELECT c.name AS cluster, n.name AS node, f.found, f.text, max(f.at) AS at
FROM found f JOIN store.node n ON n.node_id = f.node_id JOIN store.cluster c ON c.cluster_id = f.cluster_id
CROSS JOIN asked a
WHERE f.cluster_id = ANY (a.clusters)
GROUP BY f.rank, c.name, n.name, f.found, f.text
ORDER BY f.rank, max(f.at) DESC NULLS LAST, c.name COLLATE "C", n.name COLLATE "C", f.text COLLATE "C"
LIMIT $3;
