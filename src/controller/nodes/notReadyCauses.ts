/*
 * Why a Node is not Ready, in words of a closed set: the messages of its Ready condition are anybody's text, and the kubelet joins those of all
 * problems (kubelet pkg/kubelet/runtime.go, runtimeErrors and networkErrors; nodestatus/setters.go, ReadyCondition; the node lifecycle
 * controller where no kubelet reports).
 */
import type { ReadyCondition } from '../../kube/projection.ts';
import { parsePlegMessage } from './plegMessage.ts';

/** In the order in which they are stored. `other`: none of these. */
const CAUSES: readonly (readonly [cause: string, says: (condition: ReadyCondition) => boolean])[] = [
  ['pleg', ({ message }) => parsePlegMessage(message) !== null],
  ['runtime', ({ message }) => /container runtime (is down|not ready|status check)/i.test(message)],
  ['network', ({ message }) => /network not ready|NetworkReady=false|network plugin/i.test(message)],
  ['storage', ({ message }) => /CSINode/.test(message)],
  ['capacity', ({ message }) => /missing node capacity/.test(message)],
  ['shutdown', ({ message }) => /node is shutting down/.test(message)],
  ['kubelet_silent', ({ reason }) => reason === 'NodeStatusUnknown' || reason === 'NodeStatusNeverUpdated'],
];

/** Empty for a Node that is Ready. */
export function notReadyCauses(condition: ReadyCondition): readonly string[] {
  if (condition.status === 'True') return [];
  const causes = CAUSES.filter(([, says]) => says(condition)).map(([cause]) => cause);
  return causes.length > 0 ? causes : ['other'];
}
