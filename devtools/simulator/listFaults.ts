/*
 * List faults: what happens to a list call between its request and its response. For each call a fault returns a fate, or
 * null when it does not apply; the fates of all faults are merged.
 */
import type { status } from '@grpc/grpc-js';
import type { Malformation } from './messageFaults.ts';
import { randomFor } from './random.ts';

export type CriListName = 'listPodSandbox' | 'listContainers' | 'streamPodSandboxes' | 'streamContainers';

export interface ListFate {
  /** How long the call takes; infinity: it never returns. The list shows the state of a moment during the call. */
  readonly waitMs?: number;
  /** The call fails with this status; a streaming list after its first batch. */
  readonly code?: status;
  /** Bytes added to every item. */
  readonly padBytes?: number;
  /** The response is padded to more than this many bytes. */
  readonly padToBytes?: number;
  readonly malformation?: Malformation;
}

/** A call with its number, counted from 1 for each method. */
export interface NumberedListCall {
  readonly call: CriListName;
  readonly number: number;
}

export interface ListFault {
  readonly name: string;
  readonly decide: (call: NumberedListCall) => ListFate | null;
}

/** Which calls are hit, and with which probability. Default: both lists, always. */
export interface ListFaultOptions {
  readonly seed: number;
  readonly probability?: number;
  readonly of?: 'sandboxes' | 'containers' | 'both';
}

/** The call takes `ms`. */
export const slowLists = (how: ListFaultOptions, ms: number): ListFault =>
  byChance('list_slow', how, { waitMs: ms });

/** The call never returns. */
export const hangingLists = (how: ListFaultOptions): ListFault =>
  byChance('list_hang', how, { waitMs: Number.POSITIVE_INFINITY });

/** The call fails with a status. */
export const failingLists = (how: ListFaultOptions, code: status): ListFault =>
  byChance('list_fails', how, { code });

/** Every item is larger. */
export const paddedLists = (how: ListFaultOptions, bytes: number): ListFault =>
  byChance('list_padded', how, { padBytes: bytes });

/** The response is larger than a client accepts. */
export const oversizedLists = (how: ListFaultOptions, bytes = 17 * 1024 ** 2): ListFault =>
  byChance('list_oversized', how, { padToBytes: bytes });

/** The response is malformed. */
export const malformedLists = (how: ListFaultOptions, malformation: Malformation): ListFault =>
  byChance('list_malformed', how, { malformation });

function byChance(name: string, how: ListFaultOptions, fate: ListFate): ListFault {
  const { seed, probability = 1, of = 'both' } = how;
  const decide = ({ call, number }: NumberedListCall): ListFate | null => {
    const isSandboxes = call === 'listPodSandbox' || call === 'streamPodSandboxes';
    if (of !== 'both' && (of === 'sandboxes') !== isSandboxes) return null;
    return randomFor(seed, name, call, number).chance(probability) ? fate : null;
  };
  return { name, decide };
}

/** The faults that apply to this call, and their merged fate. */
export function listFateOf(faults: readonly ListFault[], call: NumberedListCall) {
  const hits = faults.flatMap(({ name, decide }) => {
    const fate = decide(call);
    return fate === null ? [] : [{ name, fate }];
  });
  const fate: ListFate = Object.assign({}, ...hits.map((hit) => hit.fate));
  return { names: hits.map(({ name }) => name), fate };
}
