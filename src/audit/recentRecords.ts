/*
 * When the last records were made: what a finding says that it rests on must be one of them.
 */
import { EVENT_TYPES } from '../protocol/record.ts';
import { type Mono, mono } from '../protocol/units.ts';
import type { Step } from './steps.ts';
import type { StoredChange, StoredEvent, StoredRelist } from './storedEpoch.ts';

/** Changes within this time may have reached the agent in another order. */
const AT_ONCE = 1_000_000;

export class RecentRecords {
  /** How long a sandbox is listed after its DELETED. */
  lead = 0;
  /** The wall clock less the monotonic clock; null while it is not known. */
  clock: number | null = null;
  /** When list calls began, when incomplete ones did, and when the stream was interrupted or began. */
  readonly #lists = new Set<number>();
  readonly #incomplete = new Set<number>();
  readonly #interruptions = new Set<number>();
  /** By type and id, and by type, id and time: when events were received. */
  readonly #firstEvents = new Map<string, Mono>();
  readonly #events = new Map<string, Mono>();
  /** By type, id and time of receipt: when events were built. */
  readonly #built = new Map<string, Mono>();
  /** When lists last showed an id CREATED or UNKNOWN. */
  readonly #unknown = new Map<string, Mono>();

  add(step: Step): void {
    if (step.is === 'relist') this.#addRelist(step.relist, step.changes, step.at);
    else if (step.is === 'event') this.#addEvent(step.event);
    else if (step.is === 'gap' || step.is === 'ended' || step.is === 'opened')
      this.#interruptions.add(step.at);
  }

  /** Whether a list call that began then may be the lower bound of a window: a sandbox's removal is announced early. */
  boundedBy(at: number): boolean {
    return this.#lists.has(at) || this.#lists.has(at + this.lead);
  }

  /** Whether an event was received then; `event`: as evidence names it, `STARTED of` and the id. */
  receivedEvent(event: string, at: number): boolean {
    return this.#events.has(`${event} ${at}`);
  }

  /** When an event was built that was received then, to within the error of the wall clock; null if that is not on record. */
  builtAt(event: string, received: number): Mono | null {
    return this.#built.get(`${event} ${received}`) ?? null;
  }

  /** Whether any event of this type was received of this id before a moment. */
  receivedBefore(type: string, id: string, at: number): boolean {
    const first = this.#firstEvents.get(`${type} of ${id}`);
    return first !== undefined && first < at;
  }

  /**
   * Whether a list since then does not say what it seems to: one that was incomplete, and one that showed the id CREATED or
   * UNKNOWN, which a kubelet does not distinguish.
   */
  isDoubtful(id: string, since: number): boolean {
    const unknown = this.#unknown.get(id);
    if (unknown !== undefined && unknown >= since) return true;
    return [...this.#incomplete].some((at) => at >= since);
  }

  /** Whether a list showed the id CREATED or UNKNOWN. */
  wasUnknown(id: string): boolean {
    return this.#unknown.has(id);
  }

  /** Whether the stream was interrupted, or began, at about that moment. */
  interruptedNear(at: number): boolean {
    return [...this.#interruptions].some((each) => Math.abs(each - at) <= AT_ONCE);
  }

  forget(before: Mono): void {
    for (const times of [this.#lists, this.#incomplete, this.#interruptions]) {
      for (const at of times) if (at < before) times.delete(at);
    }
    for (const times of [this.#firstEvents, this.#events, this.#built, this.#unknown]) {
      for (const [key, at] of times) if (at < before) times.delete(key);
    }
  }

  #addRelist({ sandboxes, containers }: StoredRelist, changes: readonly StoredChange[], at: Mono): void {
    for (const { start, whole } of [sandboxes, containers]) {
      this.#lists.add(start);
      if (!whole) this.#incomplete.add(start);
    }
    for (const { identity, newState, oldState } of changes) {
      if (newState === 'unknown' || oldState === 'unknown') this.#unknown.set(identity.id, at);
    }
  }

  #addEvent({ id, received, type, createdNs }: StoredEvent): void {
    const event = `${EVENT_TYPES[type]} of ${id}`;
    this.#events.set(`${event} ${received}`, received);
    if (this.clock !== null)
      this.#built.set(`${event} ${received}`, mono(Number(createdNs / 1000n) - this.clock));
    if (!this.#firstEvents.has(event)) this.#firstEvents.set(event, received);
  }
}
