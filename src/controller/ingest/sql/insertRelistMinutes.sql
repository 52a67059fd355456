-- $1 cluster_id, then arrays: node_id, context_id, seq, at (microseconds since 1970), relists, errors, max_us,
-- hist (each an array literal), sandboxes, containers, exited_sandboxes, exited_containers, sandbox_list_bytes, container_list_bytes, expected,
-- matched, unobservable, covered_us, span_us; from the
-- kubelet, null where it reported nothing: relists, hist (as a literal), last_seen_age_ms, discarded, stream_errors, list_p99_ms,
-- intervals, interval_us, resident_bytes; its calls, null where they were not counted: counted_from, counted_to (microseconds since 1970),
-- relist_us, longest_list_us, cpu_us, and of the two lists and the two statuses each: calls, errors (null: none), us;
-- and again for every minute: wall_at
-- (microseconds since 1970), lists (packed); statuses_asked and statuses_slow, null where none was asked for; of the slowest, null where none was slow:
-- container_key, at (microseconds since 1970), took_us, timed_out; pressure_us, null where it was not measured, and what was waited for, null where
-- that is too little;
-- of a list that hung, null where none did: from, to (microseconds since 1970), waited_us, listed, asked, quick, unanswered, call, verdict;
-- kubelet lag of starts and of stops (each as a literal), null where there were none
-- A trigger adds each to its hour.
INSERT INTO store.relist_minute (minute, day, node_id, context_id, seq, cluster_id, relists, errors, max_us, hist, sandboxes, containers,
                                 exited_sandboxes, exited_containers, sandbox_list_bytes, container_list_bytes,
                                 expected, matched, unobservable, covered_us, span_us, ended_at,
                                 kubelet_relists, kubelet_hist, kubelet_last_seen_age_ms, kubelet_discarded, kubelet_stream_errors,
                                 kubelet_list_p99_ms, kubelet_intervals, kubelet_interval_us, kubelet_resident_bytes, kubelet_counted_from,
                                 kubelet_counted_to, kubelet_relist_us, kubelet_longest_list_us, kubelet_cpu_us,
                                 kubelet_sandbox_lists, kubelet_sandbox_list_errors, kubelet_sandbox_list_us, kubelet_container_lists,
                                 kubelet_container_list_errors, kubelet_container_list_us, kubelet_sandbox_statuses, kubelet_sandbox_status_errors,
                                 kubelet_sandbox_status_us, kubelet_container_statuses, kubelet_container_status_errors, kubelet_container_status_us,
                                 wall_at, lists, statuses_asked, statuses_slow, slow_status_key, slow_status_at, slow_status_us,
                                 slow_status_timed_out, pressure_us, cpu_some_us, io_some_us, io_full_us, memory_some_us, memory_full_us,
                                 hang_from, hang_to, hang_waited_us, hang_listed, hang_asked, hang_quick, hang_unanswered, hang_call, hang_verdict,
                                 kubelet_start_hist, kubelet_stop_hist)
