/*
 * The call for one status, and how long it takes.
 *
 *   waited for ── 5 s ──► unanswered ── answered, failed or cancelled ──► ended
 *       └──────────────── answered or failed ─────────────────────────────▲
 *
 * Only time in which this process runs counts: of a beat of a tenth of a second no more than two tenths are added.
 */
import type { ContainerIdentity } from '../../protocol/record.ts';
import { between, type Micros, type Mono, millis } from '../../protocol/units.ts';

/** A healthy runtime needs milliseconds. */
const SLOW: Micros = millis(1_000);
const PATIENCE: Micros = millis(5_000);
const BEAT: Micros = millis(100);

export class StatusCall {
  readonly object: ContainerIdentity;
  readonly at: Mono;
  /** It was not answered in five seconds. */
  timedOut = false;
  /** Null while it is under way. */
  endedAt: Mono | null = null;
  /** Statuses that were asked for later and answered within a second: of all kinds, and of its own kind. */
  othersSince = 0;
  alikeSince = 0;
  readonly #readClock: () => Mono;
  readonly #onTimeout: () => void;
  readonly #abort = new AbortController();
  readonly #timer = setInterval(() => this.#beat(), BEAT / 1000);
  #last: Mono;
  #ran = 0;

  constructor(object: ContainerIdentity, readClock: () => Mono, onTimeout: () => void) {
    this.object = object;
    this.#readClock = readClock;
    this.#onTimeout = onTimeout;
    this.at = readClock();
    this.#last = this.at;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** How long it took, or has been waited for. */
  get took(): Micros {
    return millis(this.#ran / 1000);
  }

  get isUnanswered(): boolean {
    return this.timedOut && this.endedAt === null;
  }

  get isSlow(): boolean {
    return this.timedOut || this.took >= SLOW;
  }

  otherAnswered({ at, object }: StatusCall): void {
    if (at < this.at) return;
    this.othersSince += 1;
    if (object.isSandbox === this.object.isSandbox) this.alikeSince += 1;
  }

  /** Answers so far say nothing of another hang. */
  forgetOthers(): void {
    this.othersSince = 0;
    this.alikeSince = 0;
  }

  cancel(): void {
    this.#abort.abort();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#add();
    this.endedAt = this.#last;
  }

  #beat(): void {
    this.#add();
    if (this.#ran < PATIENCE || this.timedOut) return;
    this.timedOut = true;
    this.#onTimeout();
  }

  /** A beat that comes later than the next was due shows that this process was held up. */
  #add(): void {
    const now = this.#readClock();
    this.#ran += Math.min(between(this.#last, now), 2 * BEAT);
    this.#last = now;
  }
}
