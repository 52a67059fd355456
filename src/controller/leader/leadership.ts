/*
 * What a leader writes, and only while it leads. A controller that was frozen may wake up long after another one took its Lease, so:
 *
 *   Postgres     each leader begins a term, and each of its transactions checks that its term is the latest one. The next leader
 *                waits for the transactions under way
 *   API server   a write begins only while the Lease is held on the monotonic and the wall clock; a report's status is written at the
 *                resourceVersion of its object
 */

import type { KubeClient } from '../../kube/client.ts';
import { Backoff } from '../../platform/backoff.ts';
import { errorFields } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { sleep } from '../../platform/sleep.ts';
import { aborted } from '../../platform/stopSignal.ts';
import type { Store } from '../../store/store.ts';
import { LEASE_TIMES } from './lease.ts';
import takeTerm from './sql/takeTerm.sql';

export interface LeadershipOptions {
  readonly store: Store;
  readonly kube: KubeClient;
  /** The name of the cluster. */
  readonly cluster: string;
  readonly log: Logger;
  /** Starts what only a leader does. Returns what stops it. */
  readonly start: (store: Store, kube: KubeClient) => () => Promise<void>;
}

const BACKOFF = { firstMs: 500, maxMs: 5_000 };

/** Leads, term after term, until the signal is aborted. `holds`: whether a write to the API server may begin. */
export async function lead(
  options: LeadershipOptions,
  signal: AbortSignal,
  holds: () => boolean,
): Promise<void> {
  const { store, kube, start } = options;
  while (!signal.aborted) {
    const begun = await beginTerm(options, signal);
    if (begun === null) return;
    const deposed = new AbortController();
    const stop = start(
      store.underTerm(begun.clusterId, begun.term, () => deposed.abort()),
      whileHeld(kube, () => holds() && !deposed.signal.aborted),
    );
    await aborted(AbortSignal.any([signal, deposed.signal]));
    await stop();
    // By then it knows that it lost its Lease, or there is a conflict of two releases, which the flow settings and the database name.
    await sleep(LEASE_TIMES.durationMs, signal);
  }
}

/** Null if the signal is aborted before the store answers. */
async function beginTerm(
  { store, cluster, log }: LeadershipOptions,
  signal: AbortSignal,
): Promise<{ readonly clusterId: number; readonly term: number } | null> {
  const backoff = new Backoff(BACKOFF);
  while (!signal.aborted) {
    try {
      const clusterId = await store.ensureCluster(cluster);
      const { rows } = await store.run<{ term: number }>({ text: takeTerm }, [clusterId]);
      const term = rows[0]?.term;
      if (term === undefined) throw new Error('an upsert returned no row');
      log.info({ term }, 'term of this leader begins');
      return { clusterId, term };
    } catch (error) {
      log.warn(errorFields(error), 'term could not begin, retrying');
      await sleep(backoff.next(), signal);
    }
  }
  return null;
}

/** Begins no write unless the Lease is held. */
function whileHeld(kube: KubeClient, holds: () => boolean): KubeClient {
  const held = async <T>(write: () => Promise<T>): Promise<T> => {
    if (!holds()) throw new Error('this controller no longer leads');
    return write();
  };
  return {
    ...kube,
    apply: (...args) => held(() => kube.apply(...args)),
    applyStatus: (...args) => held(() => kube.applyStatus(...args)),
    delete: (...args) => held(() => kube.delete(...args)),
  };
}
