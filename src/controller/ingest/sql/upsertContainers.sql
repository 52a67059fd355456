-- Identities, once for each day that mentions them. A missing name is filled in; a known one stays.
-- $1 cluster_id, then arrays: node_id, container_key, sandbox_key, days since 1970, attempt, container_id, pod_uid,
-- pod_namespace, pod_name, container_name
WITH given AS (
  SELECT u.node_id, u.container_key, u.sandbox_key, date '1970-01-01' + u.d AS day, u.attempt, u.container_id,
         store.uid_bytes(u.pod_uid) AS pod_uid, u.pod_namespace, u.pod_name, u.container_name
  FROM unnest($2::int4[], $3::int8[], $4::int8[], $5::int4[], $6::int4[], $7::text[], $8::text[], $9::text[], $10::text[],
              $11::text[])
    AS u (node_id, container_key, sandbox_key, d, attempt, container_id, pod_uid, pod_namespace, pod_name, container_name)
)
INSERT INTO store.container (container_key, sandbox_key, node_id, day, cluster_id, attempt, container_id, pod_uid, pod_namespace,
                             pod_name, container_name)
SELECT g.container_key, g.sandbox_key, g.node_id, g.day, $1::int2, g.attempt, g.container_id, g.pod_uid, g.pod_namespace,
       g.pod_name, g.container_name
FROM given g
LEFT JOIN store.container c ON c.node_id = g.node_id AND c.container_key = g.container_key AND c.day = g.day
WHERE c.container_key IS NULL
   OR (c.sandbox_key IS NULL AND g.sandbox_key IS NOT NULL) OR (c.attempt IS NULL AND g.attempt IS NOT NULL)
   OR (c.pod_uid IS NULL AND g.pod_uid IS NOT NULL) OR (c.pod_namespace IS NULL AND g.pod_namespace IS NOT NULL)
   OR (c.pod_name IS NULL AND g.pod_name IS NOT NULL) OR (c.container_name IS NULL AND g.container_name IS NOT NULL)
ORDER BY g.container_key, g.node_id, g.day
ON CONFLICT (container_key, node_id, day) DO UPDATE SET
  sandbox_key = coalesce(container.sandbox_key, excluded.sandbox_key),
  attempt = coalesce(container.attempt, excluded.attempt),
  pod_uid = coalesce(container.pod_uid, excluded.pod_uid),
  pod_namespace = coalesce(container.pod_namespace, excluded.pod_namespace),
  pod_name = coalesce(container.pod_name, excluded.pod_name),
  container_name = coalesce(container.container_name, excluded.container_name)
