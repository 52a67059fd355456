/*
 * The tables of migrations/0002_tables.sql, which says what each column means. test/integration/schema.test.ts compares both.
 */
import { pgSchema } from 'drizzle-orm/pg-core';
import {
  all,
  bool,
  bytea,
  date,
  float8,
  int2,
  int2Array,
  int4,
  int4Array,
  int4multirange,
  int8,
  int8Text,
  jsonb,
  name,
  some,
  text,
  textArray,
  timestamptz,
  uuid,
} from './columns.ts';

const { table } = pgSchema('store');

export const containerEvent = table('container_event', {
  ...all(timestamptz, 'received_at'),
  ...all(int8Text, 'created_ns container_key'),
  ...all(date, 'day'),
  ...all(int4, 'node_id context_id seq flags'),
  ...all(int2, 'cluster_id'),
});
export const container = table('container', {
  ...all(int8Text, 'container_key'),
  ...some(int8Text, 'sandbox_key'),
  ...all(int4, 'node_id'),
  ...all(date, 'day'),
  ...some(int4, 'attempt'),
  ...all(int2, 'cluster_id'),
  ...all(text, 'container_id'),
  ...some(bytea, 'pod_uid'),
  ...some(text, 'pod_namespace pod_name container_name'),
});
export const relistChange = table('relist_change', {
  ...all(timestamptz, 'window_from window_to'),
  ...all(int8Text, 'container_key'),
  ...all(date, 'day'),
  ...all(int4, 'node_id context_id seq'),
  ...all(int2, 'cluster_id states pleg_events'),
});
export const relistMinute = table('relist_minute', {
  ...all(timestamptz, 'minute ended_at wall_at'),
  ...all(int8, 'span_us covered_us max_us'),
  ...some(timestamptz, 'kubelet_counted_from kubelet_counted_to slow_status_at hang_from hang_to'),
  ...some(float8, 'kubelet_list_p99_ms'),
  ...some(int8, 'kubelet_interval_us kubelet_relist_us kubelet_longest_list_us'),
  ...some(int8, 'kubelet_cpu_us kubelet_resident_bytes slow_status_us hang_waited_us'),
  ...all(date, 'day'),
  ...all(int4, 'node_id context_id seq relists errors sandboxes containers expected matched unobservable'),
  ...all(int4, 'exited_sandboxes exited_containers sandbox_list_bytes container_list_bytes'),
  ...some(int4, 'kubelet_relists kubelet_intervals kubelet_last_seen_age_ms kubelet_discarded'),
  ...some(int4, 'kubelet_stream_errors statuses_asked statuses_slow'),
  ...some(int4, 'kubelet_sandbox_lists kubelet_sandbox_list_errors kubelet_sandbox_list_us'),
  ...some(int4, 'kubelet_container_lists kubelet_container_list_errors kubelet_container_list_us'),
  ...some(int4, 'kubelet_sandbox_statuses kubelet_sandbox_status_errors kubelet_sandbox_status_us'),
  ...some(int4, 'kubelet_container_statuses kubelet_container_status_errors'),
  ...some(int4, 'kubelet_container_status_us pressure_us'),
  ...some(int4, 'cpu_some_us io_some_us io_full_us memory_some_us memory_full_us'),
  ...some(int4, 'hang_listed hang_asked hang_quick hang_unanswered'),
  ...some(text, 'hang_call hang_verdict'),
  ...all(int2, 'cluster_id'),
  ...all(int2Array, 'hist'),
  ...some(int2Array, 'kubelet_hist kubelet_start_hist kubelet_stop_hist'),
  ...all(bytea, 'lists'),
  ...some(int8Text, 'slow_status_key'),
  ...some(bool, 'slow_status_timed_out'),
});
export const relistHour = table('relist_hour', {
  ...all(timestamptz, 'hour'),
  ...all(int8Text, 'minute_bits'),
  ...all(int8, 'span_us listed_us covered_us max_us relists errors expected matched'),
  ...all(int8, 'unobservable'),
  ...some(int8, 'kubelet_relists kubelet_last_seen_age_ms kubelet_discarded kubelet_stream_errors'),
  ...some(int8, 'kubelet_intervals kubelet_interval_us kubelet_counted_us kubelet_relist_us'),
  ...some(int8, 'kubelet_longest_list_us kubelet_cpu_us kubelet_cpu_counted_us kubelet_resident_bytes'),
  ...some(int8, 'kubelet_sandbox_lists kubelet_sandbox_list_errors kubelet_sandbox_list_us'),
  ...some(int8, 'kubelet_container_lists kubelet_container_list_errors kubelet_container_list_us'),
  ...some(int8, 'kubelet_sandbox_statuses kubelet_sandbox_status_errors kubelet_sandbox_status_us'),
  ...some(int8, 'kubelet_container_statuses kubelet_container_status_errors'),
  ...some(int8, 'kubelet_container_status_us pressure_us'),
  ...some(int8, 'cpu_some_us io_some_us io_full_us memory_some_us memory_full_us'),
  ...some(float8, 'kubelet_list_p99_ms'),
  ...all(date, 'day'),
  ...all(int4, 'node_id context_id sandboxes containers'),
  ...all(int4, 'exited_sandboxes exited_containers sandbox_list_bytes container_list_bytes'),
  ...all(int2, 'cluster_id'),
  ...all(int4Array, 'hist'),
  ...some(int4Array, 'kubelet_hist kubelet_start_hist kubelet_stop_hist'),
});
export const finding = table('finding', {
  ...all(uuid, 'finding_id'),
  ...all(timestamptz, 'detected_at'),
  ...all(date, 'day'),
  ...all(int4, 'node_id context_id seq'),
  ...all(int2, 'cluster_id'),
  ...all(text, 'kind cause'),
  ...some(text, 'event_type container_id pod_uid pod_namespace pod_name container_name'),
  ...some(timestamptz, 'window_from window_to occurred_at'),
  ...some(int8, 'lateness_us delivery_us'),
  ...all(jsonb, 'proof'),
});
export const findingUpdate = table('finding_update', {
  ...all(uuid, 'finding_id'),
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(date, 'day'),
  ...all(text, 'what'),
  ...all(timestamptz, 'at'),
  ...some(float8, 'value_ms'),
  ...some(text, 'note'),
});
export const streamSession = table('stream_session', {
  ...all(int4, 'node_id session_no context_id seq'),
  ...all(uuid, 'epoch'),
  ...all(date, 'day'),
  ...all(int2, 'cluster_id'),
  ...all(timestamptz, 'opened_at'),
  ...some(timestamptz, 'armed_at closed_at'),
  ...some(text, 'code message'),
  ...all(int8, 'events replayed'),
});
export const modeChange = table('mode_change', {
  ...all(timestamptz, 'at not_before'),
  ...all(date, 'day'),
  ...all(int4, 'node_id context_id seq'),
  ...all(int2, 'cluster_id'),
  ...all(text, 'model from_mode to_mode reason'),
  ...all(jsonb, 'proof'),
});
export const nodeCondition = table('node_condition', {
  ...all(timestamptz, 'at'),
  ...all(date, 'day'),
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(text, 'status reason message'),
  ...some(int8, 'pleg_seen_ago_ms threshold_ms'),
});
export const migration = table('migration', {
  ...all(int4, 'number compatible_since'),
  ...all(text, 'hash'),
});
export const setting = table('setting', {
  ...all(text, 'key'),
  ...all(jsonb, 'value'),
});
export const maintenance = table('maintenance', {
  ...all(bool, 'only_row'),
  ...all(timestamptz, 'succeeded_at'),
});
export const cluster = table('cluster', {
  ...all(int2, 'cluster_id'),
  ...all(text, 'name'),
  ...some(text, 'uid'),
  ...some(timestamptz, 'signatures_required_since otlp_since'),
});
export const node = table('node', {
  ...all(int4, 'node_id incarnation context_no day_rows'),
  ...all(int2, 'cluster_id'),
  ...all(text, 'name'),
  ...some(text, 'node_uid'),
  ...some(timestamptz, 'first_seen last_seen last_unsigned_at claimed_at replaced_at pleg_condition_at'),
  ...some(int4, 'context_id'),
  ...all(bool, 'is_pleg_unhealthy'),
  ...some(date, 'rows_day'),
});
export const nodeKey = table('node_key', {
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(bytea, 'public_key'),
  ...all(timestamptz, 'enrolled_at expires_at'),
  ...all(text, 'pod_uid'),
  ...some(text, 'node_uid'),
});
export const nodeSigner = table('node_signer', {
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(bytea, 'public_key signature'),
  ...all(timestamptz, 'enrolled_at'),
});
export const context = table('context', {
  ...all(int4, 'context_id node_id context_no'),
  ...all(int2, 'cluster_id'),
  ...all(uuid, 'epoch'),
  ...all(text, 'runtime_name runtime_version kubelet_version agent_version'),
  ...all(int8, 'relist_period_us overdue_after_us missed_after_us late_after_us'),
});
export const epoch = table('epoch', {
  ...all(int4, 'node_id incarnation claimed_incarnation ack_generation last_seq last_batch_seq'),
  ...all(int2, 'cluster_id'),
  ...all(uuid, 'epoch'),
  ...some(uuid, 'prev'),
  ...all(text, 'node_uid boot_id'),
  ...all(int8, 'started_mono'),
  ...all(timestamptz, 'started_at last_seen first_stored_at last_stored_at last_new_at'),
  ...all(int4multirange, 'received lost'),
  ...some(timestamptz, 'last_batch_at last_record_at complete_through decided_through kubelet_seen_from'),
  ...some(timestamptz, 'kubelet_seen_to closed_at'),
  ...some(int8, 'delay_us clock_moved_us'),
  ...all(bool, 'is_attributed'),
  ...some(text, 'close_cause'),
  ...some(int4, 'head_seq head_from head_kept_seq'),
  ...some(int8, 'head_us'),
  ...some(bytea, 'head head_hints'),
  ...some(timestamptz, 'head_kept_at'),
});
export const signedHead = table('signed_head', {
  ...all(int4, 'node_id seq from_seq'),
  ...all(uuid, 'epoch'),
  ...all(int2, 'cluster_id'),
  ...all(timestamptz, 'stored_at'),
  ...all(int8, 'record_us'),
  ...all(bytea, 'head hints'),
});
export const readyChange = table('ready_change', {
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(timestamptz, 'at'),
  ...all(text, 'status reason'),
  ...all(textArray, 'causes'),
});
export const nodeInfo = table('node_info', {
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(timestamptz, 'at'),
  ...all(jsonb, 'labels'),
  ...all(text, 'os_image kernel_version'),
});
export const gap = table('gap', {
  ...all(uuid, 'gap_id epoch'),
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(text, 'scope cause'),
  ...all(timestamptz, 'from_at'),
  ...some(timestamptz, 'to_at filled_at'),
  ...some(int4, 'from_seq to_seq records'),
  ...some(bytea, 'record_bytes'),
});
export const nodeState = table('node_state', {
  ...all(int4, 'node_id incarnation seq'),
  ...all(int2, 'cluster_id'),
  ...all(text, 'stream_state stream_reason stream_error relist_reason model mode mode_reason'),
  ...all(timestamptz, 'stream_since mode_since'),
  ...all(bool, 'relist_healthy'),
  ...some(int8, 'kubelet_stream_errors'),
  ...some(text, 'kubelet_error kubelet_identity pods_api_state pods_api_reason'),
});
export const reportQueue = table('report_queue', {
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(int8, 'version'),
  ...all(timestamptz, 'due_at'),
  ...all(bool, 'urgent'),
});
export const leader = table('leader', {
  ...all(int2, 'cluster_id'),
  ...all(int4, 'term'),
  ...all(bool, 'is_contested'),
  ...all(timestamptz, 'began_at'),
});
export const ingest = table('ingest', {
  ...all(int2, 'cluster_id'),
  ...all(timestamptz, 'caught_up_since said_at'),
});
export const otlpOutbox = table('otlp_outbox', {
  ...all(int8, 'outbox_id'),
  ...all(timestamptz, 'added_at'),
  ...some(timestamptz, 'at ended_at'),
  ...all(int2, 'cluster_id'),
  ...all(int4, 'node_id'),
  ...all(date, 'day'),
  ...all(text, 'what'),
  ...some(int4, 'context_id seq'),
  ...some(uuid, 'finding_id'),
});
export const report = table('report', {
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...some(timestamptz, 'created_at written_at recheck_at node_deleted_at'),
  ...some(text, 'status_digest mode stream_state'),
});
export const reportCondition = table('report_condition', {
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(text, 'type status reason message'),
  ...all(timestamptz, 'since'),
  ...all(bool, 'is_unproven'),
});
export const statusLagWatch = table('status_lag_watch', {
  ...all(int4, 'node_id reads'),
  ...all(int2, 'cluster_id'),
  ...all(uuid, 'finding_id'),
  ...all(bool, 'pod_matched container_matched'),
  ...all(text, 'kind event_type container_id pod_uid pod_namespace pod_name container_name'),
  ...all(int8, 'attempt'),
  ...all(timestamptz, 'latest_at arrived_at expires_at due_at'),
  ...some(timestamptz, 'earliest_at stale_read_at'),
});
export const statusLag = table('status_lag', {
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(timestamptz, 'at'),
  ...all(text, 'event_type'),
  ...some(float8, 'lag_min_ms lag_max_ms'),
  ...some(timestamptz, 'happened_at'),
  ...some(text, 'lag_reason container_id pod_namespace pod_name container_name'),
});
export const rejected = table('rejected', {
  ...all(int2, 'cluster_id'),
  ...all(bytea, 'hash head'),
  ...all(timestamptz, 'at last_at'),
  ...all(int4, 'queue bytes'),
  ...all(text, 'reason error claimed_node'),
  ...all(int8, 'times'),
});
export const access = table('access', {
  ...all(name, 'role'),
  ...some(int2, 'cluster_id'),
  ...all(bool, 'can_write'),
});
