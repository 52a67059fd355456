/*
 * When a Node was not Ready, and why: a row for each change of the status, the reason or the causes of its Ready condition. A Node that is Ready when it
 * is first seen has no row.
 */
import type { ReadyCondition } from '../../kube/projection.ts';
import { plausibleTime } from './conditionChange.ts';
import type { ConditionHistory } from './conditionRecorder.ts';
import { notReadyCauses } from './notReadyCauses.ts';
import insertReadyChange from './sql/insertReadyChange.sql';
import readLastReadyChanges from './sql/readLastReadyChanges.sql';

export interface ReadyChange {
  /** In microseconds since 1970. */
  readonly at: number;
  readonly status: string;
  readonly reason: string;
  readonly causes: readonly string[];
}

type LastReadyRow = { name: string; at: string; status: string; reason: string; causes: string[] };

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
  change: readyChange,
  fields: ({ status, reason, causes }) => ({ status, reason, causes }),
  async readLast(store, clusterId) {
    const { rows } = await store.run<LastReadyRow>({ text: readLastReadyChanges }, [clusterId]);
    return rows.map(({ name, at, ...change }) => [name, { at: Number(at), ...change }]);
  },
  async insert(runner, clusterId, name, { at, status, reason, causes }) {
    await runner.run({ text: insertReadyChange }, [clusterId, name, at, status, reason, causes]);
  },
};
