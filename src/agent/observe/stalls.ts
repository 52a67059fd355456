/*
 * Stalls: this process or its reader did not run for longer than it may be silent. Each is a gap of the stream: what arrived late
 * meanwhile is not the runtime's fault.
 */
import type { Logger } from '../../platform/log.ts';
import { between, type Micros, type Mono, millis } from '../../protocol/units.ts';
import type { Comparison } from '../compare/comparison.ts';
import type { Gaps } from './gaps.ts';
import { HEARTBEAT } from './stream/frames.ts';
import type { StreamSession } from './streamSession.ts';

/** The delay of a heartbeat on a busy machine before it is a stall; half of `--overdue-after` if that is more. */
const MIN_SLACK = millis(250);

/** The longest silence between two heartbeats of the reader, and between two ticks of the agent, that is no stall. */
export const maxSilence = (overdueAfter: Micros): Micros =>
  millis((HEARTBEAT + Math.max(overdueAfter / 2, MIN_SLACK)) / 1_000);

interface StallsOptions {
  readonly epochStart: Mono;
  readonly overdueAfter: Micros;
  readonly comparison: Pick<Comparison, 'streamGap'>;
  readonly gaps: Pick<Gaps, 'recordClosed'>;
  readonly log: Pick<Logger, 'warn'>;
}

export class Stalls {
  readonly #options: StallsOptions;
  readonly #maxSilence: Micros;
  #lastTick: Mono;
  #drainedUntil: Mono;

  constructor(options: StallsOptions, now: Mono) {
    this.#options = options;
    this.#maxSilence = maxSilence(options.overdueAfter);
    this.#lastTick = now;
    this.#drainedUntil = options.epochStart;
  }

  /** Until then the reader has taken everything from the socket. */
  get drainedUntil(): Mono {
    return this.#drainedUntil;
  }

  /** The reader had taken everything from the socket at `at`, which may be before the last event that it took. */
  drained(at: Mono, session: StreamSession | null, now: Mono): void {
    const from = this.#drainedUntil;
    if (at <= from) return;
    this.#drainedUntil = at;
    if (session !== null && from >= session.opened) this.#check('reader', from, at, now);
  }

  tick(now: Mono): void {
    const from = this.#lastTick;
    this.#lastTick = now;
    this.#check('agent', from, now, now);
  }

  #check(process: 'agent' | 'reader', from: Mono, to: Mono, now: Mono): void {
    if (between(from, to) <= this.#maxSilence) return;
    const { comparison, gaps, log } = this.#options;
    log.warn({ process, micros: between(from, to) }, 'process stalled');
    comparison.streamGap(to, `${process}_stalled`);
    gaps.recordClosed('stream', `${process}_stalled`, from, to, now);
  }
}
