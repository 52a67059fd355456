/*
 * A reading: the agent's own comparison, run over the stored records under one assumption about what they do not say.
 *
 *   drainedBehind   how far the reader was behind: a verdict waits until it has read everything up to its deadline
 *   times           the exact times in events and answers: those that proofs of findings have (`proofs`), no times (`none`), times by
 *                   which what was announced had happened (`confirmed`), or those of a start that failed (`failed`)
 *   others          what statuses of the other ids of their pod events had: none, as lists showed them (`listed`), or with the sandbox up (`up`): lists
 *                   of some runtimes show a sandbox as ended before it starts
 *
 * Conclusions that all readings agree on follow from the records. Those of only some may be so.
 */
import { Comparison } from '../agent/compare/comparison.ts';
import { UNOBSERVABLE_CAUSES } from '../agent/compare/unobservableReason.ts';
import type { PlegProfile } from '../protocol/eventProfile.ts';
import type { ExactTimes, ListedItem, Relist, ShownState, ShownStatus } from '../protocol/observation.ts';
import { EVENT_TYPES, type RecordOf } from '../protocol/record.ts';
import { type Micros, type Mono, millis, mono } from '../protocol/units.ts';
import type { AgentSettings, StoredEvent } from './storedEpoch.ts';

export interface Assumptions {
  readonly drainedBehind: Micros;
  readonly times: 'proofs' | 'none' | 'confirmed' | 'failed';
  readonly others: 'none' | 'listed' | 'up';
}

/** Readings let time pass a tick at once. */
export const TICK = millis(1_000);
/**
 * A reader that is further behind than this is a gap, with an `--overdue-after` of up to eight seconds: a heartbeat, and half of that
 * (src/agent/observe/stalls.ts).
 */
export const MAX_BEHIND = millis(5_000);

/** No record says what the kubelet's own status showed. */
const NOT_WATCHED = millis(0);

const STATUSES: readonly Omit<Assumptions, 'drainedBehind'>[] = [
  { times: 'proofs', others: 'listed' },
  { times: 'proofs', others: 'up' },
  { times: 'proofs', others: 'none' },
  { times: 'none', others: 'none' },
  { times: 'confirmed', others: 'none' },
  { times: 'failed', others: 'none' },
];

export const ASSUMPTIONS: readonly Assumptions[] = [millis(0), MAX_BEHIND].flatMap((drainedBehind) =>
  STATUSES.map((statuses) => ({ drainedBehind, ...statuses })),
);

/** The statuses on record. */
export interface KnownStatuses {
  /** The exact times in a status of an id at a moment; null where that is not on record. */
  at(id: string, moment: Mono): ExactTimes | null;
  /** The states of other ids in the statuses of an event, by id; `event`: as evidence names it, `STARTED of` and the id. */
  othersIn(event: string, received: Mono): ReadonlyMap<string, ShownState>;
}

export interface ReadingOutput {
  readonly findings: readonly RecordOf<'finding'>[];
  readonly resolutions: readonly RecordOf<'finding_resolved'>[];
  readonly changes: readonly RecordOf<'relist_change'>[];
}

export class Reading {
  readonly #assumptions: Assumptions;
  readonly #comparison: Comparison;
  readonly #statuses: KnownStatuses;
  #session = 0;
  #minted = 0;
  #queries: { readonly id: string; readonly isSandbox: boolean }[] = [];

