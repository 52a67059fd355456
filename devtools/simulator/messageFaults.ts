/*
 * Message faults: they change the content of an event, or replace it by malformed bytes. Which events are hit is drawn from
 * the seed, id and type, as for every fault.
 */
import { ContainerEventResponse, ContainerStatus } from '../../src/cri/runtime.ts';
import type { EventFault, EventFaultOptions, MessageChange, SimulatedEvent } from './eventFaults.ts';
import { type Random, randomFor } from './random.ts';

type EventChange = (event: ContainerEventResponse, random: Random) => ContainerEventResponse;

/** The kinds of a wrong `created_at`. */
const CREATED_AT: Readonly<Record<string, (ns: bigint) => bigint>> = {
  seconds: (ns) => ns / 1_000_000_000n,
  zero: () => 0n,
  future: (ns) => ns + 10n * 365n * 86_400n * 1_000_000_000n,
};
export type WrongCreatedAt = 'seconds' | 'zero' | 'future';
export const WRONG_CREATED_AT: readonly WrongCreatedAt[] = ['seconds', 'zero', 'future'];

/** Sends created_at in seconds, as 0, or ten years ahead. */
export function wrongCreatedAt(how: EventFaultOptions, as: WrongCreatedAt): EventFault {
  const wrong = CREATED_AT[as] ?? ((ns) => ns);
  return changing('created_at', how, as, (event) => ({ ...event, createdAt: wrong(event.createdAt) }));
}

/** Sends events without the sandbox's status, as a runtime does when it cannot look it up. */
export const nilStatus = (how: EventFaultOptions): EventFault =>
  changing('nil_status', how, 'no pod_sandbox_status', (event) => ({
    ...event,
    podSandboxStatus: undefined,
  }));

/** Omits the container statuses, or adds an empty one. */
export function partialStatuses(how: EventFaultOptions): EventFault {
  const change: EventChange = (event, random) => ({
    ...event,
    containersStatuses: random.chance(0.5) ? [] : [EMPTY_STATUS, ...event.containersStatuses],
  });
  return changing('partial_statuses', how, 'containers_statuses are incomplete', change);
}

const EMPTY_STATUS = ContainerStatus.fromPartial({});

/** The kinds of malformed messages. Field 1 is the id in events and list items, field 2 of an event its type. */
const MANGLERS = {
  mutated: (bytes: Uint8Array, random: Random) => mutate(bytes, random),
  random: (bytes: Uint8Array, random: Random) => noise(bytes.length, random),
  truncated: (bytes: Uint8Array) => bytes.subarray(0, Math.floor(bytes.length / 2)),
  'huge-id': (bytes: Uint8Array) => withId(bytes, 'f'.repeat(1024 ** 2)),
  nul: (bytes: Uint8Array) => withId(bytes, `a\0${'b'.repeat(62)}`),
  'unknown-enum': (bytes: Uint8Array) => Buffer.concat([bytes, Buffer.from([2 << 3, 99])]),
};
export type Malformation = keyof typeof MANGLERS;
export const MALFORMATIONS = Object.keys(MANGLERS) as Malformation[];

/** Malforms one message; deterministic for the same random generator. */
export const mangle = (bytes: Uint8Array, as: Malformation, random: Random): Uint8Array =>
  MANGLERS[as](bytes, random);

/** Sends malformed events, of a kind that is drawn for each. */
export function malformed(
  how: EventFaultOptions,
  kinds: readonly Malformation[] = MALFORMATIONS,
): EventFault {
  return distorting('malformed', how, (message, random) => {
    const [kind = 'mutated'] = random.shuffle(kinds);
    return { message: mangle(message, kind, random), detail: kind };
  });
}

function changing(name: string, how: EventFaultOptions, detail: string, change: EventChange): EventFault {
  return distorting(name, how, (message, random) => {
    const event = decodeOrNull(message);
    if (event === null) return null;
    return { message: ContainerEventResponse.encode(change(event, random)).finish(), detail };
  });
}

/** Null where an earlier fault left a malformed message. */
function decodeOrNull(message: Uint8Array): ContainerEventResponse | null {
  try {
    return ContainerEventResponse.decode(message);
  } catch {
    return null;
  }
}

function distorting(
  name: string,
  { seed, probability, types }: EventFaultOptions,
  change: (message: Uint8Array, random: Random) => MessageChange | null,
): EventFault {
  const distort = (event: SimulatedEvent, message: Uint8Array): MessageChange | null => {
    if (types?.includes(event.type) === false) return null;
    const random = randomFor(seed, name, event.id, event.type);
    return random.chance(probability) ? change(message, random) : null;
  };
  return { name, decide: () => null, distort };
}

function mutate(bytes: Uint8Array, random: Random): Uint8Array {
  const copy = Uint8Array.from(bytes);
  for (let n = 0; n < 3 && copy.length > 0; n += 1) {
    copy[Math.floor(random.between(0, copy.length))] = Math.floor(random.between(0, 256));
  }
  return copy;
}

const noise = (length: number, random: Random): Uint8Array =>
  Uint8Array.from({ length: Math.max(length, 16) }, () => Math.floor(random.between(0, 256)));

// A later field 1 replaces an earlier one.
function withId(bytes: Uint8Array, containerId: string): Uint8Array {
  const event = ContainerEventResponse.fromPartial({ containerId });
  return Buffer.concat([bytes, ContainerEventResponse.encode(event).finish()]);
}
