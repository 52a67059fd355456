/*
 * Call faults: what happens to a list call between its request and its answer. A fault looks at a call and answers with a
 * fate, or null for "not mine"; the fates of all of them come together.
 */
import type { status } from '@grpc/grpc-js';
import type { Malformation } from './messageFaults.ts';
import { randomFor } from './random.ts';

export type ListName = 'listPodSandbox' | 'listContainers' | 'streamPodSandboxes' | 'streamContainers';

export interface ListFate {
  /** How long the answer takes; infinity: there is none. The moment that it shows lies somewhere in between. */
  readonly waitMs?: number;
  /** It fails with this status; a streaming list after its first batch. */
  readonly code?: status;
  /** Every item grows by so many bytes. */
  readonly padBytes?: number;
  /** The answer grows until it is larger than this. */
  readonly padToBytes?: number;
  readonly malformation?: Malformation;
}

/** A call, numbered from 1 among those of its kind. */
export interface NumberedListCall {
  readonly call: ListName;
  readonly number: number;
}

export interface ListFault {
  readonly name: string;
  readonly decide: (call: NumberedListCall) => ListFate | null;
}

/** Which of the calls are hit, and how often. Without a word: both, always. */
export interface ListFaultOptions {
  readonly seed: number;
  readonly probability?: number;
  readonly of?: 'sandboxes' | 'containers' | 'both';
}

/** Takes so long to answer. */
export const slowLists = (how: ListFaultOptions, ms: number): ListFault =>
  byChance('list_slow', how, { waitMs: ms });

/** Never answers. */
export const hangingLists = (how: ListFaultOptions): ListFault =>
  byChance('list_hang', how, { waitMs: Number.POSITIVE_INFINITY });

/** Fails with a status. */
export const failingLists = (how: ListFaultOptions, code: status): ListFault =>
  byChance('list_fails', how, { code });

/** Makes every item larger. */
export const paddedLists = (how: ListFaultOptions, bytes: number): ListFault =>
  byChance('list_padded', how, { padBytes: bytes });

/** Makes answers larger than a client takes. */
export const oversizedLists = (how: ListFaultOptions, bytes = 17 * 1024 ** 2): ListFault =>
  byChance('list_oversized', how, { padToBytes: bytes });

/** Answers with bytes that are no good list. */
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

/** The faults that want this call, and their fates in one. */
export function listFateOf(faults: readonly ListFault[], call: NumberedListCall) {
  const hits = faults.flatMap(({ name, decide }) => {
    const fate = decide(call);
    return fate === null ? [] : [{ name, fate }];
  });
  const fate: ListFate = Object.assign({}, ...hits.map((hit) => hit.fate));
  return { names: hits.map(({ name }) => name), fate };
}
