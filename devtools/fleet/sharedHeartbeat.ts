/*
 * The heartbeat of all readers of a process: a few wake-ups in each period, however many readers there are. A timer for each would wake the
 * process up for each.
 */
import { HEARTBEAT } from '../../src/agent/observe/stream/frames.ts';

const GROUPS = 9;

export class SharedHeartbeat {
  readonly #groups: readonly Set<() => void>[] = Array.from({ length: GROUPS }, () => new Set());
  #timer: NodeJS.Timeout | undefined;
  #added = 0;
  #next = 0;

  /** Calls `beat` once in each period, until the returned function is called. */
  add(beat: () => void): () => void {
    const group = this.#groups[this.#added % GROUPS];
    this.#added += 1;
    group?.add(beat);
    this.#timer ??= setInterval(() => this.#beatNext(), HEARTBEAT / 1000 / GROUPS);
    return () => {
      group?.delete(beat);
      if (this.#groups.every(({ size }) => size === 0)) this.#stop();
    };
  }

  #beatNext(): void {
    this.#next += 1;
    for (const beat of [...(this.#groups[this.#next % GROUPS] ?? [])]) beat();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
