/*
 * Verdicts: the findings that the comparison hands out, and the proof each carries.
 */
import {
  type ContainerIdentity,
  EVENT_TYPES,
  type FindingKind,
  type RecordOf,
} from '../../protocol/record.ts';
import { type Mono, type Offset, offset } from '../../protocol/units.ts';
import type { EventVerdict } from './eventClassifier.ts';
import type { ShortLife } from './shortLife.ts';
import { type Expectation, type Life, STARTED, type STOPPED, type Stage } from './trackedContainer.ts';

/** The version of the shape of `proof`. */
export const PROOF_VERSION = 1;

/** What every verdict shares; `epochStart` turns positions on the clock into offsets. */
export interface Verdict {
  readonly finding: string;
  readonly kind: FindingKind;
  readonly at: Mono;
  readonly cause: string;
  readonly epochStart: Mono;
  readonly details: Readonly<Record<string, unknown>>;
}

export const since = (start: Mono, at: Mono): Offset => offset(at - start);

/** A verdict on the event of one stage of one life. `exact` is the true time, where it is known. */
export function stageFinding(
  verdict: Verdict,
  life: Life,
  stage: Stage,
  expectation: Expectation,
  exact: Mono | null,
): RecordOf<'finding'> {
  const { from, to } = expectation;
  return {
    type: 'finding',
    t: since(verdict.epochStart, verdict.at),
    findingId: verdict.finding,
    kind: verdict.kind,
    eventType: EVENT_TYPES[stage],
    cause: verdict.cause,
    containerId: life.object.id,
    window: {
      from: since(verdict.epochStart, from ?? verdict.epochStart),
      to: since(verdict.epochStart, to),
    },
    occurred: exact === null ? null : since(verdict.epochStart, exact),
    lateness: null,
    delivery: null,
    proof: {
      v: PROOF_VERSION,
      evidence: expectation.evidence,
      lowerBoundKnown: from !== null,
      state: life.state,
      exactTimes: timesOf(life),
      // Where the id was gone already, or nobody answered, the window is the only proof; of a sandbox's start and end always.
      statusAnswer: life.answer ?? 'not_asked',
      ...verdict.details,
    },
  };
}

/** That the event of a container's start or end is overdue. */
export function overdueRecord(
  { finding, at, epochStart }: Pick<Verdict, 'finding' | 'at' | 'epochStart'>,
  life: Life,
  stage: typeof STARTED | typeof STOPPED,
  { from, to }: Expectation,
  exact: Mono | null,
): RecordOf<'event_overdue'> {
  return {
    type: 'event_overdue',
    t: since(epochStart, at),
    findingId: finding,
    containerId: life.object.id,
    eventType: stage === STARTED ? 'STARTED' : 'STOPPED',
    window: { from: from === null ? null : since(epochStart, from), to: since(epochStart, to) },
    occurred: exact === null ? null : since(epochStart, exact),
  };
}

/** A verdict on an event that came, and when that was. */
export function eventFinding(
  verdict: Verdict,
  life: Life,
  stage: Stage,
  received: Mono,
  { occurred, lateness, delivery }: Pick<EventVerdict, 'occurred' | 'lateness' | 'delivery'>,
): RecordOf<'finding'> {
  return {
    ...plainFinding(verdict, life.object),
    eventType: EVENT_TYPES[stage],
    occurred: occurred === null ? null : since(verdict.epochStart, occurred),
    lateness,
    delivery,
    proof: {
      v: PROOF_VERSION,
      received: since(verdict.epochStart, received),
      state: life.state,
      exactTimes: timesOf(life),
      ...verdict.details,
    },
  };
}

/** A verdict on what two lists could not see. */
export function shortLifeFinding(verdict: Verdict, life: Life, short: ShortLife): RecordOf<'finding'> {
  const window = {
    from: since(verdict.epochStart, short.before),
    to: since(verdict.epochStart, short.after),
  };
  return {
    ...plainFinding(verdict, life.object),
    window,
    proof: {
      v: PROOF_VERSION,
      lifeMinMs: short.least / 1000,
      lifeMaxMs: short.most / 1000,
      listBefore: window.from,
      listAfter: window.to,
      exactTimes: timesOf(life),
    },
  };
}

/** A verdict on the stream, or on a life as a whole. */
export function plainFinding(verdict: Verdict, object: ContainerIdentity | null): RecordOf<'finding'> {
  return {
    type: 'finding',
    t: since(verdict.epochStart, verdict.at),
    findingId: verdict.finding,
    kind: verdict.kind,
    eventType: null,
    cause: verdict.cause,
    containerId: object?.id ?? null,
    window: null,
    occurred: null,
    lateness: null,
    delivery: null,
    proof: { v: PROOF_VERSION, ...verdict.details },
  };
}

/** What its status said of when it was created, started and finished; null where nobody said it. */
export function timesOf(life: Life): Record<string, unknown> | null {
  if (life.times === null) return null;
  const { createdNs, startedNs, finishedNs, exitCode, reason } = life.times;
  return {
    createdNs: String(createdNs),
    startedNs: String(startedNs),
    finishedNs: String(finishedNs),
    exitCode,
    reason: reason.slice(0, 200),
  };
}
