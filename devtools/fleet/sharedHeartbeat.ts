/*
 * The heartbeat of all readers of a process: a few wake-ups in each period, however many readers there are. A timer for each would wake the
 * process up for each. A reader whose time has passed while the process did not run beats as soon as it runs.
 */
import { HEARTBEAT } from '../../src/agent/observe/stream/frames.ts';
import { monoNow } from '../../src/platform/clock.ts';

const GROUPS = 9;
const TURN = HEARTBEAT / GROUPS;

export class SharedHeartbeat {
  readonly #groups: readonly Set<() => void>[] = Array.from({ length: GROUPS }, () => new Set());
  #timer: NodeJS.Timeout | undefined;
  #added = 0;
  /** The last turn, counted on the monotonic clock: in each one group beats. */
  #turn = 0;

  /** Calls `beat` once in each period, until the returned function is called. */
  add(beat: () => void): () => void {
    const group = this.#groups[this.#added % GROUPS];
    this.#added += 1;
    group?.add(beat);
    if (this.#timer === undefined) this.#start();
    return () => {
      group?.delete(beat);
      if (this.#groups.every(({ size }) => size === 0)) this.#stop();
    };
  }

  #start(): void {
    this.#turn = turnNow();
    this.#timer = setInterval(() => this.#beatDue(), TURN / 1000);
  }

  #beatDue(): void {
    const now = turnNow();
    const turns = Math.min(GROUPS, now - this.#turn);
    this.#turn = now;
    for (let n = 0; n < turns; n += 1)
      for (const beat of [...(this.#groups[(now - n) % GROUPS] ?? [])]) beat();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

const turnNow = (): number => Math.floor(monoNow() / TURN);
