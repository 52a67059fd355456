-- $1 cluster_id, then arrays: node_id, context_id, seq, at (microseconds since 1970), finding_id, kind, event_type, cause,
-- container_id, pod_uid, pod_namespace, pod_name, container_name, window_from, window_to, occurred_at, lateness_us, delivery_us, proof
INSERT INTO store.finding (finding_id, detected_at, day, node_id, context_id, seq, cluster_id, kind, event_type, cause,
                           container_id, pod_uid, pod_namespace, pod_name, container_name, window_from, window_to,
                           occurred_at, lateness_us, delivery_us, proof)
SELECT u.finding_id, t.at, (t.at AT TIME ZONE 'UTC')::date, u.node_id, u.context_id, u.seq, $1::int2, u.kind, u.event_type, u.cause,
       u.container_id, u.pod_uid, u.pod_namespace, u.pod_name, u.container_name,
       timestamptz 'epoch' + u.window_from * interval '1 microsecond', timestamptz 'epoch' + u.window_to * interval '1 microsecond',
       timestamptz 'epoch' + u.occurred_at * interval '1 microsecond', u.lateness_us, u.delivery_us, u.proof::jsonb
FROM unnest($2::int4[], $3::int4[], $4::int4[], $5::int8[], $6::uuid[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[],
            $13::text[], $14::text[], $15::int8[], $16::int8[], $17::int8[], $18::int8[], $19::int8[], $20::text[])
  AS u (node_id, context_id, seq, at, finding_id, kind, event_type, cause, container_id, pod_uid, pod_namespace, pod_name, container_name,
        window_from, window_to, occurred_at, lateness_us, delivery_us, proof),
  LATERAL (SELECT timestamptz 'epoch' + u.at * interval '1 microsecond' AS at) AS t
