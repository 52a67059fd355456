/*
 * The writes of a leader, made only while it leads. A controller that was frozen may wake up long after another one took its Lease, so:
 *
 *   Postgres     each leader begins a term, and each of its transactions checks that its term is the latest one. The next leader
 *                waits for the transactions under way
 *   API server   a write begins only while the Lease is held on the monotonic and the wall clock; a report's status is written at the
 *                resourceVersion of its object
 *
 * One that is deposed again and again while it holds its Lease, or needs none, finds the terms of another one between its own: two releases
 * lead one cluster. It says so, and so does the row of its term.
 */
import { sql } from 'drizzle-orm';
import type { KubeClient } from '../../kube/client.ts';
import { Backoff } from '../../platform/backoff.ts';
import { errorFields, PlegwatchError } from '../../platform/errors.ts';
import { invariant } from '../../platform/invariant.ts';
import type { Logger } from '../../platform/log.ts';
import { sleep } from '../../platform/sleep.ts';
import { aborted } from '../../platform/stopSignal.ts';
import { databaseNow } from '../../store/expressions.ts';
import { leader } from '../../store/schema/tables.ts';
import type { Store } from '../../store/store.ts';
import { contestedMs, LEASE_TIMES } from './lease.ts';

export interface LeadershipOptions {
  readonly store: Store;
  readonly kube: KubeClient;
  /** The name of the cluster. */
  readonly cluster: string;
  readonly log: Logger;
  /** Starts what only a leader does. Returns what stops it. */
  readonly start: (store: Store, kube: KubeClient) => () => Promise<void>;
  /** Whether another controller leads this cluster too. */
  readonly onContested: (isContested: boolean) => void;
  /** How long it waits after it was deposed. For tests. */
  readonly pauseMs?: number;
}

interface Term {
  readonly clusterId: number;
  readonly term: number;
  readonly is_contested: boolean;
}

const BACKOFF = { firstMs: 500, maxMs: 5_000 };
const CURE = 'Uninstall one of the releases, or give each Kubernetes cluster a name of its own.';

/** Leads, term after term, until the signal is aborted. `holds`: whether a write to the API server may begin. */
export async function lead(
  options: LeadershipOptions,
  signal: AbortSignal,
  holds: () => boolean,
): Promise<void> {
  const { store, kube, log, start, onContested, pauseMs = LEASE_TIMES.durationMs } = options;
  let before: Term | null = null;
  while (!signal.aborted) {
    const begun = await beginTerm(options, before, signal);
    if (begun === null) break;
    if (begun.is_contested && before?.is_contested !== true)
      log.warn({ cure: CURE }, 'another controller of this cluster writes the same reports');
    onContested(begun.is_contested);
    const deposed = new AbortController();
    const ended = AbortSignal.any([signal, deposed.signal]);
    const stop = start(
      store.underTerm(begun.clusterId, begun.term, () => deposed.abort()),
      whileHeld(kube, () => holds() && !deposed.signal.aborted),
    );
    await sleep(contestedMs(pauseMs), ended);
    if (!ended.aborted) onContested(false);
    await aborted(ended);
    await stop();
    before = begun;
    // By then it knows whether it lost its Lease.
    await sleep(pauseMs, signal);
  }
  onContested(false);
}

/** Null if the signal is aborted before the store answers. */
async function beginTerm(
  { store, cluster, log }: LeadershipOptions,
  before: Term | null,
  signal: AbortSignal,
): Promise<Term | null> {
  const backoff = new Backoff(BACKOFF);
  while (!signal.aborted) {
    try {
      const clusterId = await store.ensureCluster(cluster);
      const begun = await takeTerm(store, clusterId, before?.term ?? null);
      log.info({ term: begun.term }, 'term of this leader begins');
      return { clusterId, ...begun };
    } catch (error) {
      log.warn(errorFields(error), 'term could not begin, retrying');
      await sleep(backoff.next(), signal);
    }
  }
  return null;
}

/** Waits until no statement of an earlier term is under way. `ours`: the latest term of this leader, if it was deposed. */
async function takeTerm(store: Store, clusterId: number, ours: number | null) {
  const began_at = databaseNow;
  const next = {
    ...{ term: sql`${leader.term} + 1`, began_at },
    is_contested: sql`coalesce(${leader.term} > ${ours}::int4, false)`,
  };
  const [begun] = await store.query((db) =>
    db
      .insert(leader)
      .values({ cluster_id: clusterId, term: 1, is_contested: false, began_at })
      .onConflictDoUpdate({ target: leader.cluster_id, set: next })
      .returning({ term: leader.term, is_contested: leader.is_contested }),
  );
  invariant(begun !== undefined, 'an upsert returns its row');
  return begun;
}

/** Begins no write unless the Lease is held. */
function whileHeld(kube: KubeClient, holds: () => boolean): KubeClient {
  const held = async <T>(write: () => Promise<T>): Promise<T> => {
    if (!holds()) throw notLeading();
    return write();
  };
  return {
    ...kube,
    apply: (...args) => held(() => kube.apply(...args)),
    applyStatus: (...args) => held(() => kube.applyStatus(...args)),
    delete: (...args) => held(() => kube.delete(...args)),
  };
}

const notLeading = (): PlegwatchError =>
  new PlegwatchError('NOT_LEADING', 'this controller no longer leads', 'Nothing: the next leader does it.');
