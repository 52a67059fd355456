/*
 * One minute of relists, summed up on the agent, so that an idle node sends one small record a minute.
 */
import { type KubeletMinute, RELIST_BOUNDS_MS, type RecordOf } from '../../protocol/record.ts';
import { between, type Micros, type Mono, millis, since } from '../../protocol/units.ts';
import type { ComparisonCounters } from '../compare/comparison.ts';

export const MINUTE: Micros = millis(60_000);
/** The first minute of an epoch is short, so that a node where plegwatch was just installed soon has figures. */
export const FIRST_MINUTE: Micros = millis(10_000);

/** One successful relist. */
export interface RelistStats {
  readonly took: Micros;
  readonly sandboxes: number;
  readonly containers: number;
  readonly bytes: number;
}

export class RelistMinute {
  readonly start: Mono;
  readonly length: Micros;
  readonly #before: Readonly<ComparisonCounters>;
  readonly #hist: number[] = Array.from({ length: RELIST_BOUNDS_MS.length + 1 }, () => 0);
  #relists = 0;
  #errors = 0;
  #max = 0;
  #last: RelistStats = { took: millis(0), sandboxes: 0, containers: 0, bytes: 0 };

  /** `counters`: those of the comparison when the minute starts. */
  constructor(start: Mono, length: Micros, counters: Readonly<ComparisonCounters>) {
    this.start = start;
    this.length = length;
    this.#before = { ...counters };
  }

  addRelist(stats: RelistStats): void {
    this.#relists += 1;
    this.#max = Math.max(this.#max, stats.took);
    this.#last = stats;
    const bucket = RELIST_BOUNDS_MS.findIndex((bound) => stats.took <= bound * 1000);
    const at = bucket === -1 ? RELIST_BOUNDS_MS.length : bucket;
    this.#hist[at] = (this.#hist[at] ?? 0) + 1;
  }

  addFailure(): void {
    this.#errors += 1;
  }

  /** `counters`: those of the comparison now. `kubelet` is undefined if none was scraped. */
  record(
    epochStart: Mono,
    now: Mono,
    counters: Readonly<ComparisonCounters>,
    kubelet?: KubeletMinute,
  ): RecordOf<'relist_minute'> {
    const added = (key: 'expected' | 'matched' | 'unobservable' | 'covered') =>
      Math.max(0, Math.round(counters[key] - this.#before[key]));
    return {
      type: 'relist_minute',
      t: since(epochStart, this.start),
      span: Math.max(0, between(this.start, now)),
      relists: this.#relists,
      errors: this.#errors,
      max: Math.round(this.#max),
      hist: this.#hist,
      sandboxes: this.#last.sandboxes,
      containers: this.#last.containers,
      bytes: this.#last.bytes,
      expected: added('expected'),
      matched: added('matched'),
      unobservable: added('unobservable'),
      covered: added('covered'),
      ...(kubelet === undefined ? {} : { kubelet }),
    };
  }
}
