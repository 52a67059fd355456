/*
 * A minute of what a kubelet says of its PLEG, added up from look to look. What the first look shows was there before, and counts
 * for no minute; a kubelet that was restarted counts from zero.
 */
import { KUBELET_RELIST_BOUNDS_MS, type KubeletMinute } from '../../../protocol/record.ts';
import type { Mono } from '../../../protocol/units.ts';
import { addedTo, grown, micros, whole } from './counterDelta.ts';
import type { KubeletFigures } from './metrics.ts';
import { CallFigures } from './runtimeCalls.ts';
import { type GoodScrape, lookOf, restartBetween } from './scrapeSummary.ts';

/** A sample of a kubelet's calls that is longer than its last bucket has no other bound. */
const LONGEST_CALL_S = 745;

export class KubeletMinutes {
  readonly #epochStart: Mono;
  #last: GoodScrape | null = null;
  #minute: Draft | null = null;

  constructor(epochStart: Mono) {
    this.#epochStart = epochStart;
  }

  take(scrape: GoodScrape): void {
    const { figures } = scrape;
    const before = this.#last;
    this.#last = scrape;
    const lives = before !== null && restartBetween(lookOf(before), lookOf(scrape)) === null;
    const draft = this.#minute ?? emptyDraft();
    this.#minute = draft;
    const seenAge = figures.lastSeen === undefined ? null : scrape.wall / 1e6 - figures.lastSeen;
    if (seenAge !== null) draft.lastSeenAge = Math.max(draft.lastSeenAge ?? 0, seenAge);
    draft.streamErrors = figures.connectionErrors ?? figures.operations.get_container_events.errors ?? null;
    if (before === null) return;
    add(draft, lives ? before.figures : null, figures);
    const stretch = {
      before: { figures: lives ? before.figures : null, started: before.started },
      now: scrape,
    };
    draft.callFigures ??= new CallFigures(stretch);
    draft.callFigures.add(stretch);
  }

  /** The times between relists that were told until now are those of the mode before. */
  modeChanged(): void {
    if (this.#minute === null) return;
    this.#minute.intervals = 0;
    this.#minute.intervalSum = 0;
  }

  /** The minute so far; a new one begins. Undefined where no look was good. */
  cut(): KubeletMinute | undefined {
    const draft = this.#minute;
    this.#minute = null;
    if (draft === null) return undefined;
    const { relists, hist, intervals, intervalSum, discarded, streamErrors, calls, callFigures } = draft;
    const p99 = quantile(calls, 0.99);
    return {
      relists: whole(relists),
      hist: hist.map(whole),
      intervals: whole(intervals),
      intervalSum: micros(intervalSum),
      lastSeenAge: draft.lastSeenAge === null ? null : micros(draft.lastSeenAge),
      discarded: discarded === null ? null : whole(discarded),
      streamErrors: streamErrors === null ? null : whole(streamErrors),
      listP99: p99 === null ? null : micros(p99),
      ...(callFigures === null ? {} : { calls: callFigures.record(this.#epochStart) }),
    };
  }
}

interface Draft {
  relists: number;
  hist: number[];
  intervals: number;
  /** In seconds, like the ages. */
  intervalSum: number;
  lastSeenAge: number | null;
  discarded: number | null;
  streamErrors: number | null;
  /** Calls of both lists, by the upper bound of their bucket in seconds. */
  calls: Map<number, number>;
  /** Null until there are two looks. */
  callFigures: CallFigures | null;
}

const emptyDraft = (): Draft => ({
  relists: 0,
  hist: Array.from({ length: KUBELET_RELIST_BOUNDS_MS.length + 1 }, () => 0),
  intervals: 0,
  intervalSum: 0,
  lastSeenAge: null,
  discarded: null,
  streamErrors: null,
  calls: new Map(),
  callFigures: null,
});

function add(draft: Draft, before: KubeletFigures | null, now: KubeletFigures): void {
  draft.relists += grown(before?.relistDuration?.count, now.relistDuration?.count);
  draft.intervals += grown(before?.relistInterval?.count, now.relistInterval?.count);
  draft.intervalSum += grown(before?.relistInterval?.sum, now.relistInterval?.sum);
  if (now.discardedEvents !== undefined)
    draft.discarded = (draft.discarded ?? 0) + grown(before?.discardedEvents, now.discardedEvents);
  for (const [le, count] of addedTo(before?.relistDuration, now.relistDuration)) {
    const at = KUBELET_RELIST_BOUNDS_MS.findIndex((bound) => le * 1000 <= bound);
    const bucket = at === -1 ? KUBELET_RELIST_BOUNDS_MS.length : at;
    draft.hist[bucket] = (draft.hist[bucket] ?? 0) + count;
  }
  for (const operation of ['list_podsandbox', 'list_containers'] as const) {
    const [was, is] = [before?.operations[operation].duration, now.operations[operation].duration];
    for (const [le, count] of addedTo(was, is)) draft.calls.set(le, (draft.calls.get(le) ?? 0) + count);
  }
}

/** In seconds, linear inside a bucket; null where there are no samples. */
function quantile(buckets: ReadonlyMap<number, number>, q: number): number | null {
  const sorted = [...buckets].sort(([a], [b]) => a - b);
  const total = sorted.reduce((sum, [, count]) => sum + count, 0);
  let below = 0;
  let low = 0;
  for (const [le, count] of sorted) {
    const high = Math.min(le, LONGEST_CALL_S);
    if (count > 0 && below + count >= q * total) return low + ((high - low) * (q * total - below)) / count;
    below += count;
    low = high;
  }
  return null;
}
