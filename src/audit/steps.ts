/*
 * The steps of an epoch: what the agent's comparison was given, in the order in which it was given it, as far as the store has it.
 *
 * Each relist says which events came before it.
 */
import type { PlegProfile } from '../protocol/eventProfile.ts';
import { type Mono, millis, mono, shift } from '../protocol/units.ts';
import { Lookahead } from './lookahead.ts';
import type {
  StoredChange,
  StoredEpoch,
  StoredEvent,
  StoredGap,
  StoredRelist,
  StoredRuntime,
  StoredSession,
} from './storedEpoch.ts';

export type Step =
  /** `upcoming`: what the next relist found changed. */
  | {
      readonly is: 'event';
      readonly at: Mono;
      readonly event: StoredEvent;
      readonly upcoming: readonly StoredChange[];
    }
  | {
      readonly is: 'relist';
      readonly at: Mono;
      readonly relist: StoredRelist;
      readonly changes: readonly StoredChange[];
    }
  /** A change that no relist on record can have found. */
  | { readonly is: 'stray'; readonly at: Mono; readonly change: StoredChange }
  | { readonly is: 'opened'; readonly at: Mono; readonly openedNs: bigint }
  | { readonly is: 'ended'; readonly at: Mono; readonly state: 'down' | 'absent' }
  /** From here on the reader drained nothing, until the next gap or the end of its session. */
  | { readonly is: 'stalled'; readonly at: Mono }
  | { readonly is: 'gap'; readonly at: Mono; readonly cause: string }
  | { readonly is: 'runtime'; readonly at: Mono; readonly profile: PlegProfile }
  /** The wall clock less the monotonic clock, from here on. */
  | { readonly is: 'clock'; readonly at: Mono; readonly clock: number };

/** A gap that lasts while there is no subscription that has proven itself: the sessions say the same. */
const WITHOUT_SESSION = 'unproven';
/** Gaps that last while there is no subscription on purpose. */
const WITHOUT_SUBSCRIPTION: ReadonlySet<string> = new Set(['unsafe', 'unsupported', 'disabled', 'off']);
/** The comparison finds these itself, from the events. */
const FOUND_AGAIN: ReadonlySet<string> = new Set(['too_many_ids']);
/** A longer gap of a loss is several losses: it is not on record when each of them was. */
const ONE_LOSS = millis(2_500);
const STALLS: ReadonlySet<string> = new Set(['agent_stalled', 'reader_stalled']);
const LOSSES: ReadonlySet<string> = new Set(['malformed_event', 'reader_overflow']);
const BETWEEN_LOSSES = millis(1_000);
/** No event is built after this. */
const NEVER_NS = 2n ** 63n;

export async function* stepsOf(epoch: StoredEpoch): AsyncGenerator<Step> {
  const boundaries = new Boundaries(epoch);
  const relists = new RelistSteps(epoch);
  const events = new Lookahead(epoch.events);
  for (;;) {
    const event = await events.peek();
    const next = firstOf(event, await relists.peek());
    if (next === null || next.at > epoch.end) break;
    // A container that ended after an event that is still to come had not ended yet.
    yield* boundaries.until(mono(Math.min(next.at, event?.received ?? next.at)), seqOf(next));
    yield next;
    if (next.is === 'event') await events.take();
    else await relists.take();
  }
  yield* boundaries.until(epoch.end, null);
}

type RelistStep = Extract<Step, { is: 'relist' | 'stray' | 'clock' }>;

function seqOf(step: Step): number | null {
  if (step.is === 'event') return step.event.seq;
  return step.is === 'relist' ? (step.changes[0]?.seq ?? null) : null;
}

function firstOf(event: StoredEvent | null, next: RelistStep | null): Step | null {
  if (event === null) return next;
  const upcoming = next?.is === 'relist' ? next.changes : [];
  const eventStep: Step = { is: 'event', at: event.received, event, upcoming };
  if (next === null) return eventStep;
  const eventsTo = next.is === 'relist' ? next.relist.eventsTo : next.at;
  return event.received <= eventsTo ? eventStep : next;
}

