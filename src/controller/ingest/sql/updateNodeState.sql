-- The state of a node as an incarnation of its agent reports it: the record with the highest seq wins, whatever the order of arrival.
-- $1 cluster_id, then arrays, one entry for each node: node_id, incarnation, seq, stream_state, stream_since, stream_reason, stream_error,
-- relist_healthy, relist_reason, model, mode, mode_since, mode_reason, kubelet_stream_errors or null, kubelet_error or null,
-- kubelet_identity or null, pods_api_state and pods_api_reason or null; times in microseconds since 1970
INSERT INTO store.node_state (node_id, cluster_id, incarnation, seq, stream_state, stream_since, stream_reason, stream_error,
                              relist_healthy, relist_reason, model, mode, mode_since, mode_reason, kubelet_stream_errors,
                              kubelet_error, kubelet_identity, pods_api_state, pods_api_reason)
SELECT u.node_id, $1::int2, u.incarnation, u.seq, u.stream_state, timestamptz 'epoch' + u.stream_since * interval '1 microsecond',
       u.stream_reason, u.stream_error, u.relist_healthy, u.relist_reason, u.model, u.mode,
       timestamptz 'epoch' + u.mode_since * interval '1 microsecond', u.mode_reason, u.kubelet_stream_errors, u.kubelet_error,
       u.kubelet_identity, u.pods_api_state, u.pods_api_reason
FROM unnest($2::int4[], $3::int4[], $4::int4[], $5::text[], $6::int8[], $7::text[], $8::text[], $9::bool[], $10::text[], $11::text[],
            $12::text[], $13::int8[], $14::text[], $15::int8[], $16::text[], $17::text[], $18::text[], $19::text[])
  AS u (node_id, incarnation, seq, stream_state, stream_since, stream_reason, stream_error, relist_healthy, relist_reason, model, mode,
        mode_since, mode_reason, kubelet_stream_errors, kubelet_error, kubelet_identity, pods_api_state, pods_api_reason)
ORDER BY u.node_id
ON CONFLICT (node_id, incarnation) DO UPDATE SET
  seq = excluded.seq,
  stream_state = excluded.stream_state, stream_since = excluded.stream_since, stream_reason = excluded.stream_reason,
  stream_error = excluded.stream_error, relist_healthy = excluded.relist_healthy, relist_reason = excluded.relist_reason,
  model = excluded.model, mode = excluded.mode, mode_since = excluded.mode_since, mode_reason = excluded.mode_reason,
  kubelet_stream_errors = excluded.kubelet_stream_errors, kubelet_error = excluded.kubelet_error, kubelet_identity = excluded.kubelet_identity,
  pods_api_state = excluded.pods_api_state, pods_api_reason = excluded.pods_api_reason
WHERE node_state.seq < excluded.seq
