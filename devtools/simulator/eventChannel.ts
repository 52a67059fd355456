/*
 * The path of an event from the runtime to its subscribers: first the faults, then the profile's behavior.
 *
 *   broadcast       every subscriber receives every event. A subscriber without room blocks the others: events queue,
 *                   without limit where the runtime then freezes, otherwise up to a limit, and the newest are lost
 *   steal           each event goes to the subscriber that has waited longest. One that has left still takes one event,
 *                   which is lost (as in containerd 1.7)
 *   no subscriber   events wait in the backlog; the first subscriber receives those that the profile still keeps
 */
import { Backlog, type BacklogOptions, type NumberedEvent } from './backlog.ts';
import { distorted, type EventFault, fateOf, type SimulatedEvent } from './eventFaults.ts';
import type { EventFact } from './groundTruth.ts';
import { Neighbour } from './neighbour.ts';
import { subjectOfEvent } from './podModel.ts';

/** The receiving end of a subscriber. */
export interface EventReceiver {
  readonly number: number;
  readonly send: (message: Uint8Array) => void;
  /** Whether it can take one more event. Default: always. After false it calls {@link EventChannel.resume} when it has room. */
  readonly hasRoom?: () => boolean;
}

/** An event as it was built, before it is distributed. */
export interface BuiltEvent extends Omit<SimulatedEvent, 'event' | 'live'> {
  readonly message: Uint8Array;
  /** Announced although nothing happened. */
  readonly spurious?: boolean;
}

export interface ChannelOptions extends BacklogOptions {
  /** Called for every event; the faults may change between events. */
  readonly faults: () => readonly EventFault[];
  /** Runs a callback later. */
  readonly later: (ms: number, run: () => void) => void;
  /** How many of the latest events are sent again to each new subscriber. Default 0. */
  readonly replay?: number;
  /** Called at an event for a subscriber that has left, which may crash this runtime; returns whether it crashed. */
  readonly crash?: () => boolean;
}

export class EventChannel {
  readonly neighbour: Neighbour;
  readonly #options: ChannelOptions;
  readonly #backlog: Backlog;
  #receivers: { readonly receiver: EventReceiver; gone: boolean }[] = [];
  /** Subscribers that a frozen runtime has not accepted yet. */
  #pendingReceivers: EventReceiver[] = [];
  /** Events that wait for room. */
  #queue: NumberedEvent[] = [];
  /** The latest events, for replay to new subscribers. */
  #recent: NumberedEvent[] = [];
  /** By container id: events held until the next event of the same id. */
  #held = new Map<string, NumberedEvent>();
  #waitingForFlow: (() => void)[] = [];
  #events = 0;
  #subscriberLeft = false;
  #resuming = false;
  /** Counts the starts of the runtime's process. */
  #processRun = 0;

  constructor(options: ChannelOptions) {
    this.#options = options;
    this.#backlog = new Backlog(options);
    this.neighbour = new Neighbour({
      get profile() {
        return options.profile;
      },
      onRoom: () => this.resume(),
    });
  }

  get subscribers(): number {
    return this.#receivers.filter(({ gone }) => !gone).length;
  }

  /** Whether the runtime is frozen by a subscriber that does not read. */
  get frozen(): boolean {
    return this.#options.profile.slow.effect === 'freeze' && this.#queue.length > 0;
  }

  /** Runs a callback as soon as the runtime is not frozen. */
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
    for (const { fault, detail } of changes) this.#recordFault(fault, event, detail);
    if (this.#crashes(event)) return;
    this.#applyFaults(event);
    this.#remember(event);
  }

  subscribe(receiver: EventReceiver): void {
    if (this.frozen) {
      this.#pendingReceivers.push(receiver);
      return;
    }
    const waiting = this.#backlog.take();
    this.#receivers.push({ receiver, gone: false });
    this.#replay(receiver, waiting);
    for (const event of waiting) {
      this.#record(event, [receiver.number], { replayed: true });
      receiver.send(event.message);
    }
  }

  unsubscribe(number: number): void {
    const lasting = this.#options.profile.stream === 'steal';
    for (const entry of this.#receivers) {
      if (entry.receiver.number !== number) continue;
      entry.gone = true;
      this.#subscriberLeft = true;
    }
    if (!lasting) this.#receivers = this.#receivers.filter(({ gone }) => !gone);
    this.#pendingReceivers = this.#pendingReceivers.filter((receiver) => receiver.number !== number);
    this.resume();
  }

