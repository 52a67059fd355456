/*
 * Events that wait while there is no subscriber. The profile says whether they wait, how many, and for how long.
 */
import type { Clock } from './clock.ts';
import type { SimulatedEvent } from './eventFaults.ts';
import type { GroundTruthLog } from './groundTruth.ts';
import type { Profile } from './profiles.ts';

export interface NumberedEvent extends SimulatedEvent {
  readonly message: Uint8Array;
  readonly builtAt: number;
  readonly spurious: boolean;
  readonly changed: readonly string[];
}

export interface BacklogOptions {
  readonly profile: Profile;
  readonly clock: Clock;
  readonly truth: GroundTruthLog;
}

export class Backlog {
  readonly #options: BacklogOptions;
  #events: NumberedEvent[] = [];
  #everTaken = false;

  constructor(options: BacklogOptions) {
    this.#options = options;
  }

  /** Keeps an event if the profile allows; returns whether it did. */
  keep(event: NumberedEvent): boolean {
    const { backlog, stream } = this.#options.profile;
    this.#expire();
    const none = stream === 'unimplemented' || stream === 'disabled';
    const tooLate = backlog.when === 'never-subscribed' && this.#everTaken;
    const kept = !none && !tooLate && this.#events.length < backlog.events;
    if (kept) this.#events.push(event);
    return kept;
  }

  /** Removes and returns all events that are still kept. */
  take(): readonly NumberedEvent[] {
    this.#expire();
    this.#everTaken = true;
    return this.#events.splice(0);
  }

  /** The process went down, which loses the backlog. */
  reset(): void {
    this.#events = [];
    this.#everTaken = false;
  }

  #expire(): void {
    const oldest = this.#options.clock().mono - this.#options.profile.backlog.ageMs * 1000;
    const fresh = this.#events.findIndex(({ builtAt }) => builtAt >= oldest);
    for (const { event, id, type } of this.#events.splice(0, fresh < 0 ? this.#events.length : fresh)) {
      const detail = 'no subscriber in time';
      this.#options.truth.record({ what: 'fault', fault: 'backlog_discarded', event, id, type, detail });
    }
  }
}
