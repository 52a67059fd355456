-- The findings of each of the things that a search found, whose clusters, nodes, kinds and texts are $1 to $4: missed events first, then the newest; at
-- most $5 of each. For a node only its missed events.
SELECT h.place::int4 AS hit, f.finding_id, f.kind, f.event_type, f.container_name, f.is_sandbox, f.resolved_at, f.at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS h (cluster, node, found, text, place)
CROSS JOIN LATERAL (
  SELECT f.*, coalesce(f.occurred_at, f.window_to, f.detected_at) AS at
  FROM plegwatch.findings f
  WHERE f.cluster = h.cluster AND f.node = h.node AND CASE h.found
    WHEN 'node' THEN f.kind = 'missed'
    WHEN 'pod' THEN concat_ws('/', f.pod_namespace, f.pod_name) = h.text
    WHEN 'container' THEN f.container_id = h.text
    ELSE f.finding_id::text = h.text END
  ORDER BY f.kind = 'missed' DESC, f.detected_at DESC, f.finding_id
  LIMIT $5
) f
ORDER BY h.place, f.kind = 'missed' DESC, f.detected_at DESC, f.finding_id;
