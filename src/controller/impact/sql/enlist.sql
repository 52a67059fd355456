-- Puts transitions on the work list, unless so many of their kind are on it. Says which were taken.
-- $1 node_id, $2 cluster_id, $3 sample, $4 the most, $5 ms until the first read, $6 ms after which it is given up, then arrays:
-- finding_id, event_type, container_id, pod_uid, pod_namespace, pod_name, container_name, attempt, latest and earliest
-- (microseconds since 1970)
INSERT INTO store.impact_watch (node_id, cluster_id, finding_id, sample, event_type, container_id, pod_uid, pod_namespace, pod_name,
                                container_name, attempt, latest_at, earliest_at, due_at, expires_at)
SELECT $1::int4, $2::int2, u.finding_id, $3::bool, u.event_type, u.container_id, u.pod_uid, u.pod_namespace, u.pod_name,
       u.container_name, u.attempt, timestamptz 'epoch' + u.latest * interval '1 microsecond',
       timestamptz 'epoch' + u.earliest * interval '1 microsecond',
       now() + $5::int4 * interval '1 millisecond', now() + $6::int4 * interval '1 millisecond'
FROM unnest($7::uuid[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::int8[], $15::int8[],
            $16::int8[])
  AS u (finding_id, event_type, container_id, pod_uid, pod_namespace, pod_name, container_name, attempt, latest, earliest)
WHERE (SELECT count(*) FROM store.impact_watch w WHERE w.cluster_id = $2::int2 AND w.sample = $3::bool) < $4::int4
ON CONFLICT DO NOTHING
RETURNING finding_id
