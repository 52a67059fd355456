/*
 * The way of an event from its being built to its subscribers: faults first, then the profile's habit.
 *
 *   broadcast   every subscriber gets every event. One without room holds up the others: events stand in line, without
 *               end where the runtime then freezes, else up to a limit, and the newest are lost
 *   steal       each event goes to the subscriber that has waited longest. One that has left still takes its turn once,
 *               and what it takes is lost (containerd 1.7 does that)
 *   nobody      events wait in the backlog; the first to subscribe gets those that the profile still keeps
 */
import { Backlog, type BacklogOptions, type NumberedEvent } from './backlog.ts';
import { distorted, type EventFault, fateOf, type SimulatedEvent } from './eventFaults.ts';
import type { EventFact } from './groundTruth.ts';
import { subjectOfEvent } from './podModel.ts';

/** Where a subscriber's events go. */
export interface EventReceiver {
  readonly number: number;
  readonly send: (message: Uint8Array) => void;
  /** Whether it can take one more; left out: always. Whoever had none calls {@link EventChannel.resume} when it has. */
  readonly hasRoom?: () => boolean;
}

/** An event as it was built, before anybody knows who gets it. */
export interface BuiltEvent extends Omit<SimulatedEvent, 'event' | 'live'> {
  readonly message: Uint8Array;
  /** Nothing happened: the runtime only says so. */
  readonly spurious?: boolean;
}

export interface ChannelOptions extends BacklogOptions {
  /** Asked for every event; may change between two calls. */
  readonly faults: () => readonly EventFault[];
  /** Runs something later; never after the channel was closed. */
  readonly later: (ms: number, run: () => void) => void;
  /** The last so many events are sent again to whoever subscribes. Default 0. */
  readonly replay?: number;
  /** An event is for a subscriber that has left, and this runtime may not survive that. True: it did not. */
  readonly crash?: () => boolean;
}

export class EventChannel {
  readonly #options: ChannelOptions;
  readonly #backlog: Backlog;
  #outlets: { readonly outlet: EventReceiver; gone: boolean }[] = [];
  /** Subscribers that a frozen runtime has not let in yet. */
  #atTheDoor: EventReceiver[] = [];
  /** Events that wait for room. */
  #line: NumberedEvent[] = [];
  /** The last events, for those who subscribe later. */
  #recent: NumberedEvent[] = [];
  /** By id: events that the next one of their id overtakes. */
  #held = new Map<string, NumberedEvent>();
  #waitingForFlow: (() => void)[] = [];
  #events = 0;
  #somebodyLeft = false;
  #resuming = false;
  /** Counts the lives of the process. */
  #life = 0;

  constructor(options: ChannelOptions) {
    this.#options = options;
    this.#backlog = new Backlog(options);
  }

  get subscribers(): number {
    return this.#outlets.filter(({ gone }) => !gone).length;
  }

  /** Whether the runtime stands still because a subscriber does not read. */
  get frozen(): boolean {
    return this.#options.profile.slow.effect === 'freeze' && this.#line.length > 0;
  }

  /** Runs something as soon as the runtime does not stand still: at once, if it does not. */
  whenFlowing(run: () => void): void {
    if (this.frozen) this.#waitingForFlow.push(run);
    else run();
  }

