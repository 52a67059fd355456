-- The state of a node: the record with the highest (life, seq) wins, whatever the order of arrival.
-- $1 node_id, $2 cluster_id, $3 life, $4 seq, $5 ctx_id, $6 at, $7 stream_state, $8 stream_since, $9 reason, $10 last error,
-- $11 relist_healthy, $12 reason, $13 model, $14 mode, $15 mode_since, $16 reason, $17 errors of the kubelet's own stream or null; times in microseconds since 1970
INSERT INTO store.node_state (node_id, cluster_id, life, seq, ctx_id, at, stream_state, stream_since, stream_reason, stream_error,
                              relist_healthy, relist_reason, model, mode, mode_since, mode_reason, k_stream_errors)
VALUES ($1, $2, $3, $4, $5, timestamptz 'epoch' + $6::int8 * interval '1 microsecond', $7,
        timestamptz 'epoch' + $8::int8 * interval '1 microsecond', $9, $10, $11, $12, $13, $14,
        timestamptz 'epoch' + $15::int8 * interval '1 microsecond', $16, $17)
ON CONFLICT (node_id) DO UPDATE SET
  life = excluded.life, seq = excluded.seq, ctx_id = excluded.ctx_id, at = excluded.at,
  stream_state = excluded.stream_state, stream_since = excluded.stream_since, stream_reason = excluded.stream_reason,
  stream_error = excluded.stream_error, relist_healthy = excluded.relist_healthy, relist_reason = excluded.relist_reason,
  model = excluded.model, mode = excluded.mode, mode_since = excluded.mode_since, mode_reason = excluded.mode_reason,
  k_stream_errors = excluded.k_stream_errors
WHERE (node_state.life, node_state.seq) < (excluded.life, excluded.seq)
