/*
 * The views that people read, then those that only other views and programs read. migrations/0004_views.sql says what each column means.
 * test/integration/schema.test.ts compares both, and looks for nulls where none is expected.
 */
import { getTableColumns, type View } from 'drizzle-orm';
import { type PgColumnBuilderBase, pgSchema } from 'drizzle-orm/pg-core';
import {
  all,
  bool,
  bytea,
  date,
  float8,
  int2,
  int4,
  int4Array,
  int8,
  int8Text,
  jsonb,
  some,
  text,
  textArray,
  timestamptz,
  uuid,
} from './columns.ts';

const existing =
  (schema: string) =>
  <C extends Record<string, PgColumnBuilderBase>>(name: string, columns: C) => {
    const { view, table } = pgSchema(schema);
    const declared = view(name, columns).existing();
    return withColumns(declared, getTableColumns(table(name, columns)));
  };

/** The view with columns of its own: those of a view are proxies, through which every value would be read, in three times as long. */
const withColumns = <V extends View>(view: V, columns: object): V =>
  Object.assign(Object.create(view), columns);

const view = existing('plegwatch');
const internal = existing('store');

const node = {
  ...all(text, 'cluster node stream_state mode model'),
  ...some(timestamptz, 'first_seen last_seen mode_since stream_since deleted_at'),
  ...some(text, 'runtime_name runtime_version kubelet_version agent_version node_uid stream_reason'),
  ...some(text, 'stream_error relist_reason mode_reason kubelet_error kubelet_identity os_image'),
  ...some(text, 'kernel_version consequence pods_api_state pods_api_reason'),
  ...some(bool, 'relist_healthy'),
  ...some(int8, 'kubelet_stream_errors'),
  ...some(jsonb, 'labels'),
};
export const nodes = view('nodes', node);
export const epochs = view('epochs', {
  ...all(text, 'cluster node'),
  ...all(uuid, 'epoch'),
  ...some(uuid, 'prev'),
  ...all(int4, 'incarnation acked_seq last_seq records_stored records_lost'),
  ...some(text, 'node_uid boot_id end_cause agent_version'),
  ...all(timestamptz, 'started_at last_seen decided_through'),
  ...some(timestamptz, 'ended_at complete_through'),
  ...some(float8, 'clock_ahead_ms clock_moved_ms'),
  ...all(bool, 'attributed'),
});
export const containerEvents = view('container_events', {
  ...all(text, 'cluster node event_type'),
  ...all(uuid, 'epoch'),
  ...all(int4, 'seq'),
  ...all(timestamptz, 'received_at created_at'),
  ...some(text, 'container_id sandbox_id pod_uid pod_namespace pod_name container_name exit_reason'),
  ...some(text, 'runtime_name runtime_version kubelet_version'),
  ...all(bool, 'is_sandbox replayed has_sandbox_status'),
  ...some(int4, 'attempt exit_code'),
  ...all(int8Text, 'created_ns'),
  ...all(date, 'day'),
});
export const relistChanges = view('relist_changes', {
  ...all(text, 'cluster node old_state new_state'),
  ...all(uuid, 'epoch'),
  ...all(int4, 'seq'),
  ...all(timestamptz, 'window_from window_to'),
  ...some(text, 'container_id pod_uid pod_namespace pod_name container_name sandbox_id'),
  ...all(bool, 'is_sandbox'),
  ...all(textArray, 'pleg_events'),
  ...all(date, 'day'),
});
const finding = {
  ...all(text, 'cluster node kind mode'),
  ...all(uuid, 'finding_id epoch'),
  ...some(text, 'event_type cause container_id pod_uid pod_namespace pod_name container_name runtime_name'),
  ...some(text, 'runtime_version kubelet_version lag_reason kubelet_knew kubelet_why mode_reason'),
  ...some(timestamptz, 'window_from window_to occurred_at resolved_at'),
  ...all(timestamptz, 'detected_at'),
  ...some(float8, 'lateness_ms delivery_ms lag_min_ms lag_max_ms kubelet_at_least_ms kubelet_at_most_ms'),
  ...some(float8, 'publishing_min_ms publishing_max_ms'),
  ...some(bool, 'lag_anomalous is_sandbox'),
  ...all(jsonb, 'proof'),
  ...all(int4, 'seq'),
};
export const findings = view('findings', finding);
export const streamSessions = view('stream_sessions', {
  ...all(text, 'cluster node'),
  ...all(timestamptz, 'opened_at'),
  ...some(timestamptz, 'armed_at closed_at'),
  ...some(text, 'code message runtime_name runtime_version kubelet_version'),
  ...all(int8, 'events replayed'),
  ...all(uuid, 'epoch'),
  ...all(int4, 'session_no'),
});
export const modeChanges = view('mode_changes', {
  ...all(text, 'cluster node model from_mode to_mode'),
  ...all(timestamptz, 'not_before at'),
  ...some(text, 'reason kubelet_version'),
  ...all(jsonb, 'proof'),
  ...all(uuid, 'epoch'),
  ...some(int4, 'seq'),
});
export const gaps = view('gaps', {
  ...all(text, 'cluster node scope cause'),
  ...all(timestamptz, 'from_at'),
  ...some(timestamptz, 'to_at filled_at'),
  ...all(uuid, 'epoch gap_id'),
  ...some(int4, 'from_seq to_seq records'),
  ...some(bytea, 'record_bytes'),
});
export const relistMinutes = view('relist_minutes', {
  ...all(text, 'cluster node'),
  ...all(timestamptz, 'minute'),
  ...all(int8, 'relists errors expected matched unobservable'),
  ...some(float8, 'p50_ms p90_ms p99_ms max_ms'),
  ...all(int4Array, 'hist'),
  ...all(int4, 'sandboxes containers exited_sandboxes exited_containers sandbox_list_bytes'),
  ...all(int4, 'container_list_bytes'),
  ...some(float8, 'cpu_some io_some io_full memory_some memory_full'),
  ...all(float8, 'covered_ms span_ms'),
  ...all(date, 'day'),
  ...some(text, 'runtime_name runtime_version kubelet_version'),
  ...all(timestamptz, 'from_at to_at'),
});
export const relists = view('relists', {
  ...all(text, 'cluster node'),
  ...all(timestamptz, 'sandboxes_from sandboxes_to containers_from containers_to'),
  ...all(bool, 'sandboxes_whole containers_whole failed'),
  ...all(uuid, 'epoch'),
  ...all(int4, 'seq'),
  ...all(date, 'day'),
});
export const relistHours = view('relist_hours', {
  ...all(text, 'cluster node'),
  ...all(timestamptz, 'hour'),
  ...all(int4, 'minutes sandboxes containers exited_sandboxes exited_containers'),
  ...all(int4, 'sandbox_list_bytes container_list_bytes'),
  ...some(float8, 'cpu_some io_some io_full memory_some memory_full'),
  ...all(int8, 'relists errors expected matched unobservable'),
  ...some(float8, 'p50_ms p90_ms p99_ms max_ms'),
  ...all(int4Array, 'hist'),
  ...all(float8, 'covered_ms span_ms'),
  ...all(date, 'day'),
  ...some(text, 'runtime_name runtime_version kubelet_version'),
  ...all(uuid, 'epoch'),
});
export const statusChecks = view('status_checks', {
  ...all(text, 'cluster node'),
  ...all(timestamptz, 'minute'),
  ...all(int4, 'asked seq'),
  ...some(int4, 'slow'),
  ...some(timestamptz, 'at'),
  ...some(text, 'pod_uid pod_namespace pod_name container_name container_id runtime_name runtime_version'),
  ...some(text, 'kubelet_version'),
  ...all(bool, 'is_sandbox'),
  ...some(float8, 'status_ms longest_relist_ms'),
  ...some(bool, 'timed_out'),
  ...all(uuid, 'epoch'),
  ...all(date, 'day'),
  ...some(text, 'list_call verdict'),
});
const hang = {
  ...all(text, 'list_call verdict why'),
  ...all(timestamptz, 'from_at'),
  ...some(timestamptz, 'to_at'),
  ...all(float8, 'waited_ms'),
  ...some(text, 'pod_uid pod_namespace pod_name container_name container_id'),
  ...all(int4, 'listed asked quick unanswered seq'),
  ...all(uuid, 'epoch'),
  ...all(date, 'day'),
};
export const listHangs = view('list_hangs', {
  ...hang,
  ...all(text, 'cluster node'),
  ...some(text, 'runtime_name runtime_version kubelet_version'),
});
export const kubeletMinutes = view('kubelet_minutes', {
  ...all(text, 'cluster node'),
  ...all(timestamptz, 'minute'),
  ...all(int8, 'relists'),
  ...some(float8, 'relist_p99_ms list_p99_ms relist_period_ms relist_ms longest_list_ms'),
  ...some(float8, 'cpu_share'),
  ...some(float8, 'sandbox_list_ms container_list_ms sandbox_status_ms container_status_ms'),
  ...some(int8, 'sandbox_lists container_lists sandbox_statuses container_statuses'),
  ...some(int8, 'sandbox_list_errors container_list_errors sandbox_status_errors'),
  ...some(int8, 'container_status_errors'),
  ...some(int4Array, 'hist'),
  ...some(int4, 'last_seen_age_ms stream_errors'),
  ...some(int8, 'discarded resident_bytes'),
  ...all(date, 'day'),
  ...some(timestamptz, 'counted_from counted_to'),
  ...some(text, 'runtime_name runtime_version kubelet_version'),
});
export const kubeletHours = view('kubelet_hours', {
  ...all(text, 'cluster node'),
  ...all(timestamptz, 'hour'),
  ...all(int8, 'relists'),
  ...some(float8, 'relist_p99_ms list_p99_ms relist_period_ms counted_ms relist_ms'),
  ...some(float8, 'longest_list_ms cpu_share'),
  ...some(float8, 'sandbox_list_ms container_list_ms sandbox_status_ms container_status_ms'),
  ...some(int8, 'sandbox_lists container_lists sandbox_statuses container_statuses'),
  ...some(int8, 'sandbox_list_errors container_list_errors sandbox_status_errors'),
  ...some(int8, 'container_status_errors'),
  ...some(int4Array, 'hist'),
  ...some(int8, 'last_seen_age_ms discarded stream_errors resident_bytes'),
  ...all(date, 'day'),
  ...some(text, 'runtime_name runtime_version kubelet_version'),
  ...all(uuid, 'epoch'),
});
const kubeletLag = {
  ...all(text, 'cluster node event_type mode'),
  ...all(int8, 'transitions'),
  ...some(int4, 'p50_ms p99_ms'),
  ...all(int4Array, 'hist'),
  ...some(text, 'runtime_name runtime_version kubelet_version'),
  ...all(uuid, 'epoch'),
  ...all(date, 'day'),
};
export const kubeletLagMinutes = view('kubelet_lag_minutes', {
  ...kubeletLag,
  ...all(timestamptz, 'minute'),
  ...all(int4, 'seq'),
});
export const kubeletLagHours = view('kubelet_lag_hours', { ...kubeletLag, ...all(timestamptz, 'hour') });
export const nodeConditions = view('node_conditions', {
  ...all(text, 'cluster node status reason message'),
  ...all(timestamptz, 'at'),
  ...some(int8, 'pleg_seen_ago_ms threshold_ms'),
});
export const notReadyIntervals = view('not_ready_intervals', {
  ...all(text, 'cluster node status'),
  ...all(timestamptz, 'from_at'),
  ...some(timestamptz, 'to_at'),
  ...all(float8, 'minutes'),
  ...some(text, 'reason'),
  ...all(textArray, 'causes'),
});
export const nodeInfo = view('node_info', {
  ...all(text, 'cluster node'),
  ...all(timestamptz, 'from_at'),
  ...some(timestamptz, 'to_at'),
  ...some(text, 'os_image kernel_version'),
  ...all(jsonb, 'labels'),
});
export const statusLags = view('status_lags', {
  ...all(text, 'cluster node event_type kind'),
  ...all(timestamptz, 'at'),
  ...some(float8, 'lag_min_ms lag_max_ms'),
  ...some(timestamptz, 'happened_at'),
  ...some(text, 'lag_reason pod_namespace pod_name container_name container_id'),
});
export const rejected = view('rejected', {
  ...all(text, 'cluster reason claimed_node error'),
  ...some(text, 'node'),
  ...all(timestamptz, 'at last_at'),
  ...all(int4, 'queue bytes'),
  ...all(int8, 'times'),
  ...all(bytea, 'head'),
});
export const shortLives = view('short_lives', {
  ...all(text, 'cluster node mode'),
  ...all(uuid, 'finding_id'),
  ...all(timestamptz, 'detected_at'),
  ...some(text, 'cause container_id pod_uid pod_namespace pod_name container_name'),
  ...some(float8, 'life_min_ms life_max_ms relist_period_ms chance_min chance_max'),
  ...some(timestamptz, 'list_before list_after'),
});
export const findingEvidence = view('finding_evidence', {
  ...all(text, 'cluster node kind fact'),
  ...all(uuid, 'finding_id'),
  ...some(text, 'event_type container_id record'),
  ...all(int4, 'line'),
  ...some(timestamptz, 'at until'),
});
const verdict = {
  ...all(text, 'kind verdict why kubelet_lists our_lists'),
  ...all(timestamptz, 'from_at'),
  ...some(timestamptz, 'to_at'),
  ...some(int8, 'kubelet_list_calls kubelet_list_errors our_relists our_errors pleg_seen_ago_ms'),
  ...some(int8, 'threshold_ms'),
  ...some(float8, 'kubelet_list_ms kubelet_longest_list_ms kubelet_relist_ms kubelet_status_ms'),
  ...some(float8, 'our_longest_relist_ms our_period_ms our_waiting_ms'),
  ...some(text, 'message list_call pod_uid pod_namespace pod_name container_name container_id'),
  ...some(int4, 'statuses_asked statuses_quick statuses_unanswered'),
  ...some(float8, 'cpu_some io_some io_full memory_some memory_full'),
};
export const plegVerdicts = view('pleg_verdicts', {
  ...verdict,
  ...all(text, 'cluster node'),
  ...some(timestamptz, 'at'),
  ...some(date, 'day'),
});
export const fallbackIntervals = view('fallback_intervals', {
  ...all(text, 'cluster node model mode'),
  ...all(timestamptz, 'not_before from_at'),
  ...some(timestamptz, 'to_at'),
  ...some(float8, 'hours'),
  ...some(text, 'reason next_mode our_stream_ended_with message runtime_name runtime_version'),
  ...some(text, 'kubelet_version consequence'),
  ...all(int8, 'findings'),
});
export const readiness = view('readiness', {
  ...all(text, 'cluster node verdict reason stream_state mode'),
  ...some(text, 'runtime_name runtime_version kubelet_version os_image kernel_version'),
  ...some(float8, 'observed_hours coverage decided per_million low_per_million high_per_million'),
  ...some(int8, 'missed fallbacks'),
  ...some(textArray, 'blind_spots'),
  ...some(jsonb, 'labels'),
});

