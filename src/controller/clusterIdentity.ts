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
import { errorFields, PlegwatchError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import { ThrottledLog } from '../platform/throttledLog.ts';
import bindClusterSql from '../store/sql/bindCluster.sql';
import type { Store } from '../store/store.ts';

const RETRY_MS = 60_000;

export interface ClusterIdentityOptions {
  readonly store: Pick<Store, 'run' | 'ensureCluster'>;
  readonly kube: Pick<KubeClient, 'get'>;
  readonly cluster: string;
  readonly log: Logger;
  /** Called each time that the UID cannot be read. */
  readonly onUnknown: () => void;
  /** Called if the name turns out to be that of another cluster after the start. */
  readonly onRefused: (error: PlegwatchError) => void;
}

/** Throws CLUSTER_NAME_TAKEN, and what the API server client throws if nothing answers. Until `stop`, an unknown identity is read again. */
export async function startClusterIdentity(options: ClusterIdentityOptions): Promise<{ stop(): void }> {
  const { log, onUnknown, onRefused } = options;
  const throttled = new ThrottledLog(log, { linesPerMinute: 1 });
  const unknown = (error: unknown) => {
    onUnknown();
    throttled.warn(errorFields(error), 'the identity of the cluster is not known');
  };
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const retryLater = () => {
    if (!stopped) timer = setTimeout(() => void retry(), RETRY_MS).unref();
  };
  const retry = async () => {
    try {
      await bind(options);
    } catch (error) {
      if (error instanceof PlegwatchError && error.code === 'CLUSTER_NAME_TAKEN') {
        onRefused(error);
        return;
      }
      unknown(error);
      retryLater();
    }
  };
  try {
    await bind(options);
  } catch (error) {
    const refused = error instanceof PlegwatchError && error.code === 'KUBE_REFUSED';
    if (!refused && !(error instanceof KubeStatusError)) throw error;
    unknown(error);
    retryLater();
  }
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

async function bind({ store, kube, cluster }: ClusterIdentityOptions): Promise<void> {
  const namespace = await kube.get(NAMESPACES, IDENTITY);
  if (namespace === undefined) {
    throw new KubeStatusError(404, 'NotFound', `the cluster has no Namespace ${IDENTITY}`);
  }
  const { uid } = namespace.metadata;
  const clusterId = await store.ensureCluster(cluster);
  for (;;) {
    const { rows } = await store.run<{ uid: string }>({ text: bindClusterSql }, [clusterId, uid]);
    // No row: another controller bound it after this statement began.
    if (rows[0] === undefined) continue;
    if (rows[0].uid === uid) return;
    throw new PlegwatchError(
      'CLUSTER_NAME_TAKEN',
      `The database knows the cluster ${cluster} by the UID ${rows[0].uid} of its Namespace ${IDENTITY}, and here it is ${uid}: this is another cluster.`,
      `Give this cluster another name (--cluster). If ${cluster} was rebuilt, run as the owner of the database: SELECT store.rebind_cluster('${cluster}').`,
    );
  }
}
