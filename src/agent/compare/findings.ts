/*
 * Builds the findings that the comparison reports, each with its proof.
 */
import {
  type ContainerIdentity,
  EVENT_TYPES,
  type FindingKind,
  PROOF_VERSION,
  type RecordOf,
} from '../../protocol/record.ts';
import { type Mono, since } from '../../protocol/units.ts';
import type { EventClassification } from './eventClassifier.ts';
import type { StageProof } from './expectation.ts';
import { STARTED, type STOPPED, type Stage } from './stages.ts';
import type { TrackedContainer } from './trackedContainer.ts';

/** The common fields of all findings; `epochStart` turns positions on the clock into offsets. */
export interface Judgement {
  readonly findingId: string;
  readonly kind: FindingKind;
  readonly at: Mono;
  readonly cause: string;
  readonly epochStart: Mono;
  readonly details: Readonly<Record<string, unknown>>;
}

/** When a stage was reached, and what says so. */
export type ProvenStage = Pick<StageProof, 'from' | 'to' | 'evidence'>;

/** A judgement on the event of one stage of one container. `exact` is the true time, where it is known. */
export function stageFinding(
  judgement: Judgement,
  container: TrackedContainer,
  stage: Stage,
  { from, to, evidence }: ProvenStage,
  exact: Mono | null,
): RecordOf<'finding'> {
  const { epochStart } = judgement;
  return {
    ...plainFinding(judgement, container.identity),
    eventType: EVENT_TYPES[stage],
    window: { from: since(epochStart, from ?? epochStart), to: since(epochStart, to) },
    occurred: exact === null ? null : since(epochStart, exact),
    proof: {
      v: PROOF_VERSION,
      evidence,
      lowerBoundKnown: from !== null,
      state: container.lists.state,
      exactTimes: timesOf(container),
      // Where the id was gone, or nobody answered, the window is the only proof; for a sandbox's start and end it always is.
      statusAnswer: container.statusAnswer ?? 'not_asked',
      ...judgement.details,
    },
  };
}

export function overdueRecord(
  { findingId, at, epochStart }: Pick<Judgement, 'findingId' | 'at' | 'epochStart'>,
  container: TrackedContainer,
  stage: typeof STARTED | typeof STOPPED,
  { from, to }: ProvenStage,
  exact: Mono | null,
): RecordOf<'event_overdue'> {
  return {
    type: 'event_overdue',
    t: since(epochStart, at),
    findingId,
    containerId: container.id,
    eventType: stage === STARTED ? 'STARTED' : 'STOPPED',
    window: { from: from === null ? null : since(epochStart, from), to: since(epochStart, to) },
    occurred: exact === null ? null : since(epochStart, exact),
  };
}

/** A judgement on an event that came. */
export function eventFinding(
  judgement: Judgement,
  container: TrackedContainer,
  stage: Stage,
  received: Mono,
  { occurred, lateness, delivery }: Pick<EventClassification, 'occurred' | 'lateness' | 'delivery'>,
): RecordOf<'finding'> {
  return {
    ...plainFinding(judgement, container.identity),
    eventType: EVENT_TYPES[stage],
    occurred: occurred === null ? null : since(judgement.epochStart, occurred),
    lateness,
    delivery,
    proof: {
      v: PROOF_VERSION,
      received: since(judgement.epochStart, received),
      state: container.lists.state,
      exactTimes: timesOf(container),
      ...judgement.details,
    },
  };
}

/** A judgement on the stream, or on a container as a whole. */
export function plainFinding(judgement: Judgement, identity: ContainerIdentity | null): RecordOf<'finding'> {
  return {
    type: 'finding',
    t: since(judgement.epochStart, judgement.at),
    findingId: judgement.findingId,
    kind: judgement.kind,
    eventType: null,
    cause: judgement.cause,
    containerId: identity?.id ?? null,
    window: null,
    occurred: null,
    lateness: null,
    delivery: null,
    proof: { v: PROOF_VERSION, ...judgement.details },
  };
}

/** The exact times from its status, as a proof has them; null where there is no status. */
export function timesOf({ times: { exact } }: TrackedContainer): Record<string, unknown> | null {
  if (exact === null) return null;
  const { createdNs, startedNs, finishedNs, exitCode, reason, trait } = exact;
  return {
    createdNs: String(createdNs),
    startedNs: String(startedNs),
    finishedNs: String(finishedNs),
    exitCode,
    reason: reason.slice(0, 200),
    ...(trait === undefined ? {} : { trait }),
  };
}
