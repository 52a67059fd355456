/*
 * The figures of a kubelet about its PLEG, from its own metrics (kubelet pkg/kubelet/metrics/metrics.go). A figure that is absent, malformed or given
 * twice with different values is undefined: nothing is made up. Below is by how much its counters grow between two scrapes.
 *
 * Only an answer with a `kubelet_pleg_` family is a kubelet's. An API server lists the kubelet's feature gates too, with their
 * defaults, which prove nothing about this kubelet.
 */
import { cleanText, MAX_NAME_LENGTH } from '../../../protocol/text.ts';
import { type Sample, samplesOf } from './exposition.ts';

export interface Histogram {
  readonly count: number;
  readonly sum: number;
  /** Cumulative, in rising order of the upper bounds; the last bound is infinite. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
}

/** The kubelet's calls to the runtime that concern PLEG. */
const OPERATIONS = [
  'list_podsandbox',
  'list_containers',
  'podsandbox_status',
  'container_status',
  'get_container_events',
] as const;
type Operation = (typeof OPERATIONS)[number];

interface OperationFigures {
  readonly total: number | undefined;
  readonly errors: number | undefined;
  /** In seconds. */
  readonly duration: Histogram | undefined;
}

export interface KubeletFigures {
  /** The feature gate EventedPLEG. */
  readonly eventedPleg: boolean | undefined;
  /** How often the kubelet's own event stream ended and was opened since the kubelet started. */
  readonly connectionErrors: number | undefined;
  readonly connectionSuccesses: number | undefined;
  /** In seconds. */
  readonly relistDuration: Histogram | undefined;
  readonly relistInterval: Histogram | undefined;
  /** Unix time in seconds; undefined before the first relist, when the kubelet reports 0. */
  readonly lastSeen: number | undefined;
  readonly discardedEvents: number | undefined;
  readonly operations: Readonly<Record<Operation, OperationFigures>>;
  /** Unix time in seconds; computed from the boot time at each scrape, so a step of the wall clock moves it. */
  readonly processStart: number | undefined;
  /** Processor time since the kubelet started, in seconds. */
  readonly cpu: number | undefined;
  readonly residentBytes: number | undefined;
  /** Such as `v1.36.2`. */
  readonly version: string | undefined;
}

type Scalar = keyof Pick<
  KubeletFigures,
  | 'connectionErrors'
  | 'connectionSuccesses'
  | 'lastSeen'
  | 'discardedEvents'
  | 'processStart'
  | 'cpu'
  | 'residentBytes'
>;

const SCALARS: Readonly<Record<string, Scalar>> = {
  kubelet_evented_pleg_connection_error_count: 'connectionErrors',
  kubelet_evented_pleg_connection_success_count: 'connectionSuccesses',
  kubelet_pleg_last_seen_seconds: 'lastSeen',
  kubelet_pleg_discard_events: 'discardedEvents',
  process_start_time_seconds: 'processStart',
  process_cpu_seconds: 'cpu',
  process_resident_memory_bytes: 'residentBytes',
};
const GATE = 'kubernetes_feature_enabled';
const BUILD = 'kubernetes_build_info';
const RELIST_DURATION = 'kubelet_pleg_relist_duration_seconds';
const RELIST_INTERVAL = 'kubelet_pleg_relist_interval_seconds';
const CALLS = 'kubelet_runtime_operations';
const CALL_ERRORS = 'kubelet_runtime_operations_errors';
const CALL_DURATION = 'kubelet_runtime_operations_duration_seconds';
const HISTOGRAMS = [RELIST_DURATION, RELIST_INTERVAL, CALL_DURATION];
const KUBELET_PREFIX = 'kubelet_pleg_';
/** The kubelet has 11 and 14. */
const MAX_BUCKETS = 100;

/** Counters with and without the suffix of OpenMetrics. */
const WANTED: ReadonlySet<string> = new Set([
  ...Object.keys(SCALARS).flatMap((name) => [name, `${name}_total`]),
  ...[CALLS, CALL_ERRORS].flatMap((name) => [name, `${name}_total`]),
  ...HISTOGRAMS.flatMap((name) => ['_bucket', '_sum', '_count'].map((part) => name + part)),
  GATE,
  BUILD,
]);

/** Reads a kubelet's answer; null if it is not from a kubelet. Never throws. */
export function readMetrics(text: string): KubeletFigures | null {
  const draft = new MetricsDraft();
  for (const sample of samplesOf(text, (name) => WANTED.has(name))) draft.take(sample);
  return draft.isFromKubelet ? draft.figures() : null;
}

/** NaN marks a value that is malformed or contradictory, and stays. */
class MetricsDraft {
  isFromKubelet = false;
  readonly #values = new Map<string, number>();
  readonly #buckets = new Map<string, Map<number, number>>();
  readonly #gate = new Set<boolean | undefined>();
  #version: string | undefined;

  take(sample: Sample): void {
    const { name, labels } = sample;
    if (name.startsWith(KUBELET_PREFIX) && sample.value !== null) this.isFromKubelet = true;
    if (name === GATE) this.#takeGate(sample);
    else if (name === BUILD) this.#version ??= labels.get('git_version');
    else if (name.endsWith('_bucket')) this.#takeBucket(sample);
    else this.#set(keyOf(name.replace(/_total$/, ''), labels), sample.value ?? Number.NaN);
  }