  /** Sends queued events, because a subscriber has room again or has left. */
  resume(): void {
    // Sending may end a subscriber, which calls this again; the running loop covers that.
    if (this.#resuming) return;
    this.#resuming = true;
    while (this.#queue.length > 0 && this.#hasRoom()) {
      const next = this.#queue.shift();
      if (next !== undefined) this.#send(next);
    }
    this.#resuming = false;
    if (this.frozen) return;
    for (const receiver of this.#pendingReceivers.splice(0)) this.subscribe(receiver);
    for (const run of this.#waitingForFlow.splice(0)) this.whenFlowing(run);
  }

  /** The runtime's process went down: subscribers and waiting events are lost. */
  reset(): void {
    for (const event of this.#queue.splice(0)) this.#lose('lost_in_queue', event, 'the runtime went down');
    for (const event of this.#held.values()) this.#lose('lost_in_delay', event, 'the runtime went down');
    this.#processRun += 1;
    this.#receivers = [];
    this.#pendingReceivers = [];
    this.#recent = [];
    this.#backlog.reset();
    this.#held.clear();
    this.#subscriberLeft = false;
    this.neighbour.thaw();
    this.resume();
  }

  #applyFaults(event: NumberedEvent): void {
    const { fault, fate } = fateOf(this.#options.faults(), event);
    if (fault !== null) this.#recordFault(fault, event, fate.join(', '));
    if (fate.length === 0) this.#record(event, [], {});
    const overtaken = this.#held.get(event.id);
    this.#held.delete(event.id);
    for (const wait of fate) {
      if (wait === 0) this.#distribute(event);
      else {
        this.#record(event, [], { queued: true });
        if (wait === 'after-next') this.#held.set(event.id, event);
        else this.#holdBack(wait, event);
      }
    }
    if (overtaken !== undefined) this.#distribute(overtaken);
  }

  #holdBack(ms: number, event: NumberedEvent): void {
    const run = this.#processRun;
    this.#options.later(ms, () => {
      if (run === this.#processRun) this.#distribute(event);
      else this.#lose('lost_in_delay', event, 'the runtime went down');
    });
  }

  #distribute(event: NumberedEvent): void {
    if (this.#receivers.length === 0 && this.#queue.length === 0) this.#addToBacklog(event);
    else if (this.#queue.length === 0 && this.#hasRoom()) this.#send(event);
    else this.#enqueue(event);
  }

  #enqueue(event: NumberedEvent): void {
    const { effect, events } = this.#options.profile.slow;
    if (effect !== 'freeze' && this.#queue.length >= events) {
      this.#lose('queue_full', event, 'a subscriber does not read');
      return;
    }
    if (this.#queue.length === 0) this.#recordFault('held_up', event, 'a subscriber does not read');
    this.#queue.push(event);
    this.#record(event, [], { queued: true });
  }

  #hasRoom(): boolean {
    const free = ({ receiver, gone }: { readonly receiver: EventReceiver; readonly gone: boolean }) =>
      gone || receiver.hasRoom?.() !== false;
    if (this.#options.profile.stream !== 'steal')
      return this.neighbour.hasRoom() && this.#receivers.every(free);
    return this.#receivers.length === 0 || this.#receivers.some(free);
  }

  #send(event: NumberedEvent): void {
    if (this.#receivers.length === 0) this.#addToBacklog(event);
    else if (this.#options.profile.stream === 'steal') this.#toOne(event);
    else this.#toAll(event);
  }

  #toAll(event: NumberedEvent): void {
    this.neighbour.take();
    const to = this.#receivers.map(({ receiver }) => receiver.number);
    this.#record(event, to, {});
    for (const { receiver } of [...this.#receivers]) receiver.send(event.message);
  }

  #toOne(event: NumberedEvent): void {
    const at = this.#receivers.findIndex(({ receiver, gone }) => gone || receiver.hasRoom?.() !== false);
    const [next] = this.#receivers.splice(at, 1);
    if (next === undefined) return;
    if (next.gone) {
      this.#lose('taken_after_leaving', event, `subscriber ${next.receiver.number} had left`);
      return;
    }
    this.#receivers.push(next);
    this.#record(event, [next.receiver.number], {});
    next.receiver.send(event.message);
  }

  #addToBacklog(event: NumberedEvent): void {
    this.#record(event, [], { queued: this.#backlog.keep(event) });
  }

  #crashes(event: NumberedEvent): boolean {
    if (!this.#subscriberLeft || this.#options.profile.crashesOnDisconnect !== 'next-event') return false;
    this.#subscriberLeft = false;
    if (this.#options.crash?.() !== true) return false;
    this.#lose('crash', event, 'it was for a subscriber that had left');
    return true;
  }

  #remember(event: NumberedEvent): void {
    const { replay = 0 } = this.#options;
    if (replay === 0) return;
    this.#recent = [...this.#recent, event].slice(-replay);
  }

  #replay(receiver: EventReceiver, waiting: readonly NumberedEvent[]): void {
    const again = this.#recent.filter((event) => !waiting.includes(event));
    for (const event of again) {
      this.#recordFault('replay', event, `sent again to subscriber ${receiver.number}`);
      this.#record(event, [receiver.number], { replayed: true });
      receiver.send(event.message);
    }
  }

  #lose(fault: string, event: NumberedEvent, detail: string): void {
    this.#recordFault(fault, event, detail);
    this.#record(event, [], {});
  }

  #recordFault(fault: string, event: NumberedEvent, detail: string): void {
    const { event: number, id, type } = event;
    this.#options.truth.record({ what: 'fault', fault, event: number, id, type, detail });
  }

  #record(event: NumberedEvent, to: readonly number[], more: Partial<EventFact>): void {
    const { type, live, spurious, changed, event: number } = event;
    const delivery = { to, delivered: to.length > 0, queued: false, replayed: false, ...more };
    const built = { event: number, ...subjectOfEvent(event), type, createdNs: String(event.createdNs), live };
    this.#options.truth.record({ what: 'event', ...built, spurious, changed, ...delivery });
  }
}
