/*
 * One minute of relists, summed up on the agent. While nothing happens it goes on, up to ten minutes, so that a calm node sends little.
 */
import type { ListAnswer, Relist } from '../../protocol/observation.ts';
import { LIST_FLAGS, MAX_INT4, MAX_LISTED, RELIST_BOUNDS_MS, type RecordOf } from '../../protocol/record.ts';
import { between, type Micros, type Mono, millis, since, type Wall } from '../../protocol/units.ts';
import type { Comparison, ComparisonCounters } from '../compare/comparison.ts';

export const MINUTE: Micros = millis(60_000);
/** The first minute of an epoch is short, so that a node where plegwatch was just installed soon has figures. */
export const FIRST_MINUTE: Micros = millis(10_000);
/** A minute goes on for at most a time between these, drawn for each, so that the nodes of a fleet do not report at the same time. */
const LONGEST_MS = [300_000, 600_000] as const;
/** It ends this long after the hour of UTC in which it began: in the first minute of the next, for the next row has to begin there. */
const AFTER_HOUR_MS = [5_000, 50_000] as const;
const HOUR_US = 3_600_000_000;
/** If the two clocks of the node drift apart by more than this, each minute says what the wall clock showed. */
const MAX_DRIFT: Micros = millis(25);
/** This many relists at the end of a minute that went on keep their times, beside the first: what follows is bounded by them. */
const LAST_LISTS = 2;

/** One successful relist. */
export interface RelistStats {
  readonly took: Micros;
  /** The sizes of its two answers. */
  readonly sandboxListBytes: number;
  readonly containerListBytes: number;
}

interface Clocks {
  readonly now: Mono;
  readonly wall: Wall;
}

export class RelistMinute {
  readonly #start: Mono;
  readonly #startWall: Wall;
  readonly #length: Micros;
  readonly #longest: Micros;
  readonly #hourEnds: number;
  #isCalm = true;
  readonly #before: Readonly<ComparisonCounters>;
  readonly #hist: number[] = Array.from({ length: RELIST_BOUNDS_MS.length + 1 }, () => 0);
  readonly #lists: number[][] = [];
  /** The last ones but for the first, whether or not a record takes so many. */
  #lastLists: readonly number[][] = [];
  #relists = 0;
  #errors = 0;
  #max = 0;
  #last: { readonly relist: Relist; readonly stats: RelistStats } | null = null;

  /** `counters`: those of the comparison when the minute starts. */
  constructor(
    { now, wall }: Clocks,
    length: Micros,
    counters: Readonly<ComparisonCounters>,
    random: () => number = Math.random,
  ) {
    this.#start = now;
    this.#startWall = wall;
    this.#length = length;
    this.#longest = drawn(LONGEST_MS, random);
    this.#hourEnds = (Math.floor(wall / HOUR_US) + 1) * HOUR_US + drawn(AFTER_HOUR_MS, random);
    this.#before = { ...counters };
  }

  /** Something happens in it that anybody could ask about by itself. */
  disturb(): void {
    this.#isCalm = false;
  }

  /** Whether it goes on because nothing has happened. */
  isGoingOn(now: Mono): boolean {
    return this.#isCalm && between(this.#start, now) > this.#length;
  }

  /** Whether it is over. While nothing happens it goes on, for five to ten minutes and until the hour of UTC has ended. */
  isOver({ now, wall }: Clocks): boolean {
    const lasted = between(this.#start, now);
    if (lasted < this.#length) return false;
    return (
      !this.#isCalm ||
      this.#length < MINUTE ||
      lasted >= this.#longest ||
      wall >= this.#hourEnds ||
      Math.abs(wall - this.#startWall - lasted) > MAX_DRIFT
    );
  }

  /** `lastEvent`: when the last event was received that was compared before. */
  addRelist(relist: Relist, lastEvent: Mono | null, stats: RelistStats): void {
    const { sandboxes, containers } = relist;
    this.#addLists(
      [sandboxes.start, sandboxes.end, containers.start, containers.end],
      lastEvent,
      (sandboxes.whole ? 0 : LIST_FLAGS.sandboxesPartial) |
        (containers.whole ? 0 : LIST_FLAGS.containersPartial),
    );
    this.#relists += 1;
    this.#max = Math.max(this.#max, stats.took);
    this.#last = { relist, stats };
    const bucket = RELIST_BOUNDS_MS.findIndex((bound) => stats.took <= bound * 1000);
    const at = bucket === -1 ? RELIST_BOUNDS_MS.length : bucket;
    this.#hist[at] = (this.#hist[at] ?? 0) + 1;
  }

  addFailure({ from, at }: { readonly from: Mono; readonly at: Mono }, lastEvent: Mono | null): void {
    this.#addLists([from, at, from, at], lastEvent, LIST_FLAGS.failed);
    this.#errors += 1;
  }

  /** A relist that cannot be said in four bytes (this process did not run for more than half an hour) is left out. */
  #addLists(times: readonly Mono[], lastEvent: Mono | null, flags: number): void {
    const offset = (at: Mono) => Math.round(between(this.#start, at));
    const numbers = times.map(offset);
    const fits = numbers.every((each) => Math.abs(each) <= MAX_INT4);
    const eventsTo = lastEvent === null ? -MAX_INT4 : Math.max(-MAX_INT4, offset(lastEvent));
    if (!fits) return;
    const list = [...numbers, flags, eventsTo];
    if (this.#lists.length > 0) this.#lastLists = [...this.#lastLists.slice(1 - LAST_LISTS), list];
    if (this.#lists.length < MAX_LISTED) this.#lists.push(list);
  }

  /** `wall`: the wall clock now. `counters` and `decidedUntil`: those of the comparison. `others`: what others observed in it. */
  record(
    epochStart: Mono,
    { now, wall }: Clocks,
    { counters, decidedUntil }: Pick<Comparison, 'counters' | 'decidedUntil'>,
    others: Pick<RecordOf<'relist_minute'>, 'kubelet' | 'statuses' | 'kubeletLag' | 'pressure'> = {},
  ): RecordOf<'relist_minute'> {
    const added = (key: 'expected' | 'matched' | 'unobservable' | 'covered') =>
      Math.max(0, Math.round(counters[key] - this.#before[key]));
    const last = this.#last;
    const span = Math.max(0, between(this.#start, now));
    const lists = span <= 2 * MINUTE ? this.#lists : [...this.#lists.slice(0, 1), ...this.#lastLists];
    return {
      type: 'relist_minute',
      t: since(epochStart, this.#start),
      span,
      wall: Math.max(0, Math.round(wall)),
      lists: lists.flat(),
      relists: this.#relists,
      errors: this.#errors,
      max: Math.round(this.#max),
      hist: this.#hist,
      sandboxes: last?.relist.sandboxes.items.size ?? 0,
      containers: last?.relist.containers.items.size ?? 0,
      exitedSandboxes: last === null ? 0 : exitedOf(last.relist.sandboxes),
      exitedContainers: last === null ? 0 : exitedOf(last.relist.containers),
      sandboxListBytes: last?.stats.sandboxListBytes ?? 0,
      containerListBytes: last?.stats.containerListBytes ?? 0,
      expected: added('expected'),
      matched: added('matched'),
      unobservable: added('unobservable'),
      covered: added('covered'),
      decided: since(epochStart, decidedUntil),
      ...others,
    };
  }
}

const drawn = ([from, to]: readonly [number, number], random: () => number): Micros =>
  millis(from + random() * (to - from));

function exitedOf({ items }: ListAnswer): number {
  let exited = 0;
  for (const { state } of items.values()) if (state === 'exited') exited += 1;
  return exited;
}
