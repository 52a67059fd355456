/*
 * Holes: moments of the stream of which an event may be lost although the session lives on. Each is told as a gap, and to the
 * comparison, for which nothing that is due across it is missed.
 */
import { monoNow } from '../../platform/clock.ts';
import type { Logger } from '../../platform/log.ts';
import type { Mono } from '../../protocol/units.ts';
import type { Comparison } from '../compare/comparison.ts';
import type { AgentMetrics } from '../metrics.ts';
import type { Gaps } from './gaps.ts';
import type { Refusals } from './malformedMessages.ts';
import { Tally } from './tally.ts';

export interface HolesOptions {
  readonly comparison: Pick<Comparison, 'hole'>;
  readonly gaps: Gaps;
  readonly refusals: Refusals;
  readonly metrics: Pick<AgentMetrics, 'readerDropped'>;
  readonly log: Pick<Logger, 'warn'>;
}

export class Holes {
  readonly #options: HolesOptions;
  /** Events that the reader had to drop. */
  readonly #dropped: Tally;

  constructor(options: HolesOptions) {
    this.#options = options;
    this.#dropped = new Tally((events) => options.log.warn({ events }, 'the reader had to drop events'));
  }

  /** Bytes came that are no event. `from`: when the stream was last known to be whole. */
  malformed(from: Mono, at: Mono): void {
    this.#options.refusals.count('GetContainerEvents');
    this.#hole('malformed_event', from, at);
  }

  /** The reader had to drop events without a trace. */
  overflowed(from: Mono, at: Mono, events: number): void {
    this.#options.metrics.readerDropped.inc(events);
    this.#dropped.count(events);
    this.#hole('reader_overflow', from, at);
  }

  /** Names in the log what was not named yet, where the last line is a minute old. */
  sayDue(): void {
    this.#dropped.sayDue();
  }

  /** Names in the log what was not named yet. */
  sayRest(): void {
    this.#dropped.sayRest();
  }

  #hole(cause: 'malformed_event' | 'reader_overflow', from: Mono, at: Mono): void {
    this.#options.gaps.hole('stream', cause, from, at, monoNow());
    this.#options.comparison.hole(at, cause);
  }
}
