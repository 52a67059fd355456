/*
 * A minute of what a kubelet reports about its PLEG, summed over scrapes. The first scrape only sets the baseline; a kubelet that
 * restarted counts from zero.
 */
import {
  type CallTotals,
  KUBELET_RELIST_BOUNDS_MS,
  type KubeletCalls,
  type KubeletMinute,
} from '../../../protocol/record.ts';
import { type Mono, since } from '../../../protocol/units.ts';
import type { GoodScrape } from './gate.ts';
import {
  bucketIncreases,
  type Histogram,
  increase,
  type KubeletFigures,
  toCount,
  toMicros,
} from './metrics.ts';
import { saysWhenSeen } from './modeInference.ts';
import { restartBetween, summarize } from './scrapeSummary.ts';

/** The upper bound assumed for calls above the last bucket. */
const MAX_CALL_S = 745;

const LISTS = ['list_podsandbox', 'list_containers'] as const;
/** The calls of a relist: each list once, and the statuses of pods that changed. */
const RELIST_CALLS = [...LISTS, 'podsandbox_status', 'container_status'] as const;
type RelistCall = (typeof RELIST_CALLS)[number];

export class KubeletMinutes {
  readonly #epochStart: Mono;
  #last: GoodScrape | null = null;
  #minute: MinuteDraft | null = null;

  constructor(epochStart: Mono) {
    this.#epochStart = epochStart;
  }

  /** When its last scrape ended; null before the first. */
  get lastScraped(): Mono | null {
    return this.#last?.ended ?? null;
  }

  add(scrape: GoodScrape): void {
    const { figures } = scrape;
    const before = this.#last;
    this.#last = scrape;
    const isSameRun = before !== null && restartBetween(summarize(before), summarize(scrape)) === null;
    const draft = this.#minute ?? emptyDraft(scrape.ended);
    this.#minute = draft;
    draft.lastScrape = scrape.ended;
    if (figures.lastSeen !== undefined && saysWhenSeen(figures))
      draft.lastSeenAge = Math.max(draft.lastSeenAge ?? 0, scrape.wall / 1e6 - figures.lastSeen);
    draft.resident = figures.residentBytes ?? null;
    draft.streamErrors = figures.connectionErrors ?? figures.operations.get_container_events.errors ?? null;
    if (before === null) return;
    add(draft, isSameRun ? before.figures : null, figures);
    const interval = {
      before: { figures: isSameRun ? before.figures : null, started: before.started },
      now: scrape,
    };
    draft.callTotals ??= new RuntimeCallTotals(interval);
    draft.callTotals.add(interval);
  }

