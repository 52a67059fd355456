/*
 * Pauses: stretches in which this process or its reader stood still, longer than any of them may be silent. Told as gaps, and
 * to the comparison as holes.
 */
import { monoNow } from '../../platform/clock.ts';
import type { Logger } from '../../platform/log.ts';
import { between, type Micros, type Mono, millis } from '../../protocol/units.ts';
import type { Comparison } from '../compare/comparison.ts';
import type { Gaps } from './gaps.ts';
import { HEARTBEAT } from './stream/frames.ts';
import type { Session } from './streamSession.ts';

/** What the beat may differ by on a busy machine, before it counts as a pause; half a grace where that is more. */
const PAUSE_SLACK = millis(250);

export interface PausesOptions {
  readonly start: Mono;
  readonly grace: Micros;
  readonly comparison: Pick<Comparison, 'streamGap'>;
  readonly gaps: Gaps;
  readonly log: Logger;
}

export class Pauses {
  readonly #comparison: Pick<Comparison, 'streamGap'>;
  readonly #gaps: Gaps;
  readonly #log: Logger;
  /** Between two words of the reader, and two looks at the time. */
  readonly #longestSilence: Micros;
  #lastTick: Mono = monoNow();
  #drained: Mono;

  constructor({ start, grace, comparison, gaps, log }: PausesOptions) {
    this.#comparison = comparison;
    this.#gaps = gaps;
    this.#log = log;
    this.#longestSilence = millis((HEARTBEAT + Math.max(grace / 2, PAUSE_SLACK)) / 1_000);
    this.#drained = start;
  }

  /** The last moment at which the stream was known to be whole. */
  get drained(): Mono {
    return this.#drained;
  }

  /** The reader had taken everything from the socket by then. */
  drainedTo(at: Mono, session: Session | null): void {
    this.#watchReader(at, session);
    this.#drained = at;
  }

  /** While this process stood still nobody asked, and what came meanwhile came late through no fault of the runtime. */
  ticked(now: Mono): void {
    const from = this.#lastTick;
    this.#lastTick = now;
    if (between(from, now) <= this.#longestSilence) return;
    this.#log.warn({ micros: between(from, now) }, 'the agent stood still');
    this.#comparison.streamGap(now, 'agent_stalled');
    this.#gaps.past('stream', 'agent_stalled', from, now, now);
  }

  /** Where the reader was silent for longer than it may be, what came late may have come late through it. */
  #watchReader(at: Mono, session: Session | null): void {
    if (session === null || this.#drained < session.opened) return;
    if (between(this.#drained, at) <= this.#longestSilence) return;
    this.#log.warn({ micros: between(this.#drained, at) }, 'the reader stood still');
    this.#comparison.streamGap(at, 'reader_stalled');
    this.#gaps.past('stream', 'reader_stalled', this.#drained, at, monoNow());
  }
}
