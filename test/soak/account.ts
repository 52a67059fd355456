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

interface Gap {
  readonly from: number;
  /** Null while it is open. */
  readonly to: number | null;
}

/** That the kubelet's own status showed a start or a stop, by a watch that was there since then. Only containers have one. */
export interface Sight extends Transition {
  readonly watchedSince: number;
  readonly isTerminating: boolean;
}

/** A finding that the kubelet's status did not show it when the agent asked. */
interface StoredLate {
  readonly id: string;
  readonly type: EventType;
  readonly asked: number;
}

/** What the witness at the kubelet saw, and what the database says of that. */
export interface StatusEvidence extends Pick<SoakEvidence, 'transitions' | 'stored'> {
  readonly sights: readonly Sight[];
  /** How many starts and stops are counted as kubelet lag. */
  readonly counted: Readonly<Record<'STARTED' | 'STOPPED', number>>;
  readonly late: readonly StoredLate[];
  /** Of the stream, of the kubelet's status, and of the whole agent. */
  readonly gaps: readonly Gap[];
}

export interface SoakEvidence {
  readonly transitions: readonly Transition[];
  readonly passed: readonly PassedEvent[];
  /** `id TYPE` of each stored event. */
  readonly stored: ReadonlySet<string>;
  readonly findings: readonly StoredFinding[];
  /** Of the stream or of the whole agent. */
  readonly gaps: readonly Gap[];
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

export interface StatusAccount {
  /** Starts and stops that the kubelet's status showed to the witness, and those that are counted as kubelet lag. */
  readonly shownStarts: number;
  readonly countedStarts: number;
  readonly shownStops: number;
  readonly countedStops: number;
  /** Of the shown ones, those that must be counted: outside every gap, of a pod that is not terminating, with an event. */
  readonly clearlyShown: number;
  /** Milliseconds until the witness saw the one that was shown last. */
  readonly longestLag: number;
  readonly late: number;
  /** Accused of not having shown what the witness had seen by then. */
  readonly falselyLate: readonly string[];
  /** More were counted than were shown, or fewer than had to be. */
  readonly miscounted: readonly string[];
}

/** A gap within this time of an event ends what was due of it: 30 s until the judgement, and two relists. */
const JUDGED_WITHIN_MS = 42_000;
/** How far apart two processes may date the same moment. */
const BLUR_MS = 2_000;
/** A lag is counted once its exact time is known, within 15 s. */
const COUNTED_WITHIN_MS = 20_000;
/** What takes longer may be asked for meanwhile. */
const PROMPT_MS = 9_000;

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

export function statusAccount({ transitions, stored, ...status }: StatusEvidence): StatusAccount {
  const happened = new Map(transitions.map((each) => [keyOf(each), each.at]));
  const firstSeen = new Map(status.sights.map((each) => [keyOf(each), each.at]));
  const lags = status.sights.flatMap((sight) => {
    const at = happened.get(keyOf(sight));
    return at === undefined || sight.watchedSince > at - BLUR_MS ? [] : [{ ...sight, happened: at }];
  });
  const isInGap = (from: number, until: number): boolean =>
    status.gaps.some((gap) => gap.from < until + BLUR_MS && (gap.to ?? Infinity) > from - BLUR_MS);
  const clear = lags.filter(
    (lag) =>
      !lag.isTerminating &&
      lag.at - lag.happened < PROMPT_MS &&
      stored.has(keyOf(lag)) &&
      !isInGap(lag.happened, lag.at + COUNTED_WITHIN_MS),
  );
  const of = (all: readonly Transition[], type: EventType) => all.filter((each) => each.type === type).length;
  const miscounted = (['STARTED', 'STOPPED'] as const).flatMap((type) => {
    const [is, atLeast, atMost] = [status.counted[type], of(clear, type), of(status.sights, type)];
    return is >= atLeast && is <= atMost ? [] : [`${type}: ${is} counted, of ${atLeast} to ${atMost}`];
  });
  const falselyLate = status.late.filter(
    (late) => (firstSeen.get(keyOf(late)) ?? Infinity) < late.asked - BLUR_MS,
  );
  return {
    shownStarts: of(status.sights, 'STARTED'),
    countedStarts: status.counted.STARTED,
    shownStops: of(status.sights, 'STOPPED'),
    countedStops: status.counted.STOPPED,
    clearlyShown: clear.length,
    longestLag: Math.round(Math.max(0, ...lags.map((lag) => lag.at - lag.happened))),
    late: status.late.length,
    falselyLate: falselyLate.map(keyOf),
    miscounted,
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
