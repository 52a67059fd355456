-- $1 node_id, $2 ctx_id, $3 cluster_id, then arrays: seq, at (microseconds since 1970), relists, errors, max_us,
-- hist (each as an array literal), sandboxes, containers, bytes, expected, matched, unobservable, covered_us, span_us
INSERT INTO store.sample (minute, day, node_id, ctx_id, seq, cluster_id, relists, errors, max_us, hist, sandboxes, containers,
                          bytes, expected, matched, unobservable, covered_us, span_us, ended_at)
SELECT date_trunc('minute', t.at), (t.at AT TIME ZONE 'UTC')::date, $1::int4, $2::int4, u.seq, $3::int2, u.relists, u.errors,
       u.max_us, u.hist::int2[], u.sandboxes, u.containers, u.bytes, u.expected, u.matched, u.unobservable, u.covered_us, u.span_us,
       t.at + u.span_us * interval '1 microsecond'
FROM unnest($4::int4[], $5::int8[], $6::int4[], $7::int4[], $8::int8[], $9::text[], $10::int4[], $11::int4[], $12::int8[],
            $13::int4[], $14::int4[], $15::int4[], $16::int8[], $17::int8[])
  AS u (seq, at, relists, errors, max_us, hist, sandboxes, containers, bytes, expected, matched, unobservable, covered_us, span_us),
  LATERAL (SELECT timestamptz 'epoch' + u.at * interval '1 microsecond' AS at) AS t
ON CONFLICT DO NOTHING
