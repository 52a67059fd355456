/*
 * `plegwatch remove-node-conditions`: removes the conditions that plegwatch published from all Nodes. The chart runs it after the release is uninstalled
 * and after the setting was switched off: the controller's right to write them has been revoked by then.
 *
 *   owned   by the field manager of the conditions, as the API server records it: a condition of the same type by somebody else stays
 *
 * A write of the controller may be under way, and an API server learns of a revoked right only after a moment. Therefore two lists in a row, some
 * seconds apart, have to show nothing.
 */
import * as v from 'valibot';
import { type KubeClient, pagesOf } from '../../kube/client.ts';
import { type KubeObject, NODES } from '../../kube/object.ts';
import { rightsOn } from '../../kube/rights.ts';
import { monoNow } from '../../platform/clock.ts';
import { logLevelFrom } from '../../platform/commonSettings.ts';
import type { Logger } from '../../platform/log.ts';
import { optional, string } from '../../platform/settings.ts';
import { sleep } from '../../platform/sleep.ts';
import { perSecond, TokenBucket } from '../../platform/tokenBucket.ts';
import {
  CONDITIONS_MANAGER,
  type NodeIdentity,
  PUBLISHING_RIGHTS,
  withdrawConditions,
} from './nodeStatus.ts';

export const REMOVAL_RIGHTS = [...rightsOn(NODES, ['list']), ...PUBLISHING_RIGHTS];

export const REMOVAL_SETTINGS = {
  kubeconfig: optional(
    'file',
    'kubeconfig of the API server; without it, the service account of the pod',
    string,
  ),
  logLevel: logLevelFrom('info'),
} as const;

/** 5,000 Nodes take less than two minutes. */
const WRITES_PER_SECOND = 50;
const SETTLE_MS = 10_000;
const CLEAN_LISTS = 2;

const ManagedFields = v.looseObject({
  managedFields: v.optional(v.array(v.looseObject({ manager: v.optional(v.string(), '') })), []),
});

export interface RemovalOptions {
  readonly kube: Pick<KubeClient, 'list' | 'applyStatus'>;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** For tests. */
  readonly settleMs?: number;
}

/** Returns from how many Nodes conditions were removed. */
export async function removeConditions(options: RemovalOptions): Promise<number> {
  const { kube, log, signal, settleMs = SETTLE_MS } = options;
  const limit = new TokenBucket({ capacity: WRITES_PER_SECOND, interval: perSecond(WRITES_PER_SECOND) });
  let removed = 0;
  for (let clean = 0; ; ) {
    const owners = await ownersIn(options);
    for (const node of owners) {
      await sleep(limit.reserve(monoNow()) / 1000, signal);
      signal.throwIfAborted();
      if (await withdrawConditions(kube, node, signal)) removed += 1;
    }
    clean = owners.length === 0 ? clean + 1 : 0;
    if (clean === CLEAN_LISTS) break;
    await sleep(settleMs, signal);
    signal.throwIfAborted();
  }
  log.info({ nodes: removed }, 'conditions of plegwatch removed from Nodes');
  return removed;
}

async function ownersIn({ kube, signal }: RemovalOptions): Promise<readonly NodeIdentity[]> {
  const owners: NodeIdentity[] = [];
  for await (const { items } of pagesOf(kube, NODES, { metadataOnly: true, signal }))
    owners.push(...items.filter(isOwner).map(({ metadata: { name, uid } }) => ({ name, uid })));
  return owners;
}

function isOwner({ metadata }: KubeObject): boolean {
  const parsed = v.safeParse(ManagedFields, metadata);
  return (
    parsed.success && parsed.output.managedFields.some(({ manager }) => manager === CONDITIONS_MANAGER.name)
  );
}