  /** The relist intervals reported so far are those of the previous mode. */
  modeChanged(): void {
    if (this.#minute === null) return;
    this.#minute.intervals = 0;
    this.#minute.intervalSum = 0;
  }

  /** Ends the minute. Undefined if no scrape of it succeeded. */
  take(): KubeletMinute | undefined {
    const draft = this.#minute;
    this.#minute = null;
    if (draft === null) return undefined;
    const { relists, hist, intervals, intervalSum, discarded, streamErrors, resident, callTotals } = draft;
    const p99 = quantile(draft.listCalls, 0.99);
    return {
      scraped: {
        from: since(this.#epochStart, draft.firstScrape),
        to: since(this.#epochStart, draft.lastScrape),
      },
      relists: toCount(relists),
      hist: hist.map(toCount),
      intervals: toCount(intervals),
      intervalSum: toMicros(intervalSum),
      lastSeenAge: draft.lastSeenAge === null ? null : toMicros(draft.lastSeenAge),
      discarded: discarded === null ? null : toCount(discarded),
      streamErrors: streamErrors === null ? null : toCount(streamErrors),
      listP99: p99 === null ? null : toMicros(p99),
      resident: resident === null ? null : toCount(resident),
      ...(callTotals === null ? {} : { calls: callTotals.record(this.#epochStart) }),
    };
  }
}

interface MinuteDraft {
  readonly firstScrape: Mono;
  lastScrape: Mono;
  relists: number;
  hist: number[];
  intervals: number;
  /** In seconds, like the ages. */
  intervalSum: number;
  lastSeenAge: number | null;
  discarded: number | null;
  streamErrors: number | null;
  resident: number | null;
  /** Calls of both lists, by the upper bound of their bucket in seconds. */
  listCalls: Map<number, number>;
  /** Null until there are two scrapes. */
  callTotals: RuntimeCallTotals | null;
}

const emptyDraft = (at: Mono): MinuteDraft => ({
  firstScrape: at,
  lastScrape: at,
  relists: 0,
  hist: Array.from({ length: KUBELET_RELIST_BOUNDS_MS.length + 1 }, () => 0),
  intervals: 0,
  intervalSum: 0,
  lastSeenAge: null,
  discarded: null,
  streamErrors: null,
  resident: null,
  listCalls: new Map(),
  callTotals: null,
});

function add(draft: MinuteDraft, before: KubeletFigures | null, now: KubeletFigures): void {
  draft.relists += increase(before?.relistDuration?.count, now.relistDuration?.count);
  draft.intervals += increase(before?.relistInterval?.count, now.relistInterval?.count);
  draft.intervalSum += increase(before?.relistInterval?.sum, now.relistInterval?.sum);
  if (now.discardedEvents !== undefined)
    draft.discarded = (draft.discarded ?? 0) + increase(before?.discardedEvents, now.discardedEvents);
  for (const [le, count] of bucketIncreases(before?.relistDuration, now.relistDuration)) {
    const at = KUBELET_RELIST_BOUNDS_MS.findIndex((bound) => le * 1000 <= bound);
    const bucket = at === -1 ? KUBELET_RELIST_BOUNDS_MS.length : at;
    draft.hist[bucket] = (draft.hist[bucket] ?? 0) + count;
  }
  for (const operation of LISTS) {
    const [was, is] = [before?.operations[operation].duration, now.operations[operation].duration];
    for (const [le, count] of bucketIncreases(was, is))
      draft.listCalls.set(le, (draft.listCalls.get(le) ?? 0) + count);
  }
}

/** In seconds, interpolated linearly inside a bucket; null without samples. */
function quantile(buckets: ReadonlyMap<number, number>, q: number): number | null {
  const sorted = [...buckets].sort(([a], [b]) => a - b);
  const total = sorted.reduce((sum, [, count]) => sum + count, 0);
  let below = 0;
  let low = 0;
  for (const [le, count] of sorted) {
    const high = Math.min(le, MAX_CALL_S);
    if (count > 0 && below + count >= q * total) return low + ((high - low) * (q * total - below)) / count;
    below += count;
    low = high;
  }
  return null;
}

/** Two scrapes in a row; `figures` of the first are null if another kubelet run reported them. */
interface ScrapeInterval {
  readonly before: { readonly figures: KubeletFigures | null; readonly started: Mono };
  readonly now: { readonly figures: KubeletFigures; readonly ended: Mono };
}

/**
 * How long a kubelet's own calls to its runtime took, in seconds: this tells a slow runtime from a slow kubelet. And what processor time the
 * kubelet itself used meanwhile.
 *
 * A histogram keeps no single call. The longest one took at least as long as the lower bound of the highest bucket that grew, and at
 * least as long as the mean of the calls added with it.
 */
class RuntimeCallTotals {
  readonly #from: Mono;
  #to: Mono;
  #relistSum = 0;
  readonly #calls: Readonly<Record<RelistCall, { calls: number; errors: number; sum: number }>> = {
    list_podsandbox: { calls: 0, errors: 0, sum: 0 },
    list_containers: { calls: 0, errors: 0, sum: 0 },
    podsandbox_status: { calls: 0, errors: 0, sum: 0 },
    container_status: { calls: 0, errors: 0, sum: 0 },
  };
  #longestList = 0;
  #cpu: number | null = null;

  constructor({ before, now }: ScrapeInterval) {
    this.#from = before.started;
    this.#to = now.ended;
  }

  add({ before: { figures: before }, now: { figures: now, ended } }: ScrapeInterval): void {
    this.#to = ended;
    this.#relistSum += increase(before?.relistDuration?.sum, now.relistDuration?.sum);
    if (now.cpu !== undefined) this.#cpu = (this.#cpu ?? 0) + increase(before?.cpu, now.cpu);
    for (const call of RELIST_CALLS) {
      const [was, is] = [before?.operations[call], now.operations[call]];
      const totals = this.#calls[call];
      totals.calls += increase(was?.duration?.count, is.duration?.count);
      totals.errors += increase(was?.errors, is.errors);
      totals.sum += increase(was?.duration?.sum, is.duration?.sum);
    }
    for (const list of LISTS) {
      const [was, is] = [before?.operations[list].duration, now.operations[list].duration];
      this.#longestList = Math.max(this.#longestList, longestAtLeast(was, is));
    }
  }

  record(epochStart: Mono): KubeletCalls {
    return {
      from: since(epochStart, this.#from),
      to: since(epochStart, this.#to),
      relistSum: toMicros(this.#relistSum),
      sandboxLists: this.#totals('list_podsandbox'),
      containerLists: this.#totals('list_containers'),
      sandboxStatuses: this.#totals('podsandbox_status'),
      containerStatuses: this.#totals('container_status'),
      longestList: toMicros(this.#longestList),
      cpu: this.#cpu === null ? null : toMicros(this.#cpu),
    };
  }

  #totals(call: RelistCall): CallTotals {
    const { calls, errors, sum } = this.#calls[call];
    return { calls: toCount(calls), errors: toCount(errors), sum: toMicros(sum) };
  }
}

function longestAtLeast(before: Histogram | undefined, now: Histogram | undefined): number {
  const added = increase(before?.count, now?.count);
  if (added === 0) return 0;
  let low = 0;
  let proven = 0;
  for (const [le, inside] of bucketIncreases(before, now)) {
    if (inside > 0) proven = low;
    low = le;
  }
  return Math.max(proven, increase(before?.sum, now?.sum) / added);
}
