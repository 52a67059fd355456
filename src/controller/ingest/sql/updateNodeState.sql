-- The state of a node: the record with the highest (incarnation, seq) wins, whatever the order of arrival.
-- $1 node_id, $2 cluster_id, $3 incarnation, $4 seq, $5 stream_state, $6 stream_since, $7 stream_reason, $8 stream_error,
-- $9 relist_healthy, $10 relist_reason, $11 model, $12 mode, $13 mode_since, $14 mode_reason, $15 kubelet_stream_errors or null,
-- $16 kubelet_error or null;
-- times in microseconds since 1970
INSERT INTO store.node_state (node_id, cluster_id, incarnation, seq, stream_state, stream_since, stream_reason, stream_error,
                              relist_healthy, relist_reason, model, mode, mode_since, mode_reason, kubelet_stream_errors,
                              kubelet_error)
VALUES ($1, $2, $3, $4, $5, timestamptz 'epoch' + $6::int8 * interval '1 microsecond', $7, $8, $9, $10, $11, $12,
        timestamptz 'epoch' + $13::int8 * interval '1 microsecond', $14, $15, $16)
ON CONFLICT (node_id) DO UPDATE SET
  incarnation = excluded.incarnation, seq = excluded.seq,
  stream_state = excluded.stream_state, stream_since = excluded.stream_since, stream_reason = excluded.stream_reason,
  stream_error = excluded.stream_error, relist_healthy = excluded.relist_healthy, relist_reason = excluded.relist_reason,
  model = excluded.model, mode = excluded.mode, mode_since = excluded.mode_since, mode_reason = excluded.mode_reason,
  kubelet_stream_errors = excluded.kubelet_stream_errors, kubelet_error = excluded.kubelet_error
WHERE (node_state.incarnation, node_state.seq) < (excluded.incarnation, excluded.seq)
