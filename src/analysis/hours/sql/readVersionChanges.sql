-- When the versions of kubelets and runtimes changed in the pools of the clusters $1, null for all, from $2 until $3, by slices of $4 seconds: a row for each
-- pool, slice, and version that nodes left. At most $5 rows, those of the most nodes.
SELECT k.name AS cluster, l.pool, $2::timestamptz + floor(extract(epoch FROM c.at - $2::timestamptz) / $4) * $4 * interval '1 second' AS at, c.what,
       c.before, c.after, count(DISTINCT c.node_id)::int4 AS nodes
FROM (
  SELECT v.node_id, v.at, w.what, w.after, lag(w.after) OVER (PARTITION BY v.node_id, w.what ORDER BY v.at, v.context_id) AS before
  FROM (
    SELECT x.node_id, x.context_id, x.kubelet_version, concat_ws(' ', nullif(x.runtime_name, ''), nullif(x.runtime_version, '')) AS runtime,
           (SELECT min(h.hour) FROM store.relist_hour h WHERE h.node_id = x.node_id AND h.context_id = x.context_id) AS at
    FROM store.context x
  ) v
  CROSS JOIN LATERAL (VALUES ('kubelet', v.kubelet_version), ('runtime', v.runtime)) AS w (what, after)
  WHERE v.at IS NOT NULL AND w.after <> ''
) c
JOIN store.node n ON n.node_id = c.node_id
JOIN store.cluster k ON k.cluster_id = n.cluster_id
LEFT JOIN LATERAL (
  SELECT store.pool_of(i.labels) AS pool FROM store.node_info i WHERE i.node_id = n.node_id ORDER BY i.at DESC LIMIT 1
) l ON true
WHERE c.before <> c.after AND c.at >= $2 AND c.at < $3 AND ($1::text[] IS NULL OR k.name = ANY ($1))
GROUP BY 1, 2, 3, 4, 5, 6
ORDER BY nodes DESC, 3, 1, 2, 4, 5, 6
LIMIT $5;
