/*
 * Stored form: what Postgres keeps of a record, as a function of the record alone. Ingest writes it, and signatures prove it: the agent computes it from its
 * records, `plegwatch audit --signatures` from the rows.
 *
 *   names       those of the columns; times are microseconds since the epoch began, except `wall_at`: since 1970
 *   canonical   as JSON without spaces, the keys in the order of their UTF-16 code units, unpaired surrogates as U+FFFD
 *
 * A type whose records share a row, or have no row of their own, has no stored form: nothing of Postgres could make it again.
 */
import { containerKey } from './containerKey.ts';
import { plegEventMask } from './plegEventMask.ts';
import {
  type CallTotals,
  type ContainerExit,
  type EvidenceRecord,
  EXIT_REASONS,
  type KubeletCalls,
  LIST_FIELDS,
  type NodePressure,
  PLEG_STATES,
  type RecordOf,
} from './record.ts';

type Column = number | string | boolean | null | readonly number[] | Readonly<Record<string, unknown>>;
export type StoredForm = Readonly<Record<string, Column>>;

/** How long rows are kept that a type is stored in: `event_retention_days` or `finding_retention_days`. */
export const RETENTIONS = ['events', 'findings'] as const;
export type Retention = (typeof RETENTIONS)[number];

export type StoredType = 'container_event' | 'relist_change' | 'relist_minute' | 'finding' | 'mode_change';
/** The types that have a stored form. */
export const RETENTION_OF: Readonly<Record<StoredType, Retention>> = {
  container_event: 'events',
  relist_change: 'events',
  relist_minute: 'events',
  finding: 'findings',
  mode_change: 'findings',
};

/** Null for a type without one. `keyOf`: {@link containerKey}, or one that remembers. */
export function storedForm(
  record: EvidenceRecord,
  keyOf: typeof containerKey = containerKey,
): StoredForm | null {
  switch (record.type) {
    case 'container_event':
      return eventForm(record, keyOf);
    case 'relist_change':
      return changeForm(record, keyOf);
    case 'relist_minute':
      return minuteForm(record, keyOf);
    case 'finding':
      return findingForm(record);
    case 'mode_change':
      return modeChangeForm(record);
    default:
      return null;
  }
}

