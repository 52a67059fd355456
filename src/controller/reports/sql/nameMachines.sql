-- The Nodes of cluster $1 have these names, UIDs and creation times ($2, $3, $4): where a UID is not the one that is known, the epochs whose agents ran
-- before that are of the earlier machine. Before recordNodes.sql, in a statement of its own: batches lock epochs before their node.
UPDATE store.epoch e SET node_uid = n.node_uid
FROM unnest($2::text[], $3::text[], $4::timestamptz[]) AS u (name, uid, created_at)
JOIN store.node n ON n.cluster_id = $1::int2 AND n.name = u.name
WHERE e.node_id = n.node_id AND n.node_uid <> u.uid AND e.node_uid = '' AND e.last_seen < u.created_at;
