/*
 * The way of an event from its being built to its subscribers: faults first, then the profile's habit.
 *
 *   broadcast   every subscriber gets every event
 *   steal       each event goes to the subscriber that has waited longest. One that has left still takes its turn once,
 *               and what it takes is lost (containerd 1.7 does that)
 *   nobody      events wait in the backlog; the first to subscribe gets those that the profile still keeps
 */
import type { Clock } from './clock.ts';
import { type Fault, fateOf, type SimulatedEvent } from './faults.ts';
import type { Profile } from './profiles.ts';
import type { EventFact, Subject, Truth } from './truth.ts';

/** Where a subscriber's events go. */
export interface Outlet {
  readonly number: number;
  readonly send: (message: Uint8Array) => void;
}

/** An event as it was built, before anybody knows who gets it. */
export interface BuiltEvent extends Omit<SimulatedEvent, 'event' | 'live'> {
  readonly message: Uint8Array;
}

interface NumberedEvent extends SimulatedEvent {
  readonly message: Uint8Array;
  readonly builtAt: number;
}

export interface ChannelOptions {
  readonly profile: Profile;
  readonly clock: Clock;
  readonly truth: Truth;
  /** Asked for every event; may change between two calls. */
  readonly faults: () => readonly Fault[];
  /** Runs something later; never after the channel was closed. */
  readonly later: (ms: number, run: () => void) => void;
}

export class EventChannel {
  readonly #options: ChannelOptions;
  #outlets: { readonly outlet: Outlet; gone: boolean }[] = [];
  #backlog: NumberedEvent[] = [];
  /** By id: events that the next one of their id overtakes. */
  #held = new Map<string, NumberedEvent>();
  #events = 0;
  #everSubscribed = false;

  constructor(options: ChannelOptions) {
    this.#options = options;
  }

  get subscribers(): number {
    return this.#outlets.filter(({ gone }) => !gone).length;
  }

  publish(built: BuiltEvent): void {
    this.#events += 1;
    const live = this.#outlets.length > 0;
    const event = { ...built, event: this.#events, live, builtAt: this.#options.clock().mono };
    const { fault, fate } = fateOf(this.#options.faults(), event);
    if (fault !== null) this.#noteFault(fault, event, fate.join(', '));
    if (fate.length === 0) this.#note(event, [], {});
    const overtaken = this.#held.get(event.id);
    this.#held.delete(event.id);
    for (const wait of fate) {
      if (wait === 0) this.#distribute(event);
      else if (wait === 'after-next') this.#held.set(event.id, event);
      else this.#options.later(wait, () => this.#distribute(event));
    }
    if (overtaken !== undefined) this.#distribute(overtaken);
  }

  subscribe(outlet: Outlet): void {
    this.#expire();
    const waiting = this.#backlog;
    this.#backlog = [];
    this.#everSubscribed = true;
    this.#outlets.push({ outlet, gone: false });
    for (const event of waiting) {
      outlet.send(event.message);
      this.#note(event, [outlet.number], { replayed: true });
    }
  }

  unsubscribe(number: number): void {
    const steals = this.#options.profile.stream === 'steal';
    for (const entry of this.#outlets) if (entry.outlet.number === number) entry.gone = true;
    if (!steals) this.#outlets = this.#outlets.filter(({ gone }) => !gone);
  }

  /** The runtime's process went away: whoever listened is gone, and so is what waited. */
  reset(): void {
    this.#outlets = [];
    this.#backlog = [];
    this.#held.clear();
    this.#everSubscribed = false;
  }

  #distribute(event: NumberedEvent): void {
    if (this.#outlets.length === 0) this.#keep(event);
    else if (this.#options.profile.stream === 'steal') this.#toOne(event);
    else this.#toAll(event);
  }

  #toAll(event: NumberedEvent): void {
    const to = this.#outlets.map(({ outlet }) => outlet.number);
    this.#note(event, to, {});
    for (const { outlet } of [...this.#outlets]) outlet.send(event.message);
  }

  #toOne(event: NumberedEvent): void {
    const next = this.#outlets.shift();
    if (next === undefined) return;
    if (next.gone) {
      this.#noteFault('taken_by_the_departed', event, `subscriber ${next.outlet.number} had left`);
      this.#note(event, [], {});
      return;
    }
    this.#outlets.push(next);
    this.#note(event, [next.outlet.number], {});
    next.outlet.send(event.message);
  }

  #keep(event: NumberedEvent): void {
    const { backlog, stream } = this.#options.profile;
    this.#expire();
    const none = stream === 'unimplemented' || stream === 'disabled';
    const tooLate = backlog.when === 'never-subscribed' && this.#everSubscribed;
    const kept = !none && !tooLate && this.#backlog.length < backlog.events;
    if (kept) this.#backlog.push(event);
    this.#note(event, [], { queued: kept });
  }

  #expire(): void {
    const oldest = this.#options.clock().mono - this.#options.profile.backlog.ageMs * 1000;
    const fresh = this.#backlog.findIndex(({ builtAt }) => builtAt >= oldest);
    for (const event of this.#backlog.splice(0, fresh < 0 ? this.#backlog.length : fresh)) {
      this.#noteFault('backlog_discarded', event, 'nobody subscribed in time');
    }
  }

  #noteFault(fault: string, event: NumberedEvent, detail: string): void {
    const { event: number, id, type } = event;
    this.#options.truth.record({ what: 'fault', fault, event: number, id, type, detail });
  }

  #note(event: NumberedEvent, to: readonly number[], more: Partial<EventFact>): void {
    const { type, live, event: number } = event;
    const fate = { to, delivered: to.length > 0, queued: false, replayed: false, ...more };
    const createdNs = String(event.createdNs);
    this.#options.truth.record({
      what: 'event',
      event: number,
      ...subjectOf(event),
      type,
      createdNs,
      live,
      ...fate,
    });
  }
}

function subjectOf({ id, sandbox, isSandbox, pod, container, attempt }: SimulatedEvent): Subject {
  return { id, sandbox, isSandbox, pod, container, attempt };
}
