/*
 * Faults: what happens to an event between its being built and its subscribers. A fault looks at an event and answers
 * with a fate, or null for "not mine"; the first answer counts. A fate is the list of waits (milliseconds) after which
 * a copy is delivered:
 *
 *   []               dropped
 *   [0]              delivered
 *   [250]            delayed; what comes after it overtakes it
 *   [0, 0]           delivered twice
 *   ['after-next']   held back until the next event of the same id has gone
 *
 * A fault may also change the message on its way: see messageFaults.ts. All that want to may do so, one after the other.
 */
import type { EventType } from '../../src/protocol/record.ts';
import type { EventSubject } from './groundTruth.ts';
import { randomFor } from './random.ts';

/** What a fault may decide by. */
export interface SimulatedEvent extends EventSubject {
  readonly event: number;
  readonly type: EventType;
  readonly createdNs: bigint;
  /** Whether anybody is subscribed. Faults drawn by chance leave the others alone. */
  readonly live: boolean;
}

export type EventFate = readonly (number | 'after-next')[];
export interface EventFault {
  readonly name: string;
  readonly decide: (event: SimulatedEvent) => EventFate | null;
  /** The message as it is sent instead, and what was done to it; null: as it is. */
  readonly distort?: (event: SimulatedEvent, message: Uint8Array) => MessageChange | null;
}

export interface MessageChange {
  readonly message: Uint8Array;
  readonly detail: string;
}

const DELIVERED: EventFate = [0];

/** Drops what a predicate says: for tests that choose exactly. */
export function dropWhen(predicate: (event: SimulatedEvent) => 'deliver' | 'drop'): EventFault {
  return { name: 'drop', decide: (event) => (predicate(event) === 'drop' ? [] : null) };
}

export interface EventFaultOptions {
  readonly seed: number;
  readonly probability: number;
  /** Only these types; undefined: all. */
  readonly types?: readonly EventType[] | undefined;
}

/** Loses each live event with a probability. */
export const drop = (how: EventFaultOptions): EventFault => byChance('drop', how, []);

/** Holds each live event back with a probability. */
export const delay = (how: EventFaultOptions, ms: number): EventFault => byChance('delay', how, [ms]);

/** Sends each live event twice with a probability. */
export const duplicate = (how: EventFaultOptions): EventFault => byChance('duplicate', how, [0, 0]);

/** Lets an event be overtaken by the next one of its id. A DELETED is the last of its id and stays where it is. */
export function reorder(how: EventFaultOptions): EventFault {
  const { name, decide } = byChance('reorder', how, ['after-next']);
  return { name, decide: (event) => (event.type === 'DELETED' ? null : decide(event)) };
}

/** Leaves holes in the backlog: each event that nobody was there to hear is lost with a probability. */
export function backlogHoles({ seed, probability, types }: EventFaultOptions): EventFault {
  const decide = (event: SimulatedEvent): EventFate | null => {
    if (event.live || types?.includes(event.type) === false) return null;
    return randomFor(seed, 'hole', event.id, event.type).chance(probability) ? [] : null;
  };
  return { name: 'backlog_hole', decide };
}

// The draw belongs to the id and the type: the same seed loses the same events, whatever else happens in between.
function byChance(name: string, how: EventFaultOptions, fate: EventFate): EventFault {
  const decide = (event: SimulatedEvent): EventFate | null => {
    if (!event.live || how.types?.includes(event.type) === false) return null;
    return randomFor(how.seed, name, event.id, event.type).chance(how.probability) ? fate : null;
  };
  return { name, decide };
}

/** A message after everything that changes it. */
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

/** The first fault that wants this event, and its fate. */
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
