-- Adds watches as far as the limits of their kind and their node allow. Returns those that were added.
-- $1 node_id, $2 cluster_id, $3 kind, $4 limit, $5 limit per node, $6 ms until the first read, $7 ms until it expires, then arrays:
-- finding_id, event_type, container_id, pod_uid, pod_namespace, pod_name, container_name, attempt, latest and earliest (microseconds
-- since 1970)
WITH room AS (
  SELECT least($4::int4 - count(*), $5::int4 - count(*) FILTER (WHERE w.node_id = $1::int4)) AS places
  FROM store.status_lag_watch w WHERE w.cluster_id = $2::int2 AND w.kind = $3::text
)
INSERT INTO store.status_lag_watch (node_id, cluster_id, finding_id, kind, event_type, container_id, pod_uid, pod_namespace, pod_name,
                                    container_name, attempt, latest_at, earliest_at, due_at, expires_at)
SELECT $1::int4, $2::int2, u.finding_id, $3::text, u.event_type, u.container_id, u.pod_uid, u.pod_namespace, u.pod_name,
       u.container_name, u.attempt, timestamptz 'epoch' + u.latest * interval '1 microsecond',
       timestamptz 'epoch' + u.earliest * interval '1 microsecond',
       now() + $6::int4 * interval '1 millisecond', now() + $7::int4 * interval '1 millisecond'
FROM unnest($8::uuid[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::int8[], $16::int8[],
            $17::int8[])
  WITH ORDINALITY AS u (finding_id, event_type, container_id, pod_uid, pod_namespace, pod_name, container_name, attempt, latest,
                        earliest, place)
JOIN room r ON u.place <= r.places
ON CONFLICT DO NOTHING
RETURNING finding_id
