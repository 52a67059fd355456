-- $1 node_id, $2 ctx_id, $3 cluster_id, then arrays: seq, at, from, to (microseconds since 1970), obj, old_new, pleg
INSERT INTO store.change (from_at, to_at, obj, day, node_id, ctx_id, seq, cluster_id, old_new, pleg)
SELECT timestamptz 'epoch' + u.from_us * interval '1 microsecond', timestamptz 'epoch' + u.to_us * interval '1 microsecond',
       u.obj, ((timestamptz 'epoch' + u.at * interval '1 microsecond') AT TIME ZONE 'UTC')::date,
       $1::int4, $2::int4, u.seq, $3::int2, u.old_new, u.pleg
FROM unnest($4::int4[], $5::int8[], $6::int8[], $7::int8[], $8::int8[], $9::int2[], $10::int2[])
  AS u (seq, at, from_us, to_us, obj, old_new, pleg)
ON CONFLICT DO NOTHING
