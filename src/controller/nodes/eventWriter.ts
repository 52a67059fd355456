/*
 * Kubernetes Events on Nodes: a kubelet fell back, or the first event of a day was missed. Only the leader writes them.
 *
 *   occurrence   read from the store while it is at most ten minutes old: backfilled evidence makes no Event
 *   series       another occurrence of the same kind on the same Node within half an hour counts in the Event of the first
 *   limits       at most 6 writes an hour for a Node and 120 for the cluster; what is above is counted and dropped
 *
 * An Event is named after its Node, its reason and its first occurrence, and applied: a controller that restarts writes the same one again.
 */
import { createHash } from 'node:crypto';
import type { KubeClient } from '../../kube/client.ts';
import { KubeStatusError, retryAfterMs } from '../../kube/kubeErrors.ts';
import { EVENTS } from '../../kube/object.ts';
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
const MAX_PER_NODE_AND_HOUR = 6;
const MAX_PER_HOUR = 120;
/** The API server accepts 1024. */
const MAX_NOTE_BYTES = 1000;

type Occurrence = RowOf<typeof listOccurrences>;

interface Series {
  readonly first: Occurrence;
  readonly count: number;
  readonly last: Occurrence;
}

const FALLBACK = {
  reason: 'PLEGFellBack',
  note: (detail: string) =>
    `The kubelet stopped using the runtime's event stream until it restarts: ${detail}.`,
};
const MISS = {
  reason: 'PLEGEventMissed',
  note: (detail: string) => `No event announced ${detail} to the agent of plegwatch.`,
};
const kindOf = ({ is_miss }: Occurrence) => (is_miss ? MISS : FALLBACK);

export interface EventWriterOptions {
  readonly store: SqlRunner & Pick<Store, 'ensureCluster'>;
  readonly kube: Pick<KubeClient, 'apply'>;
  readonly nodes: Pick<NodeWatch, 'get'>;
  /** The name of the cluster. */
  readonly cluster: string;
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
  readonly #ofCluster = hourly(MAX_PER_HOUR);
  readonly #ofNodes = new Map<string, TokenBucket>();
  readonly #series = new Map<string, Series>();
  /** The results of the occurrences of the last pass: an admitted one has its tokens, however often its write has to be tried. */
  #states = new Map<string, 'admitted' | 'done'>();

  constructor(options: EventWriterOptions) {
    this.#options = options;
  }

  async pass(signal: AbortSignal): Promise<number> {
    const { store, cluster, nodes, periodMs = PERIOD_MS } = this.#options;
    const clusterId = await store.ensureCluster(cluster);
    const { rows } = await store.run(listOccurrences, [clusterId, MAX_AGE_MS]);
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
    const key = `${uid} ${kindOf(occurrence).reason}`;
    const before = this.#series.get(key);
    const continues = before !== undefined && msBetween(before.last, occurrence) <= SERIES_MS;
    const series = continues
      ? { first: before.first, count: before.count + 1, last: occurrence }
      : { first: occurrence, count: 1, last: occurrence };
    try {
      await kube.apply(EVENTS, eventOf(series, uid), signal);
      this.#series.set(key, series);
      return 'written';
    } catch (error) {
      // The next Event need not violate the same rule.
      if (!(error instanceof KubeStatusError) || error.code >= 500 || error.code === 429) throw error;
      log.warn({ node: occurrence.node, ...errorFields(error) }, 'Event not written');
      return 'refused';
    }
  }

  #admit(occurrence: Occurrence): boolean {
    const { node } = occurrence;
    if (this.#states.has(idOf(occurrence))) return true;
    const ofNode = this.#ofNodes.get(node) ?? hourly(MAX_PER_NODE_AND_HOUR);
    this.#ofNodes.set(node, ofNode);
    const now = this.#clocks().mono;
    if (!ofNode.tryTake(now) || !this.#ofCluster.tryTake(now)) return false;
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
    for (const node of this.#ofNodes.keys()) if (!live.has(node)) this.#ofNodes.delete(node);
  }

  #clocks(): ReturnType<typeof readClocks> {
    return (this.#options.clocks ?? readClocks)();
  }
}

const idOf = (occurrence: Occurrence): string =>
  `${occurrence.node} ${kindOf(occurrence).reason} ${occurrence.at}`;

const msBetween = (one: Occurrence, other: Occurrence): number => Date.parse(other.at) - Date.parse(one.at);

function eventOf({ first, count, last }: Series, uid: string) {
  const { reason, note } = kindOf(first);
  const name = `plegwatch-${createHash('sha256')
    .update(`${uid} ${idOf(first)}`)
    .digest('hex')
    .slice(0, 24)}`;
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: EVENTS.namespace },
    eventTime: first.at,
    ...(count > 1 ? { series: { count, lastObservedTime: last.at } } : {}),
    type: 'Warning',
    reason,
    action: 'Observed',
    note: cutBytes(printable(note(first.detail)), MAX_NOTE_BYTES),
    regarding: { apiVersion: 'v1', kind: 'Node', name: first.node, uid },
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
