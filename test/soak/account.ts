/*
 * The account of a run: what independent witnesses and the proxy saw, held against what the database says. Pure.
 */
import type { EventType } from '../../src/protocol/record.ts';

export interface Transition {
  readonly id: string;
  readonly type: EventType;
  /** Wall clock in milliseconds, when the witness saw it. */
  readonly at: number;
}

/** An event that the proxy passed on or dropped, or (without a proxy) that must have been sent. */
export interface PassedEvent extends Transition {
  readonly dropped: boolean;
  /** Wall clock in milliseconds: the latest moment at which it can have been sent, where that is not `at`. */
  readonly until?: number;
}

interface StoredFinding {
  readonly id: string;
  readonly type: EventType;
  readonly kind: string;
  readonly cause: string;
  readonly resolved: boolean;
}

/** A gap of the stream, of the whole agent, or of what an agent had not decided when it ended. */
export interface Gap {
  readonly from: number;
  /** Null while it is open. */
  readonly to: number | null;
}

export interface SoakEvidence {
  /** The transitions in containerd, by `ctr events`. */
  readonly transitions: readonly Transition[];
  /** `id TYPE` of each event that another subscriber of the CRI received. */
  readonly heard: ReadonlySet<string>;
  readonly passed: readonly PassedEvent[];
  /** `id TYPE` of each stored event. */
  readonly stored: readonly string[];
  readonly findings: readonly StoredFinding[];
  readonly gaps: readonly Gap[];
}

export interface SoakAccount {
  /** Containers and sandboxes that the witness saw created and deleted. */
  readonly completed: number;
  readonly transitions: number;
  readonly delivered: number;
  readonly drops: number;
  /** The drops that are reported as missed, those that are declared unobservable, and those that happened in a gap. */
  readonly missed: number;
  readonly unobservable: number;
  readonly inGap: number;
  /** How many of the unobservable drops have which cause. */
  readonly causes: Readonly<Record<string, number>>;
  /** Drops that nothing in the database speaks of. */
  readonly overlooked: readonly string[];
  /** Reported as missed and not resolved, though the event was passed on, the other subscriber received it, or nothing happened. */
  readonly falseMisses: readonly string[];
  /** Reported as missed, and neither passed on nor dropped: the runtime itself announced nothing of what the witness saw. */
  readonly neverAnnounced: readonly string[];
  /** Received by the other subscriber outside every gap, and neither passed on nor dropped. */
  readonly notPassed: readonly string[];
  /** Passed on outside every gap, and not stored. */
  readonly lost: readonly string[];
  /** Stored more often than passed on. */
  readonly storedTwice: readonly string[];
}

/** How far apart two processes may date the same moment. */
export const BLUR_MS = 2_000;

export const keyOf = ({ id, type }: { readonly id: string; readonly type: EventType }): string =>
  `${id} ${type}`;

export function account({ transitions, heard, passed, stored, findings, gaps }: SoakEvidence): SoakAccount {
  const happened = new Set(transitions.map(keyOf));
  const delivered = passed.filter(({ dropped }) => !dropped);
  const deliveredCounts = countOf(delivered.map(keyOf));
  const storedCounts = countOf(stored);
  // The same event may be dropped for one session and passed on in another.
  const drops = passed.filter((event) => event.dropped && !deliveredCounts.has(keyOf(event)));
  const dropped = new Set(drops.map(keyOf));
  const missed = findings.filter(({ kind, resolved }) => kind === 'missed' && !resolved);
  const missedKeys = new Set(missed.map(keyOf));
  const causeOf = new Map(
    findings.filter(({ kind }) => kind === 'unobservable').map((finding) => [keyOf(finding), finding.cause]),
  );
  const isInGap = ({ at, until = at }: PassedEvent): boolean =>
    gaps.some(({ from, to }) => until > from - BLUR_MS && at < (to ?? Infinity) + BLUR_MS);

  const unreported = drops.filter((event) => !missedKeys.has(keyOf(event)) && !causeOf.has(keyOf(event)));
  const created = new Set(transitions.filter(({ type }) => type === 'CREATED').map(({ id }) => id));
  const notDropped = missed.map(keyOf).filter((key) => !dropped.has(key));
  const isFalse = (key: string) => deliveredCounts.has(key) || heard.has(key) || !happened.has(key);
  const passedKeys = new Set(passed.map(keyOf));
  return {
    completed: transitions.filter(({ id, type }) => type === 'DELETED' && created.has(id)).length,
    transitions: transitions.length,
    delivered: delivered.length,
    drops: drops.length,
    missed: drops.filter((event) => missedKeys.has(keyOf(event))).length,
    unobservable: drops.filter((event) => causeOf.has(keyOf(event))).length,
    inGap: unreported.filter(isInGap).length,
    causes: Object.fromEntries(countOf(drops.flatMap((event) => causeOf.get(keyOf(event)) ?? []))),
    overlooked: unreported.filter((event) => !isInGap(event)).map(keyOf),
    falseMisses: notDropped.filter(isFalse),
    neverAnnounced: notDropped.filter((key) => !isFalse(key)),
    notPassed: announced(transitions)
      .filter((event) => heard.has(keyOf(event)) && !passedKeys.has(keyOf(event)) && !isInGap(event))
      .map(keyOf),
    lost: delivered
      .filter((event) => (storedCounts.get(keyOf(event)) ?? 0) === 0 && !isInGap(event))
      .map(keyOf),
    storedTwice: [...storedCounts]
      .filter(([key, count]) => count > (deliveredCounts.get(key) ?? 0))
      .map(([key]) => key),
  };
}

/**
 * The events that a runtime must send for what a witness saw. A runtime announces a transition only when its call has all but ended, which on a busy
 * machine is seconds later (containerd announces CREATED of a sandbox after its network and its start), but before the next transition begins.
 */
export function announced(transitions: readonly Transition[]): readonly PassedEvent[] {
  const next = new Map<string, number>();
  return transitions
    .toReversed()
    .map((transition) => {
      const until = next.get(transition.id) ?? transition.at;
      next.set(transition.id, transition.at);
      return { ...transition, until, dropped: false };
    })
    .reverse();
}

function countOf(keys: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** The faults: one line for each event. */
export const faultsOf = ({ overlooked, falseMisses, notPassed, lost, storedTwice }: SoakAccount): string[] =>
  Object.entries({
    overlooked,
    'missed falsely': falseMisses,
    'not passed': notPassed,
    lost,
    'stored twice': storedTwice,
  }).flatMap(([fault, keys]) => keys.map((key) => `${fault}: ${key}`));

/** In words: counts as they are, and how long the lists are. */
export const figuresOf = ({ causes, ...figures }: SoakAccount): string =>
  [
    ...Object.entries(figures).map(
      ([name, value]) => `${wordsOf(name)} ${Array.isArray(value) ? value.length : value}`,
    ),
    ...Object.entries(causes).map(([cause, count]) => `unobservable by ${cause} ${count}`),
  ].join(', ');

const wordsOf = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
