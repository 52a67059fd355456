/*
 * Records the chosen labels, the OS image and the kernel of every Node in Postgres, so that evidence can be compared by pool, zone or kernel.
 *
 *   Node watch ──► names of changed Nodes ── at most once in a period ──► store.node_info, where it differs from the latest row
 *
 * Rows are compared in Postgres: a restarted controller, or a second one, records nothing twice. All Nodes are compared again from
 * time to time, because the store may have been restored from an older backup. A Node that changes again and again makes one row in a period.
 */

import type { NodeInfo } from '../../kube/projection.ts';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { between, millis } from '../../protocol/units.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { addNodes } from '../../store/statements.ts';
import type { Store } from '../../store/store.ts';
import type { NodeWatch } from './nodeWatch.ts';
import { insertNodeInfo } from './statements.ts';

const PERIOD_MS = 60_000;
const RECHECK_MS = 3_600_000;
const BACKOFF = { firstMs: 500, maxMs: 30_000 };
/** Nodes in one statement. */
const MAX_NODES = 500;

export interface NodeInfoRecorderOptions {
  readonly store: SqlRunner & Pick<Store, 'ensureCluster'>;
  readonly cluster: string;
  readonly nodes: Pick<NodeWatch, 'get' | 'names' | 'onState' | 'synced'>;
  readonly log: Logger;
  /** How often changed Nodes are recorded, in milliseconds. Default: a minute. */
  readonly periodMs?: number;
  /** How often all Nodes are compared with the store. Default: an hour. */
  readonly recheckMs?: number;
  readonly now?: typeof monoNow;
}

export interface NodeInfoRecorder {
  stop(): Promise<void>;
}

/** Runs until it is stopped, and survives every failure. */
export function startNodeInfoRecorder(options: NodeInfoRecorderOptions): NodeInfoRecorder {
  const { nodes, log, periodMs = PERIOD_MS, recheckMs = RECHECK_MS, now = monoNow } = options;
  const changed = new Set<string>();
  const unsubscribe = nodes.onState((name) => changed.add(name));
  let comparedAt = now();
  const loop = new Loop({
    async work(signal) {
      if (between(comparedAt, now()) >= millis(recheckMs)) {
        for (const name of nodes.names()) changed.add(name);
        comparedAt = now();
      }
      while (changed.size > 0 && !signal.aborted) await recordSome(options, changed);
      // The Nodes come with the first list, soon after the start.
      return nodes.synced ? periodMs : Math.min(periodMs, BACKOFF.firstMs);
    },
    onError: (error) => log.warn({ error: messageOf(error) }, 'labels of Nodes were not stored, retrying'),
    backoff: BACKOFF,
  });
  loop.start();
  return {
    async stop() {
      unsubscribe();
      await loop.stop();
    },
  };
}

/** A Node that changes meanwhile is recorded again in the next period. */
async function recordSome(
  { store, cluster, nodes }: NodeInfoRecorderOptions,
  changed: Set<string>,
): Promise<void> {
  const names = [...changed].slice(0, MAX_NODES);
  for (const name of names) changed.delete(name);
  try {
    const present = names.flatMap((name): [string, NodeInfo][] => {
      const node = nodes.get(name);
      return node === undefined ? [] : [[name, node.info]];
    });
    if (present.length > 0) await insert(store, cluster, present);
  } catch (error) {
    for (const name of names) changed.add(name);
    throw error;
  }
}

async function insert(
  store: NodeInfoRecorderOptions['store'],
  cluster: string,
  infos: readonly (readonly [string, NodeInfo])[],
): Promise<void> {
  const clusterId = await store.ensureCluster(cluster);
  const names = infos.map(([name]) => name);
  await store.run(addNodes, [clusterId, names]);
  await store.run(insertNodeInfo, [
    clusterId,
    names,
    infos.map(([, { labels }]) => JSON.stringify(labels)),
    infos.map(([, { osImage }]) => osImage),
    infos.map(([, { kernelVersion }]) => kernelVersion),
  ]);
}
