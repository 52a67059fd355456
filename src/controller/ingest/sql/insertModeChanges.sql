-- $1 cluster_id, then arrays: node_id, context_id, seq, at, not_before (microseconds since 1970), model, from_mode, to_mode, reason, proof
INSERT INTO store.mode_change (at, not_before, day, node_id, context_id, seq, cluster_id, model, from_mode, to_mode, reason, proof)
SELECT t.at, timestamptz 'epoch' + u.not_before * interval '1 microsecond', (t.at AT TIME ZONE 'UTC')::date,
       u.node_id, u.context_id, u.seq, $1::int2, u.model, u.from_mode, u.to_mode, u.reason, u.proof::jsonb
FROM unnest($2::int4[], $3::int4[], $4::int4[], $5::int8[], $6::int8[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
  AS u (node_id, context_id, seq, at, not_before, model, from_mode, to_mode, reason, proof),
  LATERAL (SELECT timestamptz 'epoch' + u.at * interval '1 microsecond' AS at) AS t