export const modeTransition = internal('mode_transition', {
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...some(uuid, 'epoch'),
  ...some(int4, 'context_id seq'),
  ...all(timestamptz, 'at not_before'),
  ...all(text, 'model from_mode to_mode reason'),
  ...all(jsonb, 'proof'),
});
export const modePeriod = internal('mode_period', {
  ...all(int4, 'node_id'),
  ...all(text, 'mode'),
  ...all(timestamptz, 'from_at to_at'),
});
export const nodeDetail = internal('node_detail', {
  ...node,
  ...all(int4, 'node_id'),
  ...some(text, 'pool'),
});
export const findingDetail = internal('finding_detail', {
  ...finding,
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(date, 'day'),
  ...all(int4, 'context_id'),
});
export const statusLagDetail = internal('status_lag_detail', {
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(timestamptz, 'at'),
  ...all(text, 'event_type'),
  ...some(float8, 'lag_min_ms lag_max_ms'),
  ...some(timestamptz, 'happened_at'),
  ...some(text, 'lag_reason pod_namespace pod_name container_name container_id'),
  ...all(bool, 'is_read'),
});
export const epochSpan = internal('epoch_span', {
  ...all(int4, 'node_id last_seq'),
  ...all(int2, 'cluster_id'),
  ...all(uuid, 'epoch'),
  ...all(timestamptz, 'started_at decided_through'),
  ...some(timestamptz, 'complete_through next_started_at ended_at'),
  ...all(bool, 'declared'),
  ...all(text, 'end_cause'),
});
export const unwrittenEnd = internal('unwritten_end', {
  ...all(int4, 'node_id'),
  ...all(uuid, 'epoch'),
  ...all(text, 'end_cause'),
  ...all(timestamptz, 'from_at to_at'),
  ...all(bool, 'has_kubelet is_covered'),
});
export const listCall = internal('list_call', {
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(uuid, 'epoch'),
  ...all(date, 'day'),
  ...all(timestamptz, 'minute ended_at from_at to_at'),
});
export const listHang = internal('list_hang', {
  ...hang,
  ...all(int4, 'node_id context_id'),
  ...all(int2, 'cluster_id'),
});
export const plegVerdict = internal('pleg_verdict', {
  ...verdict,
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(timestamptz, 'at'),
  ...all(date, 'day'),
});
export const nodeInfoPeriod = internal('node_info_period', {
  ...all(int4, 'node_id'),
  ...all(int2, 'cluster_id'),
  ...all(jsonb, 'labels'),
  ...some(text, 'os_image kernel_version'),
  ...all(timestamptz, 'from_at'),
  ...some(timestamptz, 'to_at'),
});
