/*
 * Simulated time, for tests in which a seed alone decides what happens and in which order. Timers, clocks and dates are Vitest's; a timer fires
 * only once everything that the one before set going has come to rest.
 *
 * Code that runs under it may wait for timers, for promises and for turns of the event loop. Real input, output and threads have times of
 * their own, and must be replaced.
 */
import { vi } from 'vitest';

/** This many turns of the event loop without anything new: a promise needs none, and a simulated call to a disk one. */
const QUIET_TURNS = 3;
const { setImmediate } = globalThis;

export class SimulatedTime {
  #timers: NodeJS.Timeout[] = [];
  #happened = 0;

  begin(wall: number): void {
    vi.useFakeTimers({
      now: wall,
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'hrtime', 'performance'],
    });
    const { setTimeout, setInterval } = globalThis;
    Object.assign(globalThis, { setTimeout: this.#kept(setTimeout), setInterval: this.#kept(setInterval) });
  }

  end(): void {
    vi.useRealTimers();
  }

  /** To be called whenever something begins that may have consequences. */
  happened(): void {
    this.#happened += 1;
  }

  async pass(ms: number): Promise<void> {
    let isOver = false;
    setTimeout(() => {
      isOver = true;
    }, ms);
    for (await this.#rest(); !isOver; await this.#rest()) vi.advanceTimersToNextTimer();
  }

  /** Steps the wall clock alone. */
  stepWall(ms: number): void {
    vi.setSystemTime(Date.now() + ms);
  }

  /** The owner of the timers has died. */
  forgetTimers(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers = [];
  }

  #kept<A extends unknown[]>(set: (...args: A) => NodeJS.Timeout): (...args: A) => NodeJS.Timeout {
    return (...args) => {
      const timer = set(...args);
      this.#timers.push(timer);
      return timer;
    };
  }

  async #rest(): Promise<void> {
    for (let quiet = 0, seen = this.#happened; quiet < QUIET_TURNS; quiet += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      if (seen !== this.#happened) quiet = 0;
      seen = this.#happened;
    }
  }
}
