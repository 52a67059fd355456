/*
 * When PLEG of a Node became unhealthy or healthy: a row for each such change of its Ready condition, with the durations of the message.
 *
 *   healthy ── not Ready, and the message mentions PLEG ──► unhealthy ── Ready, or no PLEG in the message ──► healthy
 *
 * The kubelet of an unhealthy node rewrites the message again and again, with another "seen ago": that is no change. A newer transition
 * time of a node that is unhealthy again is one: the node was healthy in between.
 */
import type { ReadyCondition } from '../../kube/projection.ts';
import { dayOf, ensurePartition } from '../../store/partitions.ts';
import { type ConditionHistory, plausibleTime } from './conditionRecorder.ts';
import { type PlegMessage, parsePlegMessage } from './plegMessage.ts';
import { insertNodeCondition, readLastNodeConditions } from './statements.ts';

/** The latest recorded condition of a node. */
export interface RecordedCondition {
  readonly unhealthy: boolean;
  readonly status: string;
  /** In microseconds since 1970. */
  readonly at: number;
}

export interface ConditionChange extends RecordedCondition, PlegMessage {
  readonly reason: string;
  readonly message: string;
}

/** `before` is null if nothing was recorded yet. `now` replaces times that the condition does not have. */
export function conditionChange(
  before: RecordedCondition | null,
  ready: ReadyCondition,
  now: number,
): ConditionChange | null {
  const pleg = ready.status === 'True' ? null : parsePlegMessage(ready.message);
  const unhealthy = pleg !== null;
  const { transitionAt } = ready;
  const unhealthyAgain =
    unhealthy && before?.unhealthy === true && transitionAt !== null && transitionAt > before.at;
  if (unhealthy === (before?.unhealthy ?? false) && !unhealthyAgain) return null;
  const { status, reason, message } = ready;
  const { seenAgoMs, thresholdMs } = pleg ?? NO_MESSAGE;
  return {
    unhealthy,
    at: plausibleTime(changedAt(before, ready, pleg, now), now),
    status,
    reason,
    message,
    seenAgoMs,
    thresholdMs,
  };
}

const NO_MESSAGE: PlegMessage = { seenAgoMs: null, thresholdMs: null };

/**
 * If only the message changed, the transition time is that of an older change, so the heartbeat that brought the message counts. And PLEG
 * is not unhealthy before it was silent for its threshold, however long the node was not Ready for other reasons.
 */
function changedAt(
  before: RecordedCondition | null,
  ready: ReadyCondition,
  pleg: PlegMessage | null,
  now: number,
): number {
  const { status, transitionAt, heartbeatAt } = ready;
  const statusChanged = before === null || before.status !== status || (transitionAt ?? 0) > before.at;
  const at = (statusChanged ? transitionAt : heartbeatAt) ?? heartbeatAt ?? now;
  if (heartbeatAt === null || pleg === null || pleg.seenAgoMs === null || pleg.thresholdMs === null)
    return at;
  const overThresholdMs = Math.max(0, pleg.seenAgoMs - pleg.thresholdMs);
  return Math.max(at, heartbeatAt - overThresholdMs * 1000);
}

export const PLEG_HISTORY: ConditionHistory<ConditionChange> = {
  changed: 'PLEG condition of a Node changed',
  keepsNode: true,
  change: conditionChange,
  fields: ({ unhealthy, status }) => ({ unhealthy, status }),
  async readLast(store, clusterId) {
    const { rows } = await store.run(readLastNodeConditions, [clusterId]);
    return rows.map(({ name, pleg_seen_ago_ms: seenAgoMs, threshold_ms: thresholdMs, ...row }) => {
      const unhealthy = row.status !== 'True' && parsePlegMessage(row.message) !== null;
      return [name, { ...row, unhealthy, seenAgoMs, thresholdMs }];
    });
  },
  async insert(runner, clusterId, name, change) {
    const { at, unhealthy, status, reason, message, seenAgoMs, thresholdMs } = change;
    await ensurePartition(runner, 'node_condition', dayOf(at));
    const values = [clusterId, name, at, status, reason, message, seenAgoMs, thresholdMs, unhealthy];
    await runner.run(insertNodeCondition, values);
  },
};
