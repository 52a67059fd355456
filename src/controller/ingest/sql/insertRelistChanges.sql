-- $1 cluster_id, then arrays: node_id, context_id, seq, at, window_from, window_to (microseconds since 1970), container_key,
-- states, pleg_events
INSERT INTO store.relist_change (window_from, window_to, container_key, day, node_id, context_id, seq, cluster_id, states, pleg_events)
SELECT timestamptz 'epoch' + u.window_from * interval '1 microsecond', timestamptz 'epoch' + u.window_to * interval '1 microsecond',
       u.container_key, ((timestamptz 'epoch' + u.at * interval '1 microsecond') AT TIME ZONE 'UTC')::date,
       u.node_id, u.context_id, u.seq, $1::int2, u.states, u.pleg_events
FROM unnest($2::int4[], $3::int4[], $4::int4[], $5::int8[], $6::int8[], $7::int8[], $8::int8[], $9::int2[], $10::int2[])
  AS u (node_id, context_id, seq, at, window_from, window_to, container_key, states, pleg_events)
