/*
 * The work list: transitions whose pods are read, kept in Postgres so that a new leader goes on where the last one was.
 *
 * Reads are timed by this machine's monotonic clock and put on the store's clock by the time that the store tells with each claim:
 * it looked at its clock after it was asked and before it answered.
 */
import { type Micros, millis } from '../../protocol/units.ts';
import { dayOf, ensurePartition } from '../store/partitions.ts';
import enqueueReport from '../store/sql/enqueueReport.sql';
import type { SqlRunner, Store } from '../store/store.ts';
import type { Lag } from './bounds.ts';
import claimDueWatches from './sql/claimDueWatches.sql';
import countWatches from './sql/countWatches.sql';
import dropOverdueSamples from './sql/dropOverdueSamples.sql';
import endWatch from './sql/endWatch.sql';
import listExpiredWatches from './sql/listExpiredWatches.sql';
import postponeWatch from './sql/postponeWatch.sql';
import recordStaleRead from './sql/recordStaleRead.sql';
import type { LifeEvent } from './transitions.ts';

/** Why there is no lag. */
export type NoLag = 'superseded' | 'pod_deleted' | 'uid_differs' | 'no_api_object' | 'timed_out' | 'not_read';

/** A transition that is due to be read; times are microseconds since 1970 on the store's clock. */
export interface Claimed {
  readonly node_id: number;
  readonly finding_id: string;
  readonly sample: boolean;
  readonly event_type: LifeEvent;
  readonly container_id: string;
  readonly pod_uid: string;
  readonly pod_namespace: string;
  readonly pod_name: string;
  readonly container_name: string;
  readonly attempt: number;
  readonly reads: number;
  readonly pod_matched: boolean;
  readonly container_matched: boolean;
  readonly latest: number;
  readonly earliest: number | null;
  readonly stale_read: number | null;
  readonly arrived: number;
}

type ClaimedRow = Claimed & { readonly now: number };

export interface Expired extends Pick<Claimed, 'node_id' | 'finding_id' | 'sample' | 'reads'> {
  /** How long after the transition the last read was begun that did not show it; null without a read. */
  readonly behind_ms: number | null;
}

type Which = Pick<Claimed, 'node_id' | 'finding_id'>;

/** The store's clock, as far as this machine knows it. */
export interface StoreClock {
  /** What it showed at least, and at most, when the monotonic clock here showed this. */
  readonly atLeast: (at: Micros) => number;
  readonly atMost: (at: Micros) => number;
}

/** A claim is ours for longer than a read can take. */
const CLAIM_MS = 30_000;
/** So many ordinary lags of the last day it takes to say that one is not ordinary: with fewer, the largest of them decides. */
const MIN_SAMPLES = 100;

export class WatchList {
  readonly #store: Store;
  readonly #cluster: number;
  /** The day for which there are partitions. */
  #partitioned = 0;

  constructor(store: Store, clusterId: number) {
    this.#store = store;
    this.#cluster = clusterId;
  }

  async claim(most: number): Promise<{ claimed: readonly Claimed[]; clock: StoreClock }> {
    const asked = monotonic();
    const { rows } = await this.#store.run<ClaimedRow>({ name: 'claim_due_watches', text: claimDueWatches }, [
      this.#cluster,
      most,
      CLAIM_MS,
    ]);
    const answered = monotonic();
    const now = rows[0]?.now ?? 0;
    const clock = {
      atLeast: (at: Micros) => now + (at - answered),
      atMost: (at: Micros) => now + (at - asked),
    };
    return { claimed: rows, clock };
  }

  async unshown(
    { node_id, finding_id }: Which,
    read: {
      readonly began: number;
      readonly ofPod: boolean;
      readonly present: boolean;
      readonly nextMs: number;
    },
  ): Promise<void> {
    const values = [
      node_id,
      finding_id,
      Math.floor(read.began),
      read.ofPod,
      read.present,
      Math.ceil(read.nextMs),
    ];
    await this.#store.run({ name: 'record_stale_read', text: recordStaleRead }, values);
  }

  async later({ node_id, finding_id }: Which, waitMs: number): Promise<void> {
    await this.#store.run({ text: postponeWatch }, [node_id, finding_id, Math.ceil(waitMs)]);
  }

  /** Ends a watch, once; says whether it was there and told of a finding. */
  async end({ node_id, finding_id }: Which, result: Lag | NoLag): Promise<boolean> {
    const [lag, reason] = typeof result === 'string' ? [null, result] : [result, null];
    const today = dayOf(Date.now() * 1000);
    const ended = await this.#store.transaction(async (runner) => {
      if (today !== this.#partitioned) await makePartitions(runner, today);
      const { count } = await runner.run({ text: endWatch }, [
        node_id,
        finding_id,
        lag?.min ?? null,
        lag?.max ?? null,
        reason,
        MIN_SAMPLES,
      ]);
      // What a report says of a missed event has changed.
      if (count > 0) await runner.run({ text: enqueueReport }, [node_id, this.#cluster, true]);
      return count > 0;
    });
    this.#partitioned = today;
    return ended;
  }

  /** What has been waited for long enough. */
  async expired(most: number): Promise<readonly Expired[]> {
    return (await this.#store.run<Expired>({ text: listExpiredWatches }, [this.#cluster, most])).rows;
  }

  /** Lets go of samples that have waited too long for a read; says how many. */
  async starve(afterMs: number): Promise<number> {
    return (await this.#store.run({ text: dropOverdueSamples }, [this.#cluster, afterMs])).count;
  }

  async counts(): Promise<{ overdue: number; samples: number }> {
    const { rows } = await this.#store.run<{ overdue: number; samples: number }>({ text: countWatches }, [
      this.#cluster,
    ]);
    return rows[0] ?? { overdue: 0, samples: 0 };
  }
}

/** Those of the days around this one: the store's clock says which day it is. */
async function makePartitions(runner: SqlRunner, today: number): Promise<void> {
  for (const day of [today - 1, today, today + 1]) {
    await ensurePartition(runner, 'finding_update', day);
  }
}

/** This machine's monotonic clock. */
export const monotonic = (): Micros => millis(performance.now());