/** JSON that everybody makes of the same value. */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.toWellFormed());
  if (typeof value !== 'object' || value === null || isCanonical(value)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, each]) => `${canonicalJson(key)}:${canonicalJson(each)}`).join(',')}}`;
}

/** Whether JSON.stringify makes the same of an object: nearly all forms are flat, and have their fields in order. */
function isCanonical(value: object): boolean {
  if (Array.isArray(value)) return false;
  let before = '';
  for (const [key, each] of Object.entries(value)) {
    if (key < before || (typeof each === 'object' && each !== null)) return false;
    if (!key.isWellFormed() || (typeof each === 'string' && !each.isWellFormed())) return false;
    before = key;
  }
  return true;
}

// The bits of store.container_event.flags and store.relist_change.states.
const REPLAYED = 256;
const HAS_SANDBOX_STATUS = 512;
const EVENT_OF_SANDBOX = 1024;
const HAS_EXIT_CODE = 2048;
const EXIT_REASON_SHIFT = 12;
const EXIT_CODE_SHIFT = 16;
const CHANGE_OF_SANDBOX = 256;

export function eventFlags(record: RecordOf<'container_event'>): number {
  const { eventType, replayed, hasSandboxStatus, isSandbox, exit } = record;
  return (
    eventType |
    (replayed ? REPLAYED : 0) |
    (hasSandboxStatus ? HAS_SANDBOX_STATUS : 0) |
    (isSandbox ? EVENT_OF_SANDBOX : 0) |
    (exit === undefined ? 0 : exitFlags(exit))
  );
}

const exitFlags = ({ code, reason }: ContainerExit): number =>
  ((EXIT_REASONS.indexOf(reason) + 1) << EXIT_REASON_SHIFT) |
  (code === null ? 0 : HAS_EXIT_CODE | (code << EXIT_CODE_SHIFT));

export const changeStates = ({ oldState, newState, isSandbox }: RecordOf<'relist_change'>): number =>
  PLEG_STATES.indexOf(oldState) | (PLEG_STATES.indexOf(newState) << 4) | (isSandbox ? CHANGE_OF_SANDBOX : 0);

const eventForm = (record: RecordOf<'container_event'>, keyOf: typeof containerKey): StoredForm => ({
  container_key: keyOf(record.containerId),
  created_ns: `${BigInt(record.createdNs)}`,
  flags: eventFlags(record),
  received_at: record.t,
});

const changeForm = (record: RecordOf<'relist_change'>, keyOf: typeof containerKey): StoredForm => ({
  container_key: keyOf(record.containerId),
  pleg_events: plegEventMask(record.oldState, record.newState),
  states: changeStates(record),
  window_from: record.window.from,
  window_to: record.window.to,
});

const findingForm = (record: RecordOf<'finding'>): StoredForm => ({
  cause: record.cause,
  container_id: record.containerId,
  delivery_us: record.delivery,
  detected_at: record.t,
  event_type: record.eventType,
  finding_id: record.findingId.toLowerCase(),
  kind: record.kind,
  lateness_us: record.lateness,
  occurred_at: record.occurred,
  proof: record.proof,
  window_from: record.window?.from ?? null,
  window_to: record.window?.to ?? null,
});

const modeChangeForm = (record: RecordOf<'mode_change'>): StoredForm => ({
  at: record.t,
  from_mode: record.from,
  model: record.model,
  not_before: record.notBefore,
  proof: record.proof,
  reason: record.reason,
  to_mode: record.to,
});

const INT2_MAX = 32_767;
const INT4_MAX = 2_147_483_647;
const int4 = (n: number): number => Math.min(n, INT4_MAX);
const someInt4 = (n: number | null): number | null => (n === null ? null : int4(n));

/** Empty buckets at the end count for nothing. */
const histogram = (counts: readonly number[]): number[] =>
  counts.slice(0, counts.findLastIndex((n) => n > 0) + 1).map((n) => Math.min(n, INT2_MAX));
const lagHistogram = (counts: readonly number[] = []): number[] | null =>
  counts.length === 0 ? null : histogram(counts);

/** The share of the time that a calm node has, which takes no room. */
const MIN_PRESSURE = 0.01;

export const minuteForm = (record: RecordOf<'relist_minute'>, keyOf: typeof containerKey): MinuteForm => ({
  ended_at: record.t + record.span,
  wall_at: record.wall,
  span_us: record.span,
  covered_us: record.covered,
  max_us: record.max,
  relists: record.relists,
  errors: record.errors,
  hist: histogram(record.hist),
  sandboxes: record.sandboxes,
  containers: record.containers,
  exited_sandboxes: record.exitedSandboxes,
  exited_containers: record.exitedContainers,
  sandbox_list_bytes: record.sandboxListBytes,
  container_list_bytes: record.containerListBytes,
  expected: record.expected,
  matched: record.matched,
  unobservable: record.unobservable,
  lists: record.lists.slice(0, record.lists.length - (record.lists.length % LIST_FIELDS.length)),
  ...kubeletColumns(record),
  ...statusColumns(record, keyOf),
  ...hangColumns(record),
  ...pressureColumns(record),
  kubelet_start_hist: lagHistogram(record.kubeletLag?.starts),
  kubelet_stop_hist: lagHistogram(record.kubeletLag?.stops),
});

/** Null where the kubelet reported nothing. */
function kubeletColumns({ kubelet }: RecordOf<'relist_minute'>) {
  const age = kubelet?.lastSeenAge ?? null;
  const p99 = kubelet?.listP99 ?? null;
  return {
    kubelet_relists: kubelet === undefined ? null : int4(kubelet.relists),
    kubelet_hist: kubelet === undefined ? null : histogram(kubelet.hist),
    kubelet_last_seen_age_ms: age === null ? null : int4(Math.floor(age / 1000)),
    kubelet_discarded: someInt4(kubelet?.discarded ?? null),
    kubelet_stream_errors: someInt4(kubelet?.streamErrors ?? null),
    kubelet_list_p99_ms: p99 === null ? null : p99 / 1000,
    kubelet_intervals: kubelet === undefined ? null : int4(kubelet.intervals),
    kubelet_interval_us: kubelet?.intervalSum ?? null,
    kubelet_resident_bytes: kubelet?.resident ?? null,
    ...callColumns(kubelet?.calls),
  };
}

/** Null where the kubelet's calls were not counted; errors also where there were none. */
function callColumns(calls: KubeletCalls | undefined) {
  const count = (of: CallTotals | undefined) => (of === undefined ? null : int4(of.calls));
  const errors = (of: CallTotals | undefined) => (of === undefined ? null : int4(of.errors) || null);
  const sum = (of: CallTotals | undefined) => (of === undefined ? null : int4(of.sum));
  return {
    kubelet_counted_from: calls?.from ?? null,
    kubelet_counted_to: calls?.to ?? null,
    kubelet_relist_us: calls?.relistSum ?? null,
    kubelet_longest_list_us: calls?.longestList ?? null,
    kubelet_cpu_us: calls?.cpu ?? null,
    kubelet_sandbox_lists: count(calls?.sandboxLists),
    kubelet_sandbox_list_errors: errors(calls?.sandboxLists),
    kubelet_sandbox_list_us: sum(calls?.sandboxLists),
    kubelet_container_lists: count(calls?.containerLists),
    kubelet_container_list_errors: errors(calls?.containerLists),
    kubelet_container_list_us: sum(calls?.containerLists),
    kubelet_sandbox_statuses: count(calls?.sandboxStatuses),
    kubelet_sandbox_status_errors: errors(calls?.sandboxStatuses),
    kubelet_sandbox_status_us: sum(calls?.sandboxStatuses),
    kubelet_container_statuses: count(calls?.containerStatuses),
    kubelet_container_status_errors: errors(calls?.containerStatuses),
    kubelet_container_status_us: sum(calls?.containerStatuses),
  };
}

/** Null where no status was asked for; from the third on, where none was slow. */
function statusColumns({ statuses }: RecordOf<'relist_minute'>, keyOf: typeof containerKey) {
  const slowest = statuses?.slowest ?? null;
  return {
    statuses_asked: statuses?.asked ?? null,
    statuses_slow: statuses?.slow ?? null,
    slow_status_key: slowest === null ? null : keyOf(slowest.containerId),
    slow_status_at: slowest?.at ?? null,
    slow_status_us: slowest?.took ?? null,
    slow_status_timed_out: slowest?.timedOut ?? null,
  };
}

/** Null where no list hung. */
function hangColumns({ statuses }: RecordOf<'relist_minute'>) {
  const hang = statuses?.hang;
  return {
    hang_from: hang?.from ?? null,
    hang_to: hang?.to ?? null,
    hang_waited_us: hang?.waited ?? null,
    hang_listed: hang?.listed ?? null,
    hang_asked: hang?.asked ?? null,
    hang_quick: hang?.quick ?? null,
    hang_unanswered: hang?.unanswered ?? null,
    hang_call: hang?.call ?? null,
    hang_verdict: hang?.verdict ?? null,
  };
}

/** Null where the pressure was not measured; from the second on, where it is too little to say. */
function pressureColumns({ pressure }: RecordOf<'relist_minute'>) {
  const waited = (what: Exclude<keyof NodePressure, 'span'>) =>
    pressure !== undefined && pressure[what] > MIN_PRESSURE * pressure.span ? pressure[what] : null;
  return {
    pressure_us: pressure?.span ?? null,
    cpu_some_us: waited('cpuSome'),
    io_some_us: waited('ioSome'),
    io_full_us: waited('ioFull'),
    memory_some_us: waited('memorySome'),
    memory_full_us: waited('memoryFull'),
  };
}

/** The columns of store.relist_minute that a record fills. */
export interface MinuteForm
  extends ReturnType<typeof kubeletColumns>,
    ReturnType<typeof statusColumns>,
    ReturnType<typeof hangColumns>,
    ReturnType<typeof pressureColumns>,
    StoredForm {
  readonly ended_at: number;
  readonly wall_at: number;
  readonly span_us: number;
  readonly covered_us: number;
  readonly max_us: number;
  readonly relists: number;
  readonly errors: number;
  readonly hist: readonly number[];
  readonly sandboxes: number;
  readonly containers: number;
  readonly exited_sandboxes: number;
  readonly exited_containers: number;
  readonly sandbox_list_bytes: number;
  readonly container_list_bytes: number;
  readonly expected: number;
  readonly matched: number;
  readonly unobservable: number;
  readonly lists: readonly number[];
  readonly kubelet_start_hist: readonly number[] | null;
  readonly kubelet_stop_hist: readonly number[] | null;
}
