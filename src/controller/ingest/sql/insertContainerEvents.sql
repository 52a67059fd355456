-- $1 cluster_id, then arrays: node_id, context_id, seq, received_at (microseconds since 1970), created_ns, container_key, flags
INSERT INTO store.container_event (received_at, created_ns, container_key, day, node_id, context_id, seq, cluster_id, flags)
SELECT t.at, u.created_ns, u.container_key, (t.at AT TIME ZONE 'UTC')::date, u.node_id, u.context_id, u.seq, $1::int2, u.flags
FROM unnest($2::int4[], $3::int4[], $4::int4[], $5::int8[], $6::int8[], $7::int8[], $8::int4[]) AS u (node_id, context_id, seq, at, created_ns, container_key, flags),
     LATERAL (SELECT timestamptz 'epoch' + u.at * interval '1 microsecond' AS at) AS t
