/*
 * The account of a soak: what an independent witness and the proxy saw, held against what the database says. Pure.
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
  readonly resolved: boolean;
}

/** Of the stream or of the whole agent. */
interface StreamGap {
  readonly from: number;
  /** Null while it is open. */
  readonly to: number | null;
}

export interface SoakEvidence {
  readonly transitions: readonly Transition[];
  readonly passed: readonly PassedEvent[];
  /** `id TYPE` of each stored event. */
  readonly stored: ReadonlySet<string>;
  readonly findings: readonly StoredFinding[];
  readonly gaps: readonly StreamGap[];
}

export interface SoakAccount {
  /** Containers and sandboxes that the witness saw created and deleted. */
  readonly completed: number;
  readonly transitions: number;
  readonly delivered: number;
  readonly drops: number;
  /** Of the drops, those that are reported as missed, those that are declared unobservable, and those that a gap interrupted. */
  readonly missed: number;
  readonly unobservable: number;
  readonly inGap: number;
  /** Drops that nothing in the database speaks of. */
  readonly overlooked: readonly string[];
  /** Reported as missed and not resolved, though the event was passed on or its transition never happened. */
  readonly falseMisses: readonly string[];
  /** Reported as missed, and neither passed on nor dropped: the runtime itself announced nothing of what the witness saw. */
  readonly neverAnnounced: readonly string[];
  /** Passed on outside every gap, and not stored. */
  readonly lost: readonly string[];
}

/** A gap within this time of an event ends what was due of it: 30 s until the judgement, and two relists. */
const JUDGED_WITHIN_MS = 42_000;
/** How far apart two processes may date the same moment. */
const BLUR_MS = 2_000;

export const keyOf = ({ id, type }: { readonly id: string; readonly type: EventType }): string =>
  `${id} ${type}`;

export function account({ transitions, passed, stored, findings, gaps }: SoakEvidence): SoakAccount {
  const happened = new Set(transitions.map(keyOf));
  const delivered = passed.filter(({ dropped }) => !dropped);
  const deliveredKeys = new Set(delivered.map(keyOf));
  // The same event may be dropped for one session and passed on in another.
  const drops = passed.filter((event) => event.dropped && !deliveredKeys.has(keyOf(event)));
  const dropped = new Set(drops.map(keyOf));
  const missed = findings.filter(({ kind, resolved }) => kind === 'missed' && !resolved);
  const missedKeys = new Set(missed.map(keyOf));
  const unobservable = new Set(findings.filter(({ kind }) => kind === 'unobservable').map(keyOf));
  const isNearGap = ({ at, until = at }: PassedEvent, withinMs: number): boolean =>
    gaps.some(({ from, to }) => until > from - withinMs && at < (to ?? Infinity) + withinMs);
  const wasInterrupted = (event: PassedEvent): boolean => isNearGap(event, JUDGED_WITHIN_MS);

  const unreported = drops.filter(
    (event) => !missedKeys.has(keyOf(event)) && !unobservable.has(keyOf(event)),
  );
  const created = new Set(transitions.filter(({ type }) => type === 'CREATED').map(({ id }) => id));
  const notDropped = missed.map(keyOf).filter((key) => !dropped.has(key));
  return {
    completed: transitions.filter(({ id, type }) => type === 'DELETED' && created.has(id)).length,
    transitions: transitions.length,
    delivered: delivered.length,
    drops: drops.length,
    missed: drops.filter((event) => missedKeys.has(keyOf(event))).length,
    unobservable: drops.filter((event) => unobservable.has(keyOf(event))).length,
    inGap: unreported.filter(wasInterrupted).length,
    overlooked: unreported.filter((event) => !wasInterrupted(event)).map(keyOf),
    falseMisses: notDropped.filter((key) => deliveredKeys.has(key) || !happened.has(key)),
    neverAnnounced: notDropped.filter((key) => !deliveredKeys.has(key) && happened.has(key)),
    lost: delivered.filter((event) => !stored.has(keyOf(event)) && !isNearGap(event, BLUR_MS)).map(keyOf),
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