SELECT date_trunc('minute', t.at), (t.at AT TIME ZONE 'UTC')::date, u.node_id, u.context_id, u.seq, $1::int2, u.relists, u.errors,
       u.max_us, u.hist::int2[], u.sandboxes, u.containers, u.exited_sandboxes, u.exited_containers, u.sandbox_list_bytes, u.container_list_bytes,
       u.expected, u.matched, u.unobservable, u.covered_us, u.span_us,
       t.at + u.span_us * interval '1 microsecond',
       u.kubelet_relists, u.kubelet_hist::int2[],
       u.kubelet_last_seen_age_ms, u.kubelet_discarded, u.kubelet_stream_errors,
       u.kubelet_list_p99_ms, u.kubelet_intervals, u.kubelet_interval_us, u.kubelet_resident_bytes,
       timestamptz 'epoch' + u.kubelet_counted_from * interval '1 microsecond',
       timestamptz 'epoch' + u.kubelet_counted_to * interval '1 microsecond',
       u.kubelet_relist_us, u.kubelet_longest_list_us, u.kubelet_cpu_us,
       u.kubelet_sandbox_lists, u.kubelet_sandbox_list_errors, u.kubelet_sandbox_list_us, u.kubelet_container_lists, u.kubelet_container_list_errors,
       u.kubelet_container_list_us, u.kubelet_sandbox_statuses, u.kubelet_sandbox_status_errors, u.kubelet_sandbox_status_us,
       u.kubelet_container_statuses, u.kubelet_container_status_errors, u.kubelet_container_status_us,
       timestamptz 'epoch' + u.wall_at * interval '1 microsecond', u.lists,
       u.statuses_asked, u.statuses_slow, u.slow_status_key, timestamptz 'epoch' + u.slow_status_at * interval '1 microsecond', u.slow_status_us,
       u.slow_status_timed_out, u.pressure_us, u.cpu_some_us, u.io_some_us, u.io_full_us, u.memory_some_us, u.memory_full_us,
       timestamptz 'epoch' + u.hang_from * interval '1 microsecond', timestamptz 'epoch' + u.hang_to * interval '1 microsecond',
       u.hang_waited_us, u.hang_listed, u.hang_asked, u.hang_quick, u.hang_unanswered, u.hang_call, u.hang_verdict,
       u.kubelet_start_hist::int2[], u.kubelet_stop_hist::int2[]
FROM unnest($2::int4[], $3::int4[], $4::int4[], $5::int8[], $6::int4[], $7::int4[], $8::int8[], $9::text[], $10::int4[], $11::int4[], $12::int4[],
            $13::int4[], $14::int4[], $15::int4[], $16::int4[], $17::int4[], $18::int4[], $19::int8[], $20::int8[], $21::int4[], $22::text[],
            $23::int4[], $24::int4[], $25::int4[], $26::float8[], $27::int4[], $28::int8[], $29::int8[], $30::int8[], $31::int8[], $32::int8[],
            $33::int8[], $34::int8[], $35::int4[], $36::int4[], $37::int4[], $38::int4[], $39::int4[], $40::int4[], $41::int4[], $42::int4[],
            $43::int4[], $44::int4[], $45::int4[], $46::int4[], $47::int8[], $48::bytea[], $49::int4[], $50::int4[], $51::int8[], $52::int8[],
            $53::int8[], $54::bool[], $55::int4[], $56::int4[], $57::int4[], $58::int4[], $59::int4[], $60::int4[],
            $61::int8[], $62::int8[], $63::int8[], $64::int4[], $65::int4[], $66::int4[], $67::int4[], $68::text[], $69::text[], $70::text[], $71::text[])
  AS u (node_id, context_id, seq, at, relists, errors, max_us, hist, sandboxes, containers, exited_sandboxes, exited_containers, sandbox_list_bytes,
        container_list_bytes, expected, matched, unobservable, covered_us, span_us, kubelet_relists, kubelet_hist, kubelet_last_seen_age_ms,
        kubelet_discarded, kubelet_stream_errors, kubelet_list_p99_ms, kubelet_intervals, kubelet_interval_us, kubelet_resident_bytes,
        kubelet_counted_from, kubelet_counted_to, kubelet_relist_us, kubelet_longest_list_us, kubelet_cpu_us, kubelet_sandbox_lists,
        kubelet_sandbox_list_errors, kubelet_sandbox_list_us, kubelet_container_lists, kubelet_container_list_errors, kubelet_container_list_us,
        kubelet_sandbox_statuses, kubelet_sandbox_status_errors, kubelet_sandbox_status_us, kubelet_container_statuses,
        kubelet_container_status_errors, kubelet_container_status_us, wall_at, lists, statuses_asked, statuses_slow, slow_status_key, slow_status_at,
        slow_status_us, slow_status_timed_out, pressure_us, cpu_some_us, io_some_us, io_full_us, memory_some_us, memory_full_us,
        hang_from, hang_to, hang_waited_us, hang_listed, hang_asked, hang_quick, hang_unanswered, hang_call, hang_verdict, kubelet_start_hist,
        kubelet_stop_hist),
  LATERAL (SELECT timestamptz 'epoch' + u.at * interval '1 microsecond' AS at) AS t
