/*
 * The conditions of Nodes while no controller can work. A problem that nobody can confirm becomes Unknown, because programs act on it. A condition
 * without a problem stays: they also taint Nodes for whatever is not False, and an outage of plegwatch is none of its Nodes. The next leader writes
 * what is so again.
 */
import { type KubeClient, pagesOf } from '../../kube/client.ts';
import { NODES } from '../../kube/object.ts';
import { nodeOf, type PublishedCondition } from '../../kube/projection.ts';
import { timestamp } from '../reports/text.ts';
import { CONTROLLER_FAILS } from '../reports/unknown.ts';
import { Withdrawal } from '../reports/withdrawal.ts';
import { applyConditions } from './nodeStatus.ts';

/** As many as a leader writes. */
const INTERVAL_MS = 200;
const NO_LABELS = { reported: [], stored: [] };

/** Returns on how many Nodes a problem became Unknown. A condition that is another manager's stays. When all were tried, throws if one was refused. */
export async function withdrawProblems(
  kube: Pick<KubeClient, 'list' | 'applyStatus'>,
  now: () => Date,
  signal: AbortSignal,
): Promise<number> {
  const writes = new Withdrawal(INTERVAL_MS, signal);
  for await (const { items } of pagesOf(kube, NODES, { signal })) {
    for (const object of items) {
      const { name, node } = nodeOf(object, NO_LABELS);
      if (!node.published.some(isProblem)) continue;
      const at = timestamp(now().toISOString());
      const conditions = node.published.map((each) => (isProblem(each) ? unknownSince(each, at) : each));
      await writes.write((aborted) => applyConditions(kube, { name, uid: node.uid }, conditions, aborted));
    }
  }
  return writes.end();
}

const isProblem = ({ status }: PublishedCondition): boolean => status === 'True';

const unknownSince = ({ type }: PublishedCondition, at: string): PublishedCondition => ({
  ...{ type, status: 'Unknown', ...CONTROLLER_FAILS, lastTransitionTime: at, lastHeartbeatTime: at },
});
