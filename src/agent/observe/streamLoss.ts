/*
 * Holes: moments of the stream of which an event may be lost although the session lives on. Each is told as a gap, and to the
 * comparison, for which nothing that is due across it is missed.
 */
import { monoNow } from '../../platform/clock.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import type { Mono } from '../../protocol/units.ts';
import type { Comparison } from '../compare/comparison.ts';
import type { AgentMetrics } from '../metrics.ts';
import type { Gaps } from './gaps.ts';
import type { MalformedMessages } from './malformedMessages.ts';

export interface HolesOptions {
  readonly comparison: Pick<Comparison, 'streamGap'>;
  readonly gaps: Gaps;
  readonly malformed: MalformedMessages;
  readonly metrics: Pick<AgentMetrics, 'readerDropped'>;
  readonly log: Pick<ThrottledLog, 'warn'>;
}

export class Holes {
  readonly #options: HolesOptions;

  constructor(options: HolesOptions) {
    this.#options = options;
  }

  /** Bytes came that are no event. `from`: when the stream was last known to be whole. */
  malformed(from: Mono, at: Mono): void {
    this.#options.malformed.count('GetContainerEvents');
    this.#hole('malformed_event', from, at);
  }

  /** The reader had to drop events without a trace. */
  overflowed(from: Mono, at: Mono, events: number): void {
    const { metrics, log } = this.#options;
    metrics.readerDropped.inc(events);
    log.warn({ events }, 'the reader dropped events', events);
    this.#hole('reader_overflow', from, at);
  }

  #hole(cause: 'malformed_event' | 'reader_overflow', from: Mono, at: Mono): void {
    this.#options.gaps.hole('stream', cause, from, at, monoNow());
    this.#options.comparison.streamGap(at, cause);
  }
}
