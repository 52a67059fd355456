/*
 * Stream loss: moments in which an event may have been lost although the session continues. Each is a gap, and nothing that was due
 * across it counts as missed.
 */
import { monoNow } from '../../platform/clock.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import type { Mono } from '../../protocol/units.ts';
import type { Comparison } from '../compare/comparison.ts';
import type { AgentMetrics } from '../metrics.ts';
import type { Gaps } from './gaps.ts';
import type { MalformedMessages } from './malformedMessageCounts.ts';

interface StreamLossOptions {
  readonly comparison: Pick<Comparison, 'eventsLost'>;
  readonly gaps: Gaps;
  readonly malformed: MalformedMessages;
  readonly metrics: Pick<AgentMetrics, 'readerDropped'>;
  readonly throttledLog: Pick<ThrottledLog, 'warn'>;
}

export class StreamLoss {
  readonly #options: StreamLossOptions;

  constructor(options: StreamLossOptions) {
    this.#options = options;
  }

  /** A message could not be decoded as an event. `from`: until then the stream was known to be complete. */
  malformed(from: Mono, at: Mono): void {
    this.#options.malformed.count('GetContainerEvents');
    this.#record('malformed_event', from, at);
  }

  /** The reader dropped events without keeping even a digest. */
  overflowed(from: Mono, at: Mono, events: number): void {
    const { metrics, throttledLog } = this.#options;
    metrics.readerDropped.inc(events);
    throttledLog.warn({ events }, 'reader dropped events', events);
    this.#record('reader_overflow', from, at);
  }

  #record(cause: 'malformed_event' | 'reader_overflow', from: Mono, at: Mono): void {
    this.#options.gaps.addLoss('stream', cause, from, at, monoNow());
    this.#options.comparison.eventsLost(at, cause);
  }
}
