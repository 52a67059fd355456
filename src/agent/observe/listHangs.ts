/*
 * List hangs: a list call that is not answered within five seconds.
 *
 *   answered ── a call is under way for 5 s ──► hangs ── answered, or failed ──► answered
 *                                                │ ▲
 *                                                └─┘ its deadline passed: the same call hangs on if the next relist cannot answer it either
 *
 * Only time in which this process runs counts: after it was held up, the answer may be waiting.
 */
import type { ListCallName } from '../../protocol/record.ts';
import { between, type Micros, type Mono, millis } from '../../protocol/units.ts';
import { SLOW_LIST } from './listGaps.ts';
import type { RunningList } from './relister.ts';

/** Ticks are half a second apart at most. A later one shows that this process was held up. */
const MAX_TICK: Micros = millis(1_000);

export interface ListHang {
  readonly call: ListCallName;
  readonly from: Mono;
  /** Null while it lasts. */
  readonly to: Mono | null;
  /** How long the call was waited for, in microseconds. */
  readonly waited: number;
}

export class ListHangs {
  /** The call that is under way, and how long it has been. */
  #running: RunningList | null = null;
  #waited = 0;
  #lastTick: Mono | null = null;
  #hang: { call: ListCallName; from: Mono; to: Mono | null; waited: number } | null = null;

  /** The same object until it has ended. */
  get hang(): ListHang | null {
    return this.#hang;
  }

  /** To be called regularly. */
  tick(running: RunningList | null, now: Mono): void {
    const passed = this.#lastTick === null ? 0 : Math.min(between(this.#lastTick, now), MAX_TICK);
    this.#lastTick = now;
    if (running !== null) this.#wait(running, Math.min(passed, between(running.since, now)), now);
  }

  /** Both lists were answered, the last of them at `at`. */
  answered(at: Mono): void {
    this.#end(at);
  }

  failed({ at, code }: { readonly at: Mono; readonly code: string }): void {
    if (code !== 'DEADLINE_EXCEEDED') this.#end(at);
  }

  #wait(running: RunningList, passed: number, now: Mono): void {
    if (running !== this.#running) this.#waited = 0;
    this.#running = running;
    this.#waited += passed;
    // The second call begins when the first was answered.
    if (running.call === 'ListContainers' && this.#hang?.call === 'ListPodSandbox') this.#end(now);
    if (this.#hang?.call === running.call) this.#hang.waited += passed;
    else if (this.#waited >= SLOW_LIST) {
      this.#end(now);
      this.#hang = { call: running.call, from: running.since, to: null, waited: this.#waited };
    }
  }

  #end(at: Mono): void {
    if (this.#hang !== null) this.#hang.to = at;
    this.#hang = null;
  }
}
