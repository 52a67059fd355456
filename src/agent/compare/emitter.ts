/*
 * The emitter collects what the comparison hands out: records and queries, in their order, with the time of each.
 */

import type { StatusQuery } from '../../protocol/observation.ts';
import type { ContainerIdentity, EvidenceRecord, FindingKind, RecordOf } from '../../protocol/record.ts';
import { type Mono, type Offset, since } from '../../protocol/units.ts';
import { type Judgement, type ProvenStage, stageFinding } from './findings.ts';
import type { TimeSpan } from './listHistory.ts';
import type { Stage } from './stages.ts';
import type { TrackedContainer } from './trackedContainer.ts';
import { exactTime } from './unobservableReason.ts';

/** A record for the spool, with the identity that it mentions. */
export interface Emission {
  readonly record: EvidenceRecord;
  readonly object: ContainerIdentity | null;
}

export interface ComparisonOutput {
  readonly emissions: readonly Emission[];
  readonly queries: readonly StatusQuery[];
  /** The uids of pods that the kubelet is to be asked for. */
  readonly podQueries: readonly string[];
}

export class Emitter {
  readonly epochStart: Mono;
  readonly mintId: () => string;
  #now: Mono;
  #emissions: Emission[] = [];
  /** Findings that wait for the next tick of the wall clock, and what to undo if it was stepped. */
  #unsure: (Emission & { readonly undo: () => void })[] = [];
  #queries: StatusQuery[] = [];
  #podQueries: string[] = [];

  constructor(epochStart: Mono, mintId: () => string) {
    this.epochStart = epochStart;
    this.mintId = mintId;
    this.#now = epochStart;
  }

  /** The latest moment that was reached. */
  get now(): Mono {
    return this.#now;
  }

  /** Time has reached this moment; it never goes back. */
  reach(at: Mono): void {
    if (at > this.#now) this.#now = at;
  }

  /** Whether there is a record that nobody has taken. */
  get hasEmissions(): boolean {
    return this.#emissions.length > 0;
  }

  take(): ComparisonOutput {
    const output = { emissions: this.#emissions, queries: this.#queries, podQueries: this.#podQueries };
    this.#emissions = [];
    this.#queries = [];
    this.#podQueries = [];
    return output;
  }

  /** `to` is null while the gap lasts. */
  emitGap(gap: Pick<RecordOf<'gap'>, 'gapId' | 'scope' | 'cause'>, from: Mono, to: Mono | null): void {
    const at = (position: Mono) => since(this.epochStart, position);
    this.emit(null, {
      type: 'gap',
      t: at(this.#now),
      ...gap,
      from: at(from),
      to: to === null ? null : at(to),
    });
  }

  emit(object: ContainerIdentity | null, record: EvidenceRecord): void {
    this.#emissions.push({ record, object });
  }

  /** Emits a finding that rests on the wall clock, unless the next tick shows that the clock was stepped just before. */
  emitUnlessStepped(object: ContainerIdentity | null, record: EvidenceRecord, undo = () => {}): void {
    this.#unsure.push({ record, object, undo });
  }

  /** The wall clock was read: emits what waits for that, or undoes it. */
  releaseUnsure(stepped: boolean): void {
    for (const { record, object, undo } of this.#unsure) {
      if (stepped) undo();
      else this.#emissions.push({ record, object });
    }
    this.#unsure = [];
  }

  query({ id, isSandbox }: ContainerIdentity): void {
    this.#queries.push({ id, isSandbox });
  }

  queryPod(podUid: string): void {
    this.#podQueries.push(podUid);
  }

  /** A span as proofs have it: in microseconds since the epoch began. */
  span({ start, end }: TimeSpan): { readonly from: Offset; readonly to: Offset } {
    return { from: since(this.epochStart, start), to: since(this.epochStart, end) };
  }

  /** A judgement with its time, the epoch and a finding id: that of its overdue report, where there was one. */
  judgement(
    kind: FindingKind,
    cause: string,
    details: Judgement['details'],
    findingId: string | null = null,
  ): Judgement {
    const { epochStart } = this;
    return { findingId: findingId ?? this.mintId(), kind, at: this.#now, cause, epochStart, details };
  }

  emitStageFinding(
    judgement: Judgement,
    container: TrackedContainer,
    stage: Stage,
    proven: ProvenStage,
  ): void {
    const finding = stageFinding(judgement, container, stage, proven, exactTime(container, stage));
    this.emit(container.identity, finding);
  }

  /** A finding does not hold any more. `container` is null for one about the stream as a whole. */
  resolve(
    container: TrackedContainer | null,
    findingId: string,
    at: Mono,
    cause?: RecordOf<'finding_resolved'>['cause'],
  ): void {
    const t = since(this.epochStart, at);
    const why = cause === undefined ? {} : { cause };
    this.emit(container?.identity ?? null, { type: 'finding_resolved', t, findingId, ...why });
  }
}
