-- $1 node_id, $2 ctx_id, $3 cluster_id, then arrays: seq, at (microseconds since 1970), relists, errors, max_us,
-- hist (each as an array literal), sandboxes, containers, bytes, expected, matched, unobservable, covered_us, span_us; of the
-- kubelet, null where it told nothing: relists, hist (as a literal), last_seen_age_us, discarded, stream_errors, list_p99_us,
-- intervals, interval_us; of its calls, null where they were not counted: from, to (microseconds since 1970), relist_us, lists,
-- list_errors, list_us, longest_list_us, status_us
INSERT INTO store.sample (minute, day, node_id, ctx_id, seq, cluster_id, relists, errors, max_us, hist, sandboxes, containers,
                          bytes, expected, matched, unobservable, covered_us, span_us, ended_at,
                          k_relists, k_hist, k_last_seen_age_ms, k_discarded, k_stream_errors, k_list_p99_ms, k_intervals,
                          k_interval_us, k_from, k_to, k_relist_us, k_lists, k_list_errors, k_list_us, k_longest_list_us,
                          k_status_us)
SELECT date_trunc('minute', t.at), (t.at AT TIME ZONE 'UTC')::date, $1::int4, $2::int4, u.seq, $3::int2, u.relists, u.errors,
       u.max_us, u.hist::int2[], u.sandboxes, u.containers, u.bytes, u.expected, u.matched, u.unobservable, u.covered_us, u.span_us,
       t.at + u.span_us * interval '1 microsecond',
       u.k_relists, u.k_hist::int2[], u.k_last_seen_age_us / 1000, u.k_discarded, u.k_stream_errors, u.k_list_p99_us / 1000.0::float8,
       u.k_intervals, u.k_interval_us,
       timestamptz 'epoch' + u.k_from * interval '1 microsecond', timestamptz 'epoch' + u.k_to * interval '1 microsecond',
       u.k_relist_us, u.k_lists, u.k_list_errors, u.k_list_us, u.k_longest_list_us, u.k_status_us
FROM unnest($4::int4[], $5::int8[], $6::int4[], $7::int4[], $8::int8[], $9::text[], $10::int4[], $11::int4[], $12::int8[],
            $13::int4[], $14::int4[], $15::int4[], $16::int8[], $17::int8[],
            $18::int4[], $19::text[], $20::int8[], $21::int8[], $22::int8[], $23::int8[], $24::int4[], $25::int8[],
            $26::int8[], $27::int8[], $28::int8[], $29::int4[], $30::int4[], $31::int8[], $32::int8[], $33::int8[])
  AS u (seq, at, relists, errors, max_us, hist, sandboxes, containers, bytes, expected, matched, unobservable, covered_us, span_us,
        k_relists, k_hist, k_last_seen_age_us, k_discarded, k_stream_errors, k_list_p99_us, k_intervals, k_interval_us,
        k_from, k_to, k_relist_us, k_lists, k_list_errors, k_list_us, k_longest_list_us, k_status_us),
  LATERAL (SELECT timestamptz 'epoch' + u.at * interval '1 microsecond' AS at) AS t
ON CONFLICT DO NOTHING
