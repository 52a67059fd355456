-- Stores what the Nodes named $2 of cluster $1 are, where that differs from the latest that is stored: labels $3 (an object), OS images $4 and
-- kernels $5, arrays of one length. The time is that of this database: a Node does not say when its labels changed.
INSERT INTO store.node_info (node_id, cluster_id, at, labels, os_image, kernel_version)
SELECT n.node_id, n.cluster_id, greatest(now(), last.at + interval '1 microsecond'), u.labels, u.os_image, u.kernel_version
FROM unnest($2::text[], $3::jsonb[], $4::text[], $5::text[]) AS u (name, labels, os_image, kernel_version)
JOIN store.node n ON n.cluster_id = $1::int2 AND n.name = u.name
LEFT JOIN LATERAL (
  SELECT * FROM store.node_info i WHERE i.node_id = n.node_id ORDER BY i.at DESC LIMIT 1
) last ON true
WHERE last.at IS NULL OR (last.labels, last.os_image, last.kernel_version) <> (u.labels, u.os_image, u.kernel_version)
ON CONFLICT DO NOTHING
