/*
 * Which cluster this is: the UID of its Namespace kube-system, which no other cluster has. The store binds a cluster's name to the first
 * UID that is seen under it, so that two clusters with one name do not mix their evidence.
 *
 *   bound      the name has our UID
 *   unknown    the API server does not show the Namespace, for want of a right or because it fails: counted, and read again every minute.
 *              Everything else goes on
 *   refused    the name has another UID: CLUSTER_NAME_TAKEN, and the controller ends
 */

import type { KubeClient } from '../kube/client.ts';
import { KubeStatusError } from '../kube/kubeErrors.ts';
import { IDENTITY, NAMESPACES } from '../kube/object.ts';
import { rightsOn } from '../kube/rights.ts';
import { errorFields, PlegwatchError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import { sleep } from '../platform/sleep.ts';
import { ThrottledLog } from '../platform/throttledLog.ts';
import type { SqlRunner } from '../store/runner.ts';
import { bindCluster } from '../store/statements.ts';
import { onceAdded, type Store } from '../store/store.ts';

export const IDENTITY_RIGHTS = rightsOn(NAMESPACES, ['get'], { name: IDENTITY });

const RETRY_MS = 60_000;

export interface ClusterIdentityOptions {
  readonly store: SqlRunner & Pick<Store, 'ensureCluster'>;
  readonly kube: Pick<KubeClient, 'get'>;
  readonly cluster: string;
  readonly log: Logger;
  /** Called each time that the UID cannot be read. */
  readonly onUnknown: () => void;
  /** Called if the name turns out to be that of another cluster after the start. */
  readonly onRefused: (error: PlegwatchError) => void;
}

/** Throws CLUSTER_NAME_TAKEN, and what the API server client throws if nothing answers. Until `stop`, an unknown identity is read again. */
export async function startClusterIdentity(
  options: ClusterIdentityOptions,
): Promise<{ stop(): Promise<void> }> {
  const { log, onUnknown, onRefused } = options;
  const throttled = new ThrottledLog(log, { linesPerMinute: 1 });
  const unknown = (error: unknown) => {
    onUnknown();
    throttled.warn(errorFields(error), 'the identity of the cluster is not known');
  };
  const stopping = new AbortController();
  const { signal } = stopping;
  const retry = async () => {
    for (await sleep(RETRY_MS, signal); !signal.aborted; await sleep(RETRY_MS, signal)) {
      try {
        return await bind(options, signal);
      } catch (error) {
        if (error instanceof PlegwatchError && error.code === 'CLUSTER_NAME_TAKEN') return onRefused(error);
        if (!signal.aborted) unknown(error);
      }
    }
  };
  let retrying = Promise.resolve();
  try {
    await bind(options, signal);
  } catch (error) {
    const refused = error instanceof PlegwatchError && error.code === 'KUBE_REFUSED';
    if (!refused && !(error instanceof KubeStatusError)) throw error;
    unknown(error);
    retrying = retry();
  }
  return {
    async stop() {
      stopping.abort();
      await retrying;
    },
  };
}

async function bind(
  { store, kube, cluster: name }: ClusterIdentityOptions,
  signal: AbortSignal,
): Promise<void> {
  const namespace = await kube.get(NAMESPACES, IDENTITY, signal);
  if (namespace === undefined) {
    throw new KubeStatusError(404, 'NotFound', `the cluster has no Namespace ${IDENTITY}`);
  }
  const { uid } = namespace.metadata;
  const clusterId = await store.ensureCluster(name);
  const bound = await onceAdded(async () => (await store.run(bindCluster, [clusterId, uid])).rows[0]);
  if (bound.uid === uid) return;
  throw new PlegwatchError(
    'CLUSTER_NAME_TAKEN',
    `The database knows the cluster ${name} by the UID ${bound.uid} of its Namespace ${IDENTITY}, and here it is ${uid}: this is another cluster.`,
    `Give this cluster another name (--cluster). If ${name} was rebuilt, run as the owner of the database: SELECT store.rebind_cluster('${name}').`,
  );
}