  publish(built: BuiltEvent): void {
    this.#events += 1;
    const live = this.subscribers > 0;
    const asBuilt = { spurious: false, ...built, event: this.#events, live };
    const { message, changes } = distorted(this.#options.faults(), asBuilt, built.message);
    const changed = changes.map(({ fault }) => fault);
    const event = { ...asBuilt, message, changed, builtAt: this.#options.clock().mono };
    for (const { fault, detail } of changes) this.#noteFault(fault, event, detail);
    if (this.#crashes(event)) return;
    this.#meet(event);
    this.#remember(event);
  }

  subscribe(outlet: EventReceiver): void {
    if (this.frozen) {
      this.#atTheDoor.push(outlet);
      return;
    }
    const waiting = this.#backlog.take();
    this.#outlets.push({ outlet, gone: false });
    this.#sendAgain(outlet, waiting);
    for (const event of waiting) {
      this.#note(event, [outlet.number], { replayed: true });
      outlet.send(event.message);
    }
  }

  unsubscribe(number: number): void {
    const lasting = this.#options.profile.stream === 'steal';
    for (const entry of this.#outlets) {
      if (entry.outlet.number !== number) continue;
      entry.gone = true;
      this.#somebodyLeft = true;
    }
    if (!lasting) this.#outlets = this.#outlets.filter(({ gone }) => !gone);
    this.#atTheDoor = this.#atTheDoor.filter((outlet) => outlet.number !== number);
    this.resume();
  }

  /** A subscriber has room again, or has left: what stands in line moves up. */
  resume(): void {
    // Sending may end a subscriber, whose leaving asks for this again; the loop that is under way sees to it.
    if (this.#resuming) return;
    this.#resuming = true;
    while (this.#line.length > 0 && this.#hasRoom()) {
      const next = this.#line.shift();
      if (next !== undefined) this.#send(next);
    }
    this.#resuming = false;
    if (this.frozen) return;
    for (const outlet of this.#atTheDoor.splice(0)) this.subscribe(outlet);
    for (const run of this.#waitingForFlow.splice(0)) this.whenFlowing(run);
  }

  /** The runtime's process went away: whoever listened is gone, and so is what waited. */
  reset(): void {
    for (const event of this.#line.splice(0)) this.#lose('lost_in_line', event, 'the runtime went down');
    for (const event of this.#held.values()) this.#lose('lost_in_delay', event, 'the runtime went down');
    this.#life += 1;
    this.#outlets = [];
    this.#atTheDoor = [];
    this.#recent = [];
    this.#backlog.reset();
    this.#held.clear();
    this.#somebodyLeft = false;
    this.resume();
  }

  #meet(event: NumberedEvent): void {
    const { fault, fate } = fateOf(this.#options.faults(), event);
    if (fault !== null) this.#noteFault(fault, event, fate.join(', '));
    if (fate.length === 0) this.#note(event, [], {});
    const overtaken = this.#held.get(event.id);
    this.#held.delete(event.id);
    for (const wait of fate) {
      if (wait === 0) this.#distribute(event);
      else {
        this.#note(event, [], { queued: true });
        if (wait === 'after-next') this.#held.set(event.id, event);
        else this.#holdBack(wait, event);
      }
    }
    if (overtaken !== undefined) this.#distribute(overtaken);
  }

  #holdBack(ms: number, event: NumberedEvent): void {
    const life = this.#life;
    this.#options.later(ms, () => {
      if (life === this.#life) this.#distribute(event);
      else this.#lose('lost_in_delay', event, 'the runtime went down');
    });
  }

  #distribute(event: NumberedEvent): void {
    if (this.#outlets.length === 0 && this.#line.length === 0) this.#keep(event);
    else if (this.#line.length === 0 && this.#hasRoom()) this.#send(event);
    else this.#standInLine(event);
  }

  #standInLine(event: NumberedEvent): void {
    const { effect, events } = this.#options.profile.slow;
    if (effect !== 'freeze' && this.#line.length >= events) {
      this.#lose('line_full', event, 'a subscriber does not read');
      return;
    }
    if (this.#line.length === 0) this.#noteFault('held_up', event, 'a subscriber does not read');
    this.#line.push(event);
    this.#note(event, [], { queued: true });
  }

  #hasRoom(): boolean {
    const free = ({ outlet, gone }: { readonly outlet: EventReceiver; readonly gone: boolean }) =>
      gone || outlet.hasRoom?.() !== false;
    if (this.#options.profile.stream !== 'steal') return this.#outlets.every(free);
    return this.#outlets.length === 0 || this.#outlets.some(free);
  }

  #send(event: NumberedEvent): void {
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
    const at = this.#outlets.findIndex(({ outlet, gone }) => gone || outlet.hasRoom?.() !== false);
    const [next] = this.#outlets.splice(at, 1);
    if (next === undefined) return;
    if (next.gone) {
      this.#lose('taken_by_the_departed', event, `subscriber ${next.outlet.number} had left`);
      return;
    }
    this.#outlets.push(next);
    this.#note(event, [next.outlet.number], {});
    next.outlet.send(event.message);
  }

  #keep(event: NumberedEvent): void {
    this.#note(event, [], { queued: this.#backlog.keep(event) });
  }

  #crashes(event: NumberedEvent): boolean {
    if (!this.#somebodyLeft || !this.#options.profile.crashesOnDisconnect) return false;
    this.#somebodyLeft = false;
    if (this.#options.crash?.() !== true) return false;
    this.#lose('crash', event, 'it was for a subscriber that had left');
    return true;
  }

  #remember(event: NumberedEvent): void {
    const { replay = 0 } = this.#options;
    if (replay === 0) return;
    this.#recent = [...this.#recent, event].slice(-replay);
  }

  #sendAgain(outlet: EventReceiver, waiting: readonly NumberedEvent[]): void {
    const again = this.#recent.filter((event) => !waiting.includes(event));
    for (const event of again) {
      this.#noteFault('replay', event, `sent again to subscriber ${outlet.number}`);
      this.#note(event, [outlet.number], { replayed: true });
      outlet.send(event.message);
    }
  }

  #lose(fault: string, event: NumberedEvent, detail: string): void {
    this.#noteFault(fault, event, detail);
    this.#note(event, [], {});
  }

  #noteFault(fault: string, event: NumberedEvent, detail: string): void {
    const { event: number, id, type } = event;
    this.#options.truth.record({ what: 'fault', fault, event: number, id, type, detail });
  }

  #note(event: NumberedEvent, to: readonly number[], more: Partial<EventFact>): void {
    const { type, live, spurious, changed, event: number } = event;
    const delivery = { to, delivered: to.length > 0, queued: false, replayed: false, ...more };
    const built = { event: number, ...subjectOfEvent(event), type, createdNs: String(event.createdNs), live };
    this.#options.truth.record({ what: 'event', ...built, spurious, changed, ...delivery });
  }
}
