/*
 * The account of the kubelet's own status in a soak: what a witness at the kubelet's PodsAPI saw, held against what the database says. Pure.
 */
import type { EventType } from '../../src/protocol/record.ts';
import { BLUR_MS, type Gap, keyOf, type Transition } from './account.ts';

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

/** The evidence of the witness at the kubelet, and what the database says of that. */
export interface StatusEvidence {
  readonly transitions: readonly Transition[];
  /** `id TYPE` of each stored event. */
  readonly stored: ReadonlySet<string>;
  readonly sights: readonly Sight[];
  /** How many starts and stops are counted as kubelet lag. */
  readonly counted: Readonly<Record<'STARTED' | 'STOPPED', number>>;
  readonly late: readonly StoredLate[];
  /** Gaps of the stream, of the kubelet's status, and of the whole agent. */
  readonly gaps: readonly Gap[];
}

export interface StatusAccount {
  /** Starts and stops that the kubelet's status showed to the witness, and those that are counted as kubelet lag. */
  readonly shownStarts: number;
  readonly countedStarts: number;
  readonly shownStops: number;
  readonly countedStops: number;
  /** The shown ones that must be counted: outside every gap, of a pod that is not terminating, with an event. */
  readonly clearlyShown: number;
  /** Milliseconds until the witness saw the one that was shown last. */
  readonly longestLag: number;
  readonly late: number;
  /** Accused of not having shown what the witness had seen by then. */
  readonly falselyLate: readonly string[];
  /** More were counted than were shown, or fewer than had to be. */
  readonly miscounted: readonly string[];
}

/** A lag is counted once its exact time is known, within 15 s. */
const COUNTED_WITHIN_MS = 20_000;
/** Slower answers may be asked for meanwhile. */
const PROMPT_MS = 9_000;

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

/** The faults: one line for each. */
export const statusFaultsOf = ({ falselyLate, miscounted }: StatusAccount): string[] => [
  ...falselyLate.map((key) => `late falsely: ${key}`),
  ...miscounted.map((what) => `miscounted: ${what}`),
];

/** In words. */
export const statusFiguresOf = (account: StatusAccount): string =>
  [
    `shown starts ${account.shownStarts} and stops ${account.shownStops}`,
    `counted ${account.countedStarts} and ${account.countedStops}, of them clearly shown ${account.clearlyShown}`,
    `longest lag ${account.longestLag} ms, late ${account.late}`,
  ].join(', ');
