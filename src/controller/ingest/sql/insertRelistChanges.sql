-- $1 node_id, $2 context_id, $3 cluster_id, then arrays: seq, at, window_from, window_to (microseconds since 1970), container_key,
-- states, pleg_events
INSERT INTO store.relist_change (window_from, window_to, container_key, day, node_id, context_id, seq, cluster_id, states, pleg_events)
SELECT timestamptz 'epoch' + u.window_from * interval '1 microsecond', timestamptz 'epoch' + u.window_to * interval '1 microsecond',
       u.container_key, ((timestamptz 'epoch' + u.at * interval '1 microsecond') AT TIME ZONE 'UTC')::date,
       $1::int4, $2::int4, u.seq, $3::int2, u.states, u.pleg_events
FROM unnest($4::int4[], $5::int8[], $6::int8[], $7::int8[], $8::int8[], $9::int2[], $10::int2[])
  AS u (seq, at, window_from, window_to, container_key, states, pleg_events)
ON CONFLICT DO NOTHING
