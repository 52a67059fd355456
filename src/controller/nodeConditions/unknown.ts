/*
 * What Nodes say while no controller can work. A problem that nobody can confirm becomes Unknown, because programs act on it. What is no problem stays: they
 * also taint Nodes for whatever is not False, and an outage of plegwatch is none of its Nodes. The next leader writes what is so again.
 */
import { type KubeClient, pagesOf } from '../../kube/client.ts';
import { KubeStatusError } from '../../kube/kubeErrors.ts';
import { NODES } from '../../kube/object.ts';
import { nodeOf, type PublishedCondition } from '../../kube/projection.ts';
import { sleep } from '../../platform/sleep.ts';
import { timestamp } from '../reports/text.ts';
import { CONTROLLER_FAILS } from '../reports/unknown.ts';
import { applyConditions } from './nodeStatus.ts';

/** Another manager's, or the Node is another machine by now; or it is gone. */
const NOT_OURS = [409, 404];
/** As many as a leader writes. */
const INTERVAL_MS = 200;
const NO_LABELS = { reported: [], stored: [] };

/** Returns on how many Nodes a problem became Unknown. A condition that is another manager's stays. */
export async function withdrawProblems(
  kube: Pick<KubeClient, 'list' | 'applyStatus'>,
  now: () => Date,
  signal: AbortSignal,
): Promise<number> {
  let written = 0;
  for await (const { items } of pagesOf(kube, NODES, { signal })) {
    for (const object of items) {
      signal.throwIfAborted();
      const { name, node } = nodeOf(object, NO_LABELS);
      if (!node.published.some(isProblem)) continue;
      const at = timestamp(now().toISOString());
      const conditions = node.published.map((each) => (isProblem(each) ? unknownSince(each, at) : each));
      try {
        await applyConditions(kube, { name, uid: node.uid }, conditions, signal);
        written += 1;
      } catch (error) {
        if (!(error instanceof KubeStatusError) || !NOT_OURS.includes(error.code)) throw error;
      }
      await sleep(INTERVAL_MS, signal);
    }
  }
  return written;
}

const isProblem = ({ status }: PublishedCondition): boolean => status === 'True';

const unknownSince = ({ type }: PublishedCondition, at: string): PublishedCondition => ({
  ...{ type, status: 'Unknown', ...CONTROLLER_FAILS, lastTransitionTime: at, lastHeartbeatTime: at },
});
