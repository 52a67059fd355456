-- Whose ids are, by container and day. $1 node_id, then of each: $2 container_key, $3 day
SELECT o.container_key AS key, o.day, o.container_id AS id,
       s.container_id AS sandbox, o.attempt, store.uid_text(o.pod_uid) AS pod_uid, o.pod_namespace, o.pod_name, o.container_name
FROM unnest($2::int8[], $3::date[]) AS w (container_key, day)
JOIN store.container o ON o.node_id = $1 AND o.container_key = w.container_key AND o.day = w.day
LEFT JOIN store.container s ON s.node_id = o.node_id AND s.container_key = o.sandbox_key AND s.day = o.day
