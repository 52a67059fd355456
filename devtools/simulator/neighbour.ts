/*
 * A neighbour: another subscriber of the simulated runtime, such as a kubelet or a relay. It reads everything, until it is frozen: then it
 * takes as many events as fit between a runtime and a process that reads none, and no more until it is thawed.
 *
 * It is no subscriber in the ground truth, takes no backlog, and changes nothing while it reads.
 */
import type { Profile } from './profiles.ts';

export interface NeighbourOptions {
  readonly profile: Profile;
  /** Called when it accepts events again. */
  readonly onRoom: () => void;
}

export class Neighbour {
  readonly #options: NeighbourOptions;
  #frozen = false;
  #unread = 0;

  constructor(options: NeighbourOptions) {
    this.#options = options;
  }

  /** Whether it can take one more event. Where each subscriber has its own queue, or its events go to others, it always can. */
  hasRoom(): boolean {
    const { effect, room } = this.#options.profile.slow;
    const blocks = effect === 'freeze' || effect === 'delay';
    return !this.#frozen || !blocks || this.#unread < room;
  }

  take(): void {
    if (this.#frozen) this.#unread += 1;
  }

  freeze(): void {
    this.#frozen = true;
  }

  /** It reads what it has and everything that follows. Also called when the runtime ends its stream. */
  thaw(): void {
    this.#frozen = false;
    this.#unread = 0;
    this.#options.onRoom();
  }
}
