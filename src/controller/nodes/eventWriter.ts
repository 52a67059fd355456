/*
 * Kubernetes Events on Nodes: a kubelet fell back, or the first event of a day was missed; and, on request, on pods: the end of a container was not
 * announced, or the status that the kubelet keeps was late to show it. Only the leader writes them.
 *
 *   occurrence   read from the store while it is at most ten minutes old: backfilled evidence makes no Event
 *   series       another occurrence of the same kind on the same object within half an hour counts in the Event of the first
 *   limits       at most 6 writes an hour for a Node and 120 for all, and 30 for the pods of a Node and 600 for all; those above are counted and dropped
 *
 * An Event is named after its object, its reason and its first occurrence, and applied: a controller that restarts writes the same one again.
 */
import { createHash } from 'node:crypto';
import type { KubeClient } from '../../kube/client.ts';
import { KubeStatusError, retryAfterMs } from '../../kube/kubeErrors.ts';
import { EVENTS, eventsOf } from '../../kube/object.ts';
import { rightsOn } from '../../kube/rights.ts';
import { readClocks } from '../../platform/clock.ts';
import { errorFields } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { printable } from '../../platform/printable.ts';
import { TokenBucket } from '../../platform/tokenBucket.ts';
import { millis } from '../../protocol/units.ts';
import type { SqlRunner } from '../../store/runner.ts';
import type { RowOf } from '../../store/statement.ts';
import type { Store } from '../../store/store.ts';
import type { NodeWatch } from './nodeWatch.ts';
import { listOccurrences } from './statements.ts';

/** An apply is a patch, and a create if there is no such object. */
export const EVENT_RIGHTS = rightsOn(EVENTS, ['create', 'patch']);

/** The results of an Event. */
export const EVENT_RESULTS = ['written', 'suppressed', 'refused'] as const;
export type EventResult = (typeof EVENT_RESULTS)[number];

const PERIOD_MS = 5_000;
const BACKOFF = { firstMs: 1_000, maxMs: 60_000 };
const MAX_AGE_MS = 600_000;
const SERIES_MS = 1_800_000;
const HOUR_MS = 3_600_000;
/** Writes in an hour, for one Node and for the cluster: about Nodes, and about their pods. */
const LIMITS = { node: { ofNode: 6, ofCluster: 120 }, pod: { ofNode: 30, ofCluster: 600 } } as const;
/** The API server accepts 1024. */
const MAX_NOTE_BYTES = 1000;

type Occurrence = RowOf<typeof listOccurrences>;

interface Series {
  readonly first: Occurrence;
  readonly count: number;
  readonly last: Occurrence;
}

interface EventKind {
  readonly about: keyof typeof LIMITS;
  readonly reason: string;
  readonly note: (detail: string) => string;
}

const KINDS: Readonly<Record<Occurrence['kind'], EventKind>> = {
  fallback: {
    about: 'node',
    reason: 'PLEGFellBack',
    note: (detail) => `The kubelet stopped using the runtime's event stream until it restarts: ${detail}.`,
  },
  miss: {
    about: 'node',
    reason: 'PLEGEventMissed',
    note: (detail) => `No event announced ${detail} to the agent of plegwatch.`,
  },
  end_missed: {
    about: 'pod',
    reason: 'ContainerEndNotAnnounced',
    note: (detail) => `No event announced to the agent of plegwatch that ${detail}.`,
  },
  end_shown_late: {
    about: 'pod',
    reason: 'ContainerEndShownLate',
    note: (detail) => `The status that the kubelet keeps was late to show that ${detail}.`,
  },
};
const kindOf = ({ kind }: Occurrence): EventKind => KINDS[kind];

export interface EventWriterOptions {
  readonly store: SqlRunner & Pick<Store, 'ensureCluster'>;
  readonly kube: Pick<KubeClient, 'apply'>;
  readonly nodes: Pick<NodeWatch, 'get'>;
  /** The name of the cluster. */
  readonly cluster: string;
  /** Whether pods have Events too. */
  readonly onPods: boolean;
  readonly log: Logger;
  readonly onResult: (result: EventResult) => void;
  /** For tests. */
  readonly periodMs?: number;
  readonly clocks?: typeof readClocks;
}

/** Runs until it is stopped, and survives every failure. */
export function startEventWriter(options: EventWriterOptions): { stop(): Promise<void> } {
  const writer = new EventWriter(options);
  const loop = new Loop({
    work: (signal) => writer.pass(signal),
    onError: (error, waitMs) =>
      options.log.warn({ ...errorFields(error), waitMs }, 'writing Events failed, retrying'),
    backoff: BACKOFF,
    minWaitMs: retryAfterMs,
  });
  loop.start();
  return loop;
}

/** In any hour at most `max`: half of it at once, half over the hour. */
const hourly = (max: number) => new TokenBucket({ capacity: max / 2, interval: millis((2 * HOUR_MS) / max) });

/** For tests; {@link startEventWriter} runs its passes. */
export class EventWriter {
  readonly #options: EventWriterOptions;
  readonly #ofCluster = { node: hourly(LIMITS.node.ofCluster), pod: hourly(LIMITS.pod.ofCluster) };
  readonly #ofNodes = { node: new Map<string, TokenBucket>(), pod: new Map<string, TokenBucket>() };
  readonly #series = new Map<string, Series>();
  /** The results of the occurrences of the last pass: an admitted one has its tokens, however often its write has to be tried. */
  #states = new Map<string, 'admitted' | 'done'>();

