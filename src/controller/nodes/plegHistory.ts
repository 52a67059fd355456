/*
 * When PLEG of a Node became unhealthy or healthy: a row for each such change of its Ready condition, with the durations of the message.
 */
import { dayOf, ensurePartition } from '../../store/partitions.ts';
import { type ConditionChange, conditionChange } from './conditionChange.ts';
import type { ConditionHistory } from './conditionRecorder.ts';
import { parsePlegMessage } from './plegMessage.ts';
import insertNodeCondition from './sql/insertNodeCondition.sql';
import readLastNodeConditions from './sql/readLastNodeConditions.sql';

type LastConditionRow = {
  name: string;
  status: string;
  reason: string;
  message: string;
  at: string;
  seenAgoMs: number | null;
  thresholdMs: number | null;
};

export const PLEG_HISTORY: ConditionHistory<ConditionChange> = {
  changed: 'PLEG condition of a Node changed',
  change: conditionChange,
  fields: ({ unhealthy, status }) => ({ unhealthy, status }),
  async readLast(store, clusterId) {
    const { rows } = await store.run<LastConditionRow>({ text: readLastNodeConditions }, [clusterId]);
    return rows.map(({ name, at, ...row }) => {
      const unhealthy = row.status !== 'True' && parsePlegMessage(row.message) !== null;
      return [name, { unhealthy, at: Number(at), ...row }];
    });
  },
  async insert(runner, clusterId, name, change) {
    const { at, unhealthy, status, reason, message, seenAgoMs, thresholdMs } = change;
    await ensurePartition(runner, 'node_condition', dayOf(at));
    const of = [clusterId, name, at];
    const values = [...of, status, reason, message, seenAgoMs, thresholdMs, unhealthy];
    await runner.run({ text: insertNodeCondition }, values);
  },
};
