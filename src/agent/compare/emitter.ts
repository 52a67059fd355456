/*
 * The outbox: what the comparison hands out, records and questions, in their order and with the time at which each was said.
 */

import type { StatusQuery } from '../../protocol/observation.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../protocol/record.ts';
import type { Mono, Offset } from '../../protocol/units.ts';
import { since, type Verdict } from './findings.ts';
import type { Span } from './trackedContainer.ts';

/** A record for the spool, with the identity that it mentions. */
export interface Emission {
  readonly record: EvidenceRecord;
  readonly object: ContainerIdentity | null;
}

export interface Output {
  readonly emissions: readonly Emission[];
  readonly queries: readonly StatusQuery[];
}

export class Outbox {
  readonly epochStart: Mono;
  /** A fresh random UUID at every call. */
  readonly mintId: () => string;
  #now: Mono;
  #emissions: Emission[] = [];
  /** Findings that wait for the next look at the wall clock, and what takes back that they were told. */
  #unsure: (Emission & { readonly undo: () => void })[] = [];
  #queries: StatusQuery[] = [];

  constructor(epochStart: Mono, mintId: () => string) {
    this.epochStart = epochStart;
    this.mintId = mintId;
    this.#now = epochStart;
  }

  /** The last moment that was reached. */
  get now(): Mono {
    return this.#now;
  }

  /** A moment has been reached; time never goes back. */
  reach(at: Mono): void {
    if (at > this.#now) this.#now = at;
  }

  take(): Output {
    const output = { emissions: this.#emissions, queries: this.#queries };
    this.#emissions = [];
    this.#queries = [];
    return output;
  }

  emit(object: ContainerIdentity | null, record: EvidenceRecord): void {
    this.#emissions.push({ record, object });
  }

  /** Hands out a finding that rests on the wall clock, unless the next tick shows that the clock was stepped just before. */
  emitUnlessStepped(object: ContainerIdentity | null, record: EvidenceRecord, undo = () => {}): void {
    this.#unsure.push({ record, object, undo });
  }

  /** The wall clock was looked at. */
  settleUnsure(stepped: boolean): void {
    for (const { record, object, undo } of this.#unsure) {
      if (stepped) undo();
      else this.#emissions.push({ record, object });
    }
    this.#unsure = [];
  }

  ask({ id, isSandbox }: ContainerIdentity): void {
    this.#queries.push({ id, isSandbox });
  }

  /** A stretch as a proof tells it: in microseconds since the epoch began. */
  span({ start, end }: Span): { readonly from: Offset; readonly to: Offset } {
    return { from: since(this.epochStart, start), to: since(this.epochStart, end) };
  }

  /** A verdict with its time, the epoch and, unless it was told before, its id filled in. */
  verdict(
    kind: Verdict['kind'],
    cause: string,
    details: Verdict['details'],
    finding: string | null = null,
  ): Verdict {
    const { epochStart } = this;
    return { finding: finding ?? this.mintId(), kind, at: this.#now, cause, epochStart, details };
  }
}
