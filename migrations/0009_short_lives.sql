-- What relisting could not see, and how likely a Generic PLEG would have missed it altogether.
--
--   life_min_ms, life_max_ms     how long what was overlooked lasted, between two bounds
--   list_before, list_after      the lists that did not show it
--   relist_period_ms             of the kubelet, in the last of its minutes before that is known; null without one
--   chance_min, chance_max       max(0, 1 - L/I): what lasts L is missed by one that relists every I with this probability,
--                                for the longest and the shortest that it can have lasted. A chance, never a certainty
CREATE FUNCTION store.chance_to_miss(life_ms float8, period_ms float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN greatest(0, 1 - life_ms / period_ms);

CREATE VIEW plegwatch.short_lives WITH (security_invoker = true) AS
SELECT f.cluster, f.node, f.finding_id, f.detected_at, f.cause, f.container_id,
       f.pod_uid, f.pod_namespace, f.pod_name, f.container_name,
       l.life_min_ms, l.life_max_ms, f.window_from AS list_before, f.window_to AS list_after,
       f.mode, k.relist_period_ms,
       store.chance_to_miss(l.life_max_ms, k.relist_period_ms) AS chance_min,
       store.chance_to_miss(l.life_min_ms, k.relist_period_ms) AS chance_max
FROM plegwatch.findings f
-- A proof is whatever an agent wrote.
CROSS JOIN LATERAL (
  SELECT CASE WHEN jsonb_typeof(f.proof -> 'lifeMinMs') = 'number'
              THEN least(greatest((f.proof -> 'lifeMinMs')::numeric, 0), 1e12)::float8 END AS life_min_ms,
         CASE WHEN jsonb_typeof(f.proof -> 'lifeMaxMs') = 'number'
              THEN least(greatest((f.proof -> 'lifeMaxMs')::numeric, 0), 1e12)::float8 END AS life_max_ms
) l
LEFT JOIN LATERAL (
  SELECT m.relist_period_ms FROM plegwatch.kubelet_minutes m
  WHERE m.cluster = f.cluster AND m.node = f.node AND m.relist_period_ms > 0
    AND m.minute > f.window_to - interval '15 minutes' AND m.minute <= f.window_to
    AND m.day BETWEEN (f.window_to AT TIME ZONE 'UTC')::date - 1 AND (f.window_to AT TIME ZONE 'UTC')::date
  ORDER BY m.minute DESC LIMIT 1
) k ON true
WHERE f.kind = 'short_life';