  constructor(options: EventWriterOptions) {
    this.#options = options;
  }

  async pass(signal: AbortSignal): Promise<number> {
    const { store, cluster, nodes, onPods, periodMs = PERIOD_MS } = this.#options;
    const clusterId = await store.ensureCluster(cluster);
    const { rows } = await store.run(listOccurrences, [clusterId, MAX_AGE_MS, onPods]);
    const present = new Set(rows.map(idOf));
    this.#states = new Map([...this.#states].filter(([id]) => present.has(id)));
    for (const occurrence of rows) {
      const node = nodes.get(occurrence.node);
      if (node === undefined || this.#states.get(idOf(occurrence)) === 'done') continue;
      signal.throwIfAborted();
      this.#options.onResult(await this.#handle(occurrence, node.uid, signal));
      this.#states.set(idOf(occurrence), 'done');
    }
    this.#forget(rows);
    return periodMs;
  }

  /** Throws if the write is to be tried again. */
  async #handle(occurrence: Occurrence, uid: string, signal: AbortSignal): Promise<EventResult> {
    const { kube, log } = this.#options;
    if (!this.#admit(occurrence)) return 'suppressed';
    const object = objectOf(occurrence, uid);
    const key = `${object.uid} ${kindOf(occurrence).reason}`;
    const before = this.#series.get(key);
    const continues = before !== undefined && msBetween(before.last, occurrence) <= SERIES_MS;
    const series = continues
      ? { first: before.first, count: before.count + 1, last: occurrence }
      : { first: occurrence, count: 1, last: occurrence };
    try {
      const resource = object.namespace === undefined ? EVENTS : eventsOf(object.namespace);
      await kube.apply(resource, eventOf(series, object), signal);
      this.#series.set(key, series);
      return 'written';
    } catch (error) {
      // The next Event need not violate the same rule, and the pod's namespace may be gone.
      if (!(error instanceof KubeStatusError) || error.code >= 500 || error.code === 429) throw error;
      log.warn({ node: occurrence.node, ...errorFields(error) }, 'Event not written');
      return 'refused';
    }
  }

  #admit(occurrence: Occurrence): boolean {
    const { node } = occurrence;
    const { about } = kindOf(occurrence);
    if (this.#states.has(idOf(occurrence))) return true;
    const ofNode = this.#ofNodes[about].get(node) ?? hourly(LIMITS[about].ofNode);
    this.#ofNodes[about].set(node, ofNode);
    const now = this.#clocks().mono;
    if (!ofNode.tryTake(now) || !this.#ofCluster[about].tryTake(now)) return false;
    this.#states.set(idOf(occurrence), 'admitted');
    return true;
  }

  /** Keeps only as much as a series and the limits need. */
  #forget(rows: readonly Occurrence[]): void {
    const oldestMs = this.#clocks().wall / 1000 - SERIES_MS - MAX_AGE_MS;
    for (const [key, { last }] of this.#series) if (Date.parse(last.at) < oldestMs) this.#series.delete(key);
    const live = new Set(
      [...rows, ...[...this.#series.values()].map(({ last }) => last)].map(({ node }) => node),
    );
    for (const buckets of Object.values(this.#ofNodes))
      for (const node of buckets.keys()) if (!live.has(node)) buckets.delete(node);
  }

  #clocks(): ReturnType<typeof readClocks> {
    return (this.#options.clocks ?? readClocks)();
  }
}

const idOf = (occurrence: Occurrence): string =>
  [occurrence.node, occurrence.pod_uid ?? '', kindOf(occurrence).reason, occurrence.at].join(' ');

interface EventObject {
  readonly kind: 'Node' | 'Pod';
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
}

function objectOf({ node, pod_namespace, pod_name, pod_uid }: Occurrence, nodeUid: string): EventObject {
  if (pod_namespace === null || pod_name === null || pod_uid === null)
    return { kind: 'Node', name: node, uid: nodeUid };
  return { kind: 'Pod', name: pod_name, namespace: pod_namespace, uid: pod_uid };
}

const msBetween = (one: Occurrence, other: Occurrence): number => Date.parse(other.at) - Date.parse(one.at);

function eventOf({ first, count, last }: Series, object: EventObject) {
  const { reason, note } = kindOf(first);
  const name = `plegwatch-${createHash('sha256')
    .update(`${object.uid} ${idOf(first)}`)
    .digest('hex')
    .slice(0, 24)}`;
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: object.namespace ?? EVENTS.namespace },
    eventTime: first.at,
    ...(count > 1 ? { series: { count, lastObservedTime: last.at } } : {}),
    type: 'Warning',
    reason,
    action: 'Observed',
    note: cutBytes(printable(note(first.detail)), MAX_NOTE_BYTES),
    regarding: { apiVersion: 'v1', ...object },
    reportingController: 'plegwatch.dev/controller',
    // Not the pod's name: the next leader applies the same Event, and the field cannot be changed.
    reportingInstance: 'plegwatch-controller',
  };
}

/** Without the part of a character that is left at the end. */
const cutBytes = (text: string, max: number): string =>
  Buffer.from(text)
    .subarray(0, max)
    .toString('utf8')
    .replace(/\ufffd$/, '');