  figures(): KubeletFigures {
    const version = cleanText(this.#version ?? '', MAX_NAME_LENGTH);
    return {
      eventedPleg: this.#gateValue(),
      connectionErrors: this.#scalar('kubelet_evented_pleg_connection_error_count'),
      connectionSuccesses: this.#scalar('kubelet_evented_pleg_connection_success_count'),
      relistDuration: this.#histogram(RELIST_DURATION),
      relistInterval: this.#histogram(RELIST_INTERVAL),
      lastSeen: this.#scalar('kubelet_pleg_last_seen_seconds') || undefined,
      discardedEvents: this.#scalar('kubelet_pleg_discard_events'),
      operations: {
        list_podsandbox: this.#operation('list_podsandbox'),
        list_containers: this.#operation('list_containers'),
        podsandbox_status: this.#operation('podsandbox_status'),
        container_status: this.#operation('container_status'),
        get_container_events: this.#operation('get_container_events'),
      },
      processStart: this.#scalar('process_start_time_seconds'),
      cpu: this.#scalar('process_cpu_seconds'),
      residentBytes: this.#scalar('process_resident_memory_bytes'),
      version: version === '' ? undefined : version,
    };
  }

  #takeGate({ labels, value }: Sample): void {
    const name = labels.get('name');
    // A malformed line without labels may be the one.
    if (name !== undefined && name !== 'EventedPLEG') return;
    const state = name === undefined ? null : value;
    this.#gate.add(state === 1 ? true : state === 0 ? false : undefined);
  }

  /** On if any line says so; off only if every line does. */
  #gateValue(): boolean | undefined {
    if (this.#gate.has(true)) return true;
    return this.#gate.size === 1 && this.#gate.has(false) ? false : undefined;
  }

  #takeBucket({ name, labels, value }: Sample): void {
    const key = keyOf(name.slice(0, -'_bucket'.length), labels);
    const buckets = this.#buckets.get(key) ?? new Map<number, number>();
    this.#buckets.set(key, buckets);
    const text = labels.get('le') ?? '';
    const le = text === '+Inf' ? Number.POSITIVE_INFINITY : Number(text === '' ? Number.NaN : text);
    const known = buckets.get(le);
    if (buckets.size < MAX_BUCKETS)
      buckets.set(le, known === undefined || known === value ? (value ?? Number.NaN) : Number.NaN);
    else buckets.set(Number.NaN, Number.NaN);
  }

  #set(key: string, value: number): void {
    const known = this.#values.get(key);
    this.#values.set(key, known === undefined || known === value ? value : Number.NaN);
  }

  #scalar(key: string): number | undefined {
    const value = this.#values.get(key);
    return value !== undefined && Number.isFinite(value) && value >= 0 ? value : undefined;
  }

  #operation(operation: Operation): OperationFigures {
    return {
      total: this.#scalar(`${CALLS} ${operation}`),
      errors: this.#scalar(`${CALL_ERRORS} ${operation}`),
      duration: this.#histogram(CALL_DURATION, operation),
    };
  }

  #histogram(name: string, operation = ''): Histogram | undefined {
    const count = this.#scalar(`${name}_count ${operation}`.trim());
    const sum = this.#scalar(`${name}_sum ${operation}`.trim());
    const buckets = [...(this.#buckets.get(`${name} ${operation}`.trim()) ?? [])]
      .map(([le, below]) => ({ le, count: below }))
      .sort((a, b) => a.le - b.le);
    if (count === undefined || sum === undefined || !isComplete(buckets, count)) return undefined;
    return { count, sum, buckets };
  }
}

/** Call metrics are keyed by their operation; no other label matters here. */
function keyOf(name: string, labels: ReadonlyMap<string, string>): string {
  const operation = name.startsWith(CALLS) ? (labels.get('operation_type') ?? '?') : '';
  return `${name} ${operation}`.trim();
}

/** Whether a histogram is complete: rising bounds, counts that never fall, the last bound infinite and its count the total. */
function isComplete(
  buckets: readonly { readonly le: number; readonly count: number }[],
  total: number,
): boolean {
  const last = buckets.at(-1);
  if (last?.le !== Number.POSITIVE_INFINITY || last.count !== total) return false;
  return buckets.every(({ le, count }, i) => {
    const before = buckets[i - 1];
    return count >= 0 && (before === undefined || (le > before.le && count >= before.count));
  });
}

/** A count that a record can carry, whatever the kubelet reports. */
export const toCount = (value: number): number =>
  Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(value)));

export const toMicros = (seconds: number): number => toCount(seconds * 1e6);

/** A counter that was absent before counts from 0. */
export const increase = (before = 0, now = 0): number => Math.max(0, now - before);

/** The increase of each bucket, by its upper bound. */
export function bucketIncreases(
  before: Histogram | undefined,
  now: Histogram | undefined,
): [number, number][] {
  const countBefore = new Map(before?.buckets.map(({ le, count }) => [le, count]));
  let below = 0;
  return (now?.buckets ?? []).map(({ le, count }) => {
    const upTo = increase(countBefore.get(le), count);
    const inside = Math.max(0, upTo - below);
    below = upTo;
    return [le, inside];
  });
}
