/*
 * One minute of figures, rolled up on the agent, so that an idle node sends one small record a minute.
 */
import { type KubeletMinute, RELIST_BOUNDS_MS, type RecordOf } from '../../protocol/record.ts';
import { between, type Micros, type Mono, millis } from '../../protocol/units.ts';
import type { ComparisonCounters } from '../compare/comparison.ts';
import { since } from '../compare/findings.ts';

export const MINUTE: Micros = millis(60_000);
/** The first one of an epoch is short, so that a node that was just installed soon has its figures. */
export const FIRST_MINUTE: Micros = millis(10_000);

export interface RelistFigures {
  readonly took: Micros;
  readonly sandboxes: number;
  readonly containers: number;
  readonly bytes: number;
}

export class Minute {
  readonly start: Mono;
  readonly #before: Readonly<ComparisonCounters>;
  readonly #hist: number[] = Array.from({ length: RELIST_BOUNDS_MS.length + 1 }, () => 0);
  #relists = 0;
  #errors = 0;
  #max = 0;
  #last: RelistFigures = { took: millis(0), sandboxes: 0, containers: 0, bytes: 0 };

  /** `figures` are the comparison's at the start of the minute. */
  constructor(start: Mono, figures: Readonly<ComparisonCounters>) {
    this.start = start;
    this.#before = { ...figures };
  }

  relisted(figures: RelistFigures): void {
    this.#relists += 1;
    this.#max = Math.max(this.#max, figures.took);
    this.#last = figures;
    const bucket = RELIST_BOUNDS_MS.findIndex((bound) => figures.took <= bound * 1000);
    const at = bucket === -1 ? RELIST_BOUNDS_MS.length : bucket;
    this.#hist[at] = (this.#hist[at] ?? 0) + 1;
  }

  failed(): void {
    this.#errors += 1;
  }

  /** `kubelet` is undefined where that was not asked, or did not answer. */
  record(
    epochStart: Mono,
    now: Mono,
    figures: Readonly<ComparisonCounters>,
    kubelet?: KubeletMinute,
  ): RecordOf<'relist_minute'> {
    const grown = (key: 'expected' | 'matched' | 'unobservable' | 'covered') =>
      Math.max(0, Math.round(figures[key] - this.#before[key]));
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
      expected: grown('expected'),
      matched: grown('matched'),
      unobservable: grown('unobservable'),
      covered: grown('covered'),
      ...(kubelet === undefined ? {} : { kubelet }),
    };
  }
}
