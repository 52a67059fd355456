/*
 * When a Node was not Ready, and why: a row for each change of the status, the reason or the causes of its Ready condition. A Node that is Ready when it
 * is first seen has no row.
 *
 * Causes are words of a closed set: the messages of the condition are anybody's text, and the kubelet joins those of all problems (kubelet
 * pkg/kubelet/runtime.go, runtimeErrors and networkErrors; nodestatus/setters.go, ReadyCondition; the node lifecycle controller where no kubelet
 * reports).
 */
import type { ReadyCondition } from '../../kube/projection.ts';
import { type ConditionHistory, plausibleTime } from './conditionRecorder.ts';
import { parsePlegMessage } from './plegMessage.ts';
import { insertReadyChange, readLastReadyChanges } from './statements.ts';

export interface ReadyChange {
  /** In microseconds since 1970. */
  readonly at: number;
  readonly status: string;
  readonly reason: string;
  readonly causes: readonly string[];
}

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

/** `before` is null if nothing was recorded yet. `now` replaces times that the condition does not have. */
export function readyChange(
  before: ReadyChange | null,
  ready: ReadyCondition,
  now: number,
): ReadyChange | null {
  const { status, reason, transitionAt, heartbeatAt } = ready;
  const causes = notReadyCauses(ready);
  const isSame = before !== null && before.status === status && before.reason === reason;
  if (before === null ? status === 'True' : isSame && `${before.causes}` === `${causes}`) return null;
  // The transition time is that of the status: other causes came with the heartbeat.
  const at = (before?.status === status ? heartbeatAt : transitionAt) ?? heartbeatAt ?? now;
  // Conditions have whole seconds, and changes an order.
  return { at: Math.max(plausibleTime(at, now), (before?.at ?? 0) + 1), status, reason, causes };
}

export const READY_HISTORY: ConditionHistory<ReadyChange> = {
  changed: 'Ready condition of a Node changed',
  keepsNode: false,
  change: readyChange,
  fields: ({ status, reason, causes }) => ({ status, reason, causes }),
  async readLast(store, clusterId) {
    const { rows } = await store.run(readLastReadyChanges, [clusterId]);
    return rows.map(({ name, ...change }) => [name, change]);
  },
  async insert(runner, clusterId, name, { at, status, reason, causes }) {
    await runner.run(insertReadyChange, [clusterId, name, at, status, reason, causes]);
  },
};