/** Relists with the changes that they found. */
class RelistSteps {
  readonly #changes: Lookahead<StoredChange>;
  readonly #minutes: StoredEpoch['minutes'];
  readonly #lastMinute: number;
  readonly #steps: Lookahead<RelistStep>;

  constructor({ changes, minutes, lastMinute }: StoredEpoch) {
    this.#changes = new Lookahead(changes);
    this.#minutes = minutes;
    this.#lastMinute = lastMinute;
    this.#steps = new Lookahead(this.#all());
  }

  peek(): Promise<RelistStep | null> {
    return this.#steps.peek();
  }

  take(): Promise<RelistStep | null> {
    return this.#steps.take();
  }

  async *#all(): AsyncGenerator<RelistStep> {
    for await (const { from, clock, relists } of this.#minutes) {
      yield { is: 'clock', at: from, clock };
      for (const relist of relists) {
        const { sandboxes, containers } = relist;
        if (relist.failed) {
          yield { is: 'relist', at: containers.end, relist, changes: [] };
          continue;
        }
        yield* this.#strays((change) => change.to < sandboxes.end);
        const found = await this.#changes.takeWhile(
          (change) => change.to === (change.identity.isSandbox ? sandboxes : containers).end,
        );
        yield { is: 'relist', at: containers.end, relist, changes: found };
      }
    }
    yield* this.#strays((change) => change.seq < this.#lastMinute);
  }

  async *#strays(isStray: (change: StoredChange) => boolean): AsyncGenerator<RelistStep> {
    for (const change of await this.#changes.takeWhile(isStray)) yield { is: 'stray', at: change.to, change };
  }
}

/** The steps that sessions, gaps and runtimes report, in the order of time. An end comes first among steps at one time. */
class Boundaries {
  readonly #boundaries: Step[];
  readonly #runtimes: StoredRuntime[];

  constructor({ sessions, gaps, runtimes, start, end }: StoredEpoch) {
    const boundaries: Step[] = [...gaps.flatMap(gapSteps), ...sessions.flatMap(sessionSteps)];
    const order: readonly Step['is'][] = ['gap', 'ended', 'opened', 'stalled'];
    this.#boundaries = boundaries
      .map((step) => (step.at < start ? { ...step, at: start } : step))
      .filter((step) => step.at <= end)
      .sort((a, b) => a.at - b.at || order.indexOf(a.is) - order.indexOf(b.is));
    this.#runtimes = runtimes.slice(1);
  }

  /** Those before a step at this time, with this seq. */
  *until(at: Mono, seq: number | null): Generator<Step> {
    const upTo = this.#boundaries.findIndex((step) => step.at > at);
    yield* this.#boundaries.splice(0, upTo === -1 ? this.#boundaries.length : upTo);
    if (seq === null) return;
    const runtimes = this.#runtimes.filter((runtime) => runtime.seq <= seq);
    for (const { profile } of this.#runtimes.splice(0, runtimes.length)) yield { is: 'runtime', at, profile };
  }
}

function sessionSteps({ opened, closed, firstLiveNs }: StoredSession): Step[] {
  // The comparison learns from the first event that was built after the subscription that the replay has ended.
  const begin: Step = { is: 'opened', at: opened, openedNs: firstLiveNs ?? NEVER_NS };
  return closed === null ? [begin] : [begin, { is: 'ended', at: closed, state: 'down' }];
}

function gapSteps({ cause, from, to }: StoredGap): Step[] {
  if (WITHOUT_SUBSCRIPTION.has(cause)) return [{ is: 'ended', at: from, state: 'absent' }];
  // It begins when the reader had last drained everything.
  if (cause === 'broken') return [{ is: 'stalled', at: from }];
  if (to === null || cause === WITHOUT_SESSION || FOUND_AGAIN.has(cause)) return [];
  const steps: Step[] = STALLS.has(cause) && from < to ? [{ is: 'stalled', at: from }] : [];
  if (LOSSES.has(cause) && to - from > ONE_LOSS) {
    for (let at = shift(from, BETWEEN_LOSSES); at < to; at = shift(at, BETWEEN_LOSSES)) {
      steps.push({ is: 'gap', at, cause });
    }
  }
  return [...steps, { is: 'gap', at: to, cause }];
}
