/*
 * Columns of store.relist_minute.
 */
import type { KubeletCalls, KubeletMinute } from '../../protocol/record.ts';
import { literal } from '../store/literal.ts';
import type { BatchScope } from './batchScope.ts';
import type { StorableRecord } from './recordValidation.ts';
import { keysOf, recordWriter } from './recordWriter.ts';
import insertRelistMinutes from './sql/insertRelistMinutes.sql';

type MinuteRow = StorableRecord<'relist_minute'>;

const INT2_MAX = 32_767;
const INT4_MAX = 2_147_483_647;

const histogram = (counts: readonly number[]): string => literal(counts, (n) => Math.min(n, INT2_MAX));

/** Null where the kubelet reported nothing. */
function kubeletColumns(rows: readonly MinuteRow[]): unknown[] {
  const column = (value: (kubelet: KubeletMinute) => number | null) =>
    literal(rows, ({ record: { kubelet } }) => (kubelet === undefined ? null : value(kubelet)));
  return [
    column(({ relists }) => Math.min(relists, INT4_MAX)),
    rows.map(({ record: { kubelet } }) => (kubelet === undefined ? null : histogram(kubelet.hist))),
    column(({ lastSeenAge }) => lastSeenAge),
    column(({ discarded }) => discarded),
    column(({ streamErrors }) => streamErrors),
    column(({ listP99 }) => listP99),
    column(({ intervals }) => Math.min(intervals, INT4_MAX)),
    column(({ intervalSum }) => intervalSum),
  ];
}

/** Null where the kubelet's calls were not counted. */
function callColumns({ epochStart }: BatchScope, rows: readonly MinuteRow[]): unknown[] {
  const column = (value: (calls: KubeletCalls) => number) =>
    literal(rows, ({ record: { kubelet } }) => (kubelet?.calls === undefined ? null : value(kubelet.calls)));
  return [
    column(({ from }) => epochStart + from),
    column(({ to }) => epochStart + to),
    column(({ relistSum }) => relistSum),
    column(({ lists }) => Math.min(lists, INT4_MAX)),
    column(({ listErrors }) => Math.min(listErrors, INT4_MAX)),
    column(({ listSum }) => listSum),
    column(({ longestList }) => longestList),
    column(({ statusSum }) => statusSum),
  ];
}

export const writeRelistMinutes = recordWriter('relist_minute', {
  statement: { name: 'insert_relist_minutes', text: insertRelistMinutes },
  oneRowEach: true,
  values: (scope, rows) => [
    ...keysOf(scope, rows),
    literal(rows, ({ record }) => record.relists),
    literal(rows, ({ record }) => record.errors),
    literal(rows, ({ record }) => record.max),
    rows.map(({ record }) => histogram(record.hist)),
    literal(rows, ({ record }) => record.sandboxes),
    literal(rows, ({ record }) => record.containers),
    literal(rows, ({ record }) => record.bytes),
    literal(rows, ({ record }) => record.expected),
    literal(rows, ({ record }) => record.matched),
    literal(rows, ({ record }) => record.unobservable),
    literal(rows, ({ record }) => record.covered),
    literal(rows, ({ record }) => record.span),
    ...kubeletColumns(rows),
    ...callColumns(scope, rows),
    literal(rows, ({ record }) => record.wall),
    rows.map(({ record }) => literal(record.lists, (n) => n)),
  ],
});
