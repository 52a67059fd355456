/*
 * Event faults: what happens to an event on its way to the subscribers. For each event a fault returns a fate, or null when
 * it does not apply; the first fate counts. A fate is the list of waits (milliseconds) after which a copy is delivered:
 *
 *   []               dropped
 *   [0]              delivered
 *   [250]            delayed; later events overtake it
 *   [0, 0]           delivered twice
 *   ['after-next']   held until the next event of the same id is sent
 *
 * A fault may also change the message (see messageFaults.ts). All such faults apply, one after the other.
 */
import type { EventType } from '../../src/protocol/record.ts';
import type { EventSubject } from './groundTruth.ts';
import { randomFor } from './random.ts';

/** The event as faults see it. */
export interface SimulatedEvent extends EventSubject {
  readonly event: number;
  readonly type: EventType;
  readonly createdNs: bigint;
  /** Whether there is a subscriber. Faults with a probability apply to live events only. */
  readonly live: boolean;
}

export type EventFate = readonly (number | 'after-next')[];
export interface EventFault {
  readonly name: string;
  readonly decide: (event: SimulatedEvent) => EventFate | null;
  /** The changed message and a description; null: unchanged. */
  readonly distort?: (event: SimulatedEvent, message: Uint8Array) => MessageChange | null;
}

export interface MessageChange {
  readonly message: Uint8Array;
  readonly detail: string;
}

const DELIVERED: EventFate = [0];

/** Drops the events that a predicate selects. */
export function dropWhen(predicate: (event: SimulatedEvent) => 'deliver' | 'drop'): EventFault {
  return { name: 'drop', decide: (event) => (predicate(event) === 'drop' ? [] : null) };
}

export interface EventFaultOptions {
  readonly seed: number;
  readonly probability: number;
  /** Only events of these types. Default: all. */
  readonly types?: readonly EventType[] | undefined;
}

/** Drops each live event with a probability. */
export const drop = (how: EventFaultOptions): EventFault => byChance('drop', how, []);

/** Delays each live event with a probability. */
export const delay = (how: EventFaultOptions, ms: number): EventFault => byChance('delay', how, [ms]);

/** Sends each live event twice with a probability. */
export const duplicate = (how: EventFaultOptions): EventFault => byChance('duplicate', how, [0, 0]);

/** Lets the next event of the same id overtake an event. A DELETED is the last of its id and is not affected. */
export function reorder(how: EventFaultOptions): EventFault {
  const { name, decide } = byChance('reorder', how, ['after-next']);
  return { name, decide: (event) => (event.type === 'DELETED' ? null : decide(event)) };
}

/** Drops each event without a subscriber with a probability, which leaves holes in the backlog. */
export function backlogHoles({ seed, probability, types }: EventFaultOptions): EventFault {
  const decide = (event: SimulatedEvent): EventFate | null => {
    if (event.live || types?.includes(event.type) === false) return null;
    return randomFor(seed, 'hole', event.id, event.type).chance(probability) ? [] : null;
  };
  return { name: 'backlog_hole', decide };
}

// Drawn from the id and the type, so that the same seed drops the same events, whatever else happens.
function byChance(name: string, how: EventFaultOptions, fate: EventFate): EventFault {
  const decide = (event: SimulatedEvent): EventFate | null => {
    if (!event.live || how.types?.includes(event.type) === false) return null;
    return randomFor(how.seed, name, event.id, event.type).chance(how.probability) ? fate : null;
  };
  return { name, decide };
}

/** Applies all faults that change the message. */
export function distorted(faults: readonly EventFault[], event: SimulatedEvent, message: Uint8Array) {
  const changes: { readonly fault: string; readonly detail: string }[] = [];
  let present = message;
  for (const { name, distort } of faults) {
    const change = distort?.(event, present) ?? null;
    if (change === null) continue;
    present = change.message;
    changes.push({ fault: name, detail: change.detail });
  }
  return { message: present, changes };
}

/** The first fault that applies to this event, and its fate. */
export function fateOf(
  faults: readonly EventFault[],
  event: SimulatedEvent,
): { readonly fault: string | null; readonly fate: EventFate } {
  for (const { name, decide } of faults) {
    const fate = decide(event);
    if (fate !== null) return { fault: name, fate };
  }
  return { fault: null, fate: DELIVERED };
}
