-- Identities, once for each day that mentions them; a name that was missing is filled, one that is there stays.
-- $1 node_id, $2 cluster_id, then arrays: obj, sandbox, days since 1970, bits, attempt, cid as hex, pod_uid, namespace,
-- pod_name, container_name
WITH told AS (
  SELECT u.obj, u.sandbox, date '1970-01-01' + u.d AS day, u.bits, u.attempt, decode(u.cid, 'hex') AS cid,
         u.pod_uid, u.namespace, u.pod_name, u.container_name
  FROM unnest($3::int8[], $4::int8[], $5::int4[], $6::int2[], $7::int4[], $8::text[], $9::text[], $10::text[],
              $11::text[], $12::text[])
    AS u (obj, sandbox, d, bits, attempt, cid, pod_uid, namespace, pod_name, container_name)
)
INSERT INTO store.object (obj, sandbox, node_id, day, cluster_id, bits, attempt, cid, pod_uid, namespace, pod_name, container_name)
SELECT t.obj, t.sandbox, $1::int4, t.day, $2::int2, t.bits, t.attempt, t.cid, t.pod_uid, t.namespace, t.pod_name, t.container_name
FROM told t
LEFT JOIN store.object o ON o.node_id = $1::int4 AND o.obj = t.obj AND o.day = t.day
WHERE o.obj IS NULL
   OR (o.sandbox IS NULL AND t.sandbox IS NOT NULL) OR (o.attempt IS NULL AND t.attempt IS NOT NULL)
   OR (o.pod_uid IS NULL AND t.pod_uid IS NOT NULL) OR (o.namespace IS NULL AND t.namespace IS NOT NULL)
   OR (o.pod_name IS NULL AND t.pod_name IS NOT NULL) OR (o.container_name IS NULL AND t.container_name IS NOT NULL)
ORDER BY t.obj, t.day
ON CONFLICT (node_id, obj, day) DO UPDATE SET
  sandbox = coalesce(object.sandbox, excluded.sandbox),
  bits = object.bits | excluded.bits,
  attempt = coalesce(object.attempt, excluded.attempt),
  pod_uid = coalesce(object.pod_uid, excluded.pod_uid),
  namespace = coalesce(object.namespace, excluded.namespace),
  pod_name = coalesce(object.pod_name, excluded.pod_name),
  container_name = coalesce(object.container_name, excluded.container_name)
