-- Minutes as they were signed: times are microseconds since the epoch began. `fits`: whether columns that follow from others do.
-- $1 node_id, $2 context_ids, $3 after seq, $4 up to seq, $5 start of the epoch in microseconds since 1970
SELECT r.seq, r.context_id, r.minute = date_trunc('minute', r.ended_at - r.span_us * interval '1 microsecond')
         AND r.day = ((r.ended_at - r.span_us * interval '1 microsecond') AT TIME ZONE 'UTC')::date AS fits,
       (extract(epoch FROM r.ended_at) * 1000000)::float8 - $5::float8 AS ended_at,
       (extract(epoch FROM r.kubelet_counted_from) * 1000000)::float8 - $5::float8 AS kubelet_counted_from,
       (extract(epoch FROM r.kubelet_counted_to) * 1000000)::float8 - $5::float8 AS kubelet_counted_to,
       (extract(epoch FROM r.slow_status_at) * 1000000)::float8 - $5::float8 AS slow_status_at,
       (extract(epoch FROM r.hang_from) * 1000000)::float8 - $5::float8 AS hang_from,
       (extract(epoch FROM r.hang_to) * 1000000)::float8 - $5::float8 AS hang_to,
       (extract(epoch FROM r.wall_at) * 1000000)::float8 AS wall_at,
       r.span_us, r.covered_us, r.max_us, r.relists, r.errors, r.hist, r.sandboxes, r.containers, r.exited_sandboxes,
       r.exited_containers, r.sandbox_list_bytes, r.container_list_bytes, r.expected, r.matched, r.unobservable, r.lists,
       r.kubelet_relists, r.kubelet_hist, r.kubelet_last_seen_age_ms, r.kubelet_discarded, r.kubelet_stream_errors,
       r.kubelet_list_p99_ms, r.kubelet_intervals, r.kubelet_interval_us, r.kubelet_resident_bytes, r.kubelet_relist_us,
       r.kubelet_longest_list_us, r.kubelet_cpu_us, r.kubelet_sandbox_lists, r.kubelet_sandbox_list_errors, r.kubelet_sandbox_list_us,
       r.kubelet_container_lists, r.kubelet_container_list_errors, r.kubelet_container_list_us, r.kubelet_sandbox_statuses,
       r.kubelet_sandbox_status_errors, r.kubelet_sandbox_status_us, r.kubelet_container_statuses, r.kubelet_container_status_errors,
       r.kubelet_container_status_us, r.statuses_asked, r.statuses_slow, r.slow_status_key, r.slow_status_us, r.slow_status_timed_out,
       r.hang_waited_us, r.hang_listed, r.hang_asked, r.hang_quick, r.hang_unanswered, r.hang_call, r.hang_verdict, r.pressure_us,
       r.cpu_some_us, r.io_some_us, r.io_full_us, r.memory_some_us, r.memory_full_us, r.kubelet_start_hist, r.kubelet_stop_hist
FROM store.relist_minute r
WHERE r.node_id = $1 AND r.context_id = ANY ($2::int4[]) AND r.seq > $3 AND r.seq <= $4
ORDER BY r.seq