  constructor(
    assumptions: Assumptions,
    settings: AgentSettings,
    profile: PlegProfile,
    statuses: KnownStatuses,
  ) {
    this.#assumptions = assumptions;
    this.#statuses = statuses;
    const mintId = () => {
      this.#minted += 1;
      return `00000000-0000-4000-8000-${String(this.#minted).padStart(12, '0')}`;
    };
    this.#comparison = new Comparison({
      ...settings,
      kubeletLateAfter: NOT_WATCHED,
      epochStart: mono(0),
      profile,
      mintId,
    });
    this.#comparison.unsubscribed(mono(0), 'down');
  }

  opened(at: Mono, openedNs: bigint): void {
    this.#session += 1;
    this.#comparison.subscribed(this.#session, at, openedNs);
  }

  ended(at: Mono, state: 'down' | 'absent'): void {
    this.#comparison.unsubscribed(at, state);
  }

  /** `cause` is that of a stored gap; a later version may have others. */
  gap(at: Mono, cause: string): void {
    this.#comparison.streamGap(at, UNOBSERVABLE_CAUSES.find((known) => known === cause) ?? 'stream_gap');
  }

  runtimeReplaced(profile: PlegProfile): void {
    this.#comparison.runtimeReplaced(profile);
  }

  /** `drained`: the reader had drained everything by then. */
  passed(now: Mono, drained: Mono, wallMicros: number): void {
    for (const { id, isSandbox } of this.#queries.splice(0)) {
      const times = this.#assumptions.times === 'proofs' && !isSandbox ? this.#statuses.at(id, now) : null;
      this.#comparison.answered(
        times === null
          ? { id, asked: now, at: now, found: false, reason: 'not on record' }
          : { id, asked: now, at: now, found: true, times, sandbox: null },
      );
    }
    this.#comparison.drained(this.#session, mono(Math.min(drained, now - this.#assumptions.drainedBehind)));
    this.#comparison.tick(now, wallMicros);
  }

  listFailed(): void {
    this.#comparison.listFailed();
  }

  relisted(relist: Relist): void {
    this.#comparison.relisted(relist);
  }

  /**
   * `others`: what its statuses may have shown of other ids of the pod. `ran`: a list has shown it running, so that its start did
   * not fail.
   */
  received(event: StoredEvent, others: readonly ListedItem[], ran: boolean): void {
    const { id, received, type, createdNs, hasSandboxStatus, identity } = event;
    const { times } = this.#assumptions;
    this.#comparison.received({
      session: this.#session,
      received,
      id,
      type,
      createdNs,
      hasSandboxStatus,
      // Where the payload was dropped, the id is all that was known of it.
      object: times === 'proofs' || hasSandboxStatus ? identity : null,
      times: times === 'failed' && ran ? null : this.#timesIn(event),
      others: this.#othersIn(event, others),
    });
  }

  /** Hands over what it found since the last call. */
  take(): ReadingOutput {
    const { emissions, queries } = this.#comparison.take();
    this.#queries.push(...queries);
    const records = emissions.map(({ record }) => record);
    return {
      findings: records.filter((record) => record.type === 'finding'),
      resolutions: records.filter((record) => record.type === 'finding_resolved'),
      changes: records.filter((record) => record.type === 'relist_change'),
    };
  }

  #timesIn({ id, received, type, createdNs, hasSandboxStatus }: StoredEvent): ExactTimes | null {
    const { times } = this.#assumptions;
    if (times === 'proofs') return this.#statuses.at(id, received);
    if (times === 'none' || !hasSandboxStatus || createdNs <= 0n) return null;
    const finishedNs = type === STOPPED ? createdNs : 0n;
    const startedNs = times === 'confirmed' && (type === STARTED || type === STOPPED) ? createdNs - 1n : 0n;
    return { ...NO_TIMES, startedNs, finishedNs };
  }

  #othersIn(
    { id, received, type, hasSandboxStatus }: StoredEvent,
    items: readonly ListedItem[],
  ): ShownStatus[] {
    const { others, times } = this.#assumptions;
    const possible = others !== 'none' && hasSandboxStatus ? items : [];
    const states = new Map(
      possible.map(({ object, state }) => [
        object.id,
        others === 'up' && object.isSandbox ? 'running' : state,
      ]),
    );
    const known = this.#statuses.othersIn(`${EVENT_TYPES[type]} of ${id}`, received);
    if (times === 'proofs') for (const [other, state] of known) states.set(other, state);
    return [...states].map(([other, state]) => ({
      id: other,
      state,
      times: this.#statuses.at(other, received) ?? NO_TIMES,
    }));
  }
}

const STARTED = EVENT_TYPES.indexOf('STARTED');
const STOPPED = EVENT_TYPES.indexOf('STOPPED');
const NO_TIMES: ExactTimes = { createdNs: 0n, startedNs: 0n, finishedNs: 0n, exitCode: 0, reason: '' };
