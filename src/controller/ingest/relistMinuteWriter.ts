/*
 * Columns of store.relist_minute.
 */
import type {
  CallTotals,
  KubeletCalls,
  KubeletMinute,
  ListHang,
  MinuteStatuses,
  NodePressure,
} from '../../protocol/record.ts';
import { packLists } from '../../store/listTimes.ts';
import { literal } from '../../store/literal.ts';
import type { BatchScope } from './batchScope.ts';
import type { ContainerKey } from './containerKey.ts';
import { keysOf, recordWriter, type ScopedRecord } from './recordWriter.ts';
import { insertRelistMinutes } from './statements.ts';

type MinuteRow = ScopedRecord<'relist_minute'>;
type SlowestStatus = NonNullable<MinuteStatuses['slowest']>;

const INT2_MAX = 32_767;
const INT4_MAX = 2_147_483_647;

/** Empty buckets at the end count for nothing. */
const histogram = (counts: readonly number[]): string =>
  literal(counts.slice(0, counts.findLastIndex((n) => n > 0) + 1), (n) => Math.min(n, INT2_MAX));

/** Null where the kubelet reported nothing. */
function kubeletColumns(rows: readonly MinuteRow[]): unknown[] {
  const column = (value: (kubelet: KubeletMinute) => number | null) =>
    literal(rows, ({ record: { kubelet } }) => (kubelet === undefined ? null : value(kubelet)));
  return [
    column(({ relists }) => Math.min(relists, INT4_MAX)),
    rows.map(({ record: { kubelet } }) => (kubelet === undefined ? null : histogram(kubelet.hist))),
    column(({ lastSeenAge }) => lastSeenAge),
    column(({ discarded }) => discarded && Math.min(discarded, INT4_MAX)),
    column(({ streamErrors }) => streamErrors && Math.min(streamErrors, INT4_MAX)),
    column(({ listP99 }) => listP99),
    column(({ intervals }) => Math.min(intervals, INT4_MAX)),
    column(({ intervalSum }) => intervalSum),
    column(({ resident }) => resident),
  ];
}

type Call = { [K in keyof KubeletCalls]: KubeletCalls[K] extends CallTotals ? K : never }[keyof KubeletCalls];
const CALLS = [
  'sandboxLists',
  'containerLists',
  'sandboxStatuses',
  'containerStatuses',
] as const satisfies readonly Call[];

/** Null where the kubelet's calls were not counted; errors also where there were none. */
function callColumns(rows: readonly MinuteRow[]): unknown[] {
  const column = (value: (calls: KubeletCalls, epochStart: number) => number | null) =>
    literal(rows, ({ scope, record: { kubelet } }) =>
      kubelet?.calls === undefined ? null : value(kubelet.calls, scope.epochStart),
    );
  return [
    column(({ from }, epochStart) => epochStart + from),
    column(({ to }, epochStart) => epochStart + to),
    column(({ relistSum }) => relistSum),
    column(({ longestList }) => longestList),
    column(({ cpu }) => cpu),
    ...CALLS.flatMap((call) => [
      column((calls) => Math.min(calls[call].calls, INT4_MAX)),
      column((calls) => Math.min(calls[call].errors, INT4_MAX) || null),
      column((calls) => Math.min(calls[call].sum, INT4_MAX)),
    ]),
  ];
}

/** Null where no status was asked for; from the third on, where none was slow. */
function statusColumns(rows: readonly MinuteRow[]): unknown[] {
  const slowest = (value: (status: SlowestStatus, scope: BatchScope) => number | ContainerKey) =>
    literal(rows, ({ scope, record: { statuses } }) =>
      statuses === undefined || statuses.slowest === null ? null : value(statuses.slowest, scope),
    );
  return [
    literal(rows, ({ record }) => record.statuses?.asked ?? null),
    literal(rows, ({ record }) => record.statuses?.slow ?? null),
    slowest(({ containerId }, { keyOf }) => keyOf(containerId)),
    slowest(({ at }, { epochStart }) => epochStart + at),
    slowest(({ took }) => took),
    rows.map(({ record }) => record.statuses?.slowest?.timedOut ?? null),
  ];
}

const WAITS = [
  'cpuSome',
  'ioSome',
  'ioFull',
  'memorySome',
  'memoryFull',
] as const satisfies readonly (keyof NodePressure)[];
/** The share of the time that a calm node has, which takes no room. */
const MIN_PRESSURE = 0.01;

/** Null where the pressure was not measured; from the second on, where it is too little to say. */
function pressureColumns(rows: readonly MinuteRow[]): unknown[] {
  const column = (value: (pressure: NodePressure) => number | null) =>
    literal(rows, ({ record: { pressure } }) => (pressure === undefined ? null : value(pressure)));
  return [
    column(({ span }) => span),
    ...WAITS.map((what) =>
      column((pressure) => (pressure[what] > MIN_PRESSURE * pressure.span ? pressure[what] : null)),
    ),
  ];
}

/** Null where the kubelet's status was not seen to show any. */
const lagHistogram = (counts: readonly number[] = []): string | null =>
  counts.length === 0 ? null : histogram(counts);

/** Null where no list hung. */
function hangColumns(rows: readonly MinuteRow[]): unknown[] {
  const column = (value: (hang: ListHang, epochStart: number) => number | null) =>
    literal(rows, ({ scope, record: { statuses } }) =>
      statuses?.hang === undefined ? null : value(statuses.hang, scope.epochStart),
    );
  return [
    column(({ from }, epochStart) => epochStart + from),
    column(({ to }, epochStart) => (to === null ? null : epochStart + to)),
    column(({ waited }) => waited),
    column(({ listed }) => listed),
    column(({ asked }) => asked),
    column(({ quick }) => quick),
    column(({ unanswered }) => unanswered),
    rows.map(({ record }) => record.statuses?.hang?.call ?? null),
    rows.map(({ record }) => record.statuses?.hang?.verdict ?? null),
  ];
}

export const writeRelistMinutes = recordWriter('relist_minute', insertRelistMinutes, (rows) => [
  ...keysOf(rows),
  literal(rows, ({ record }) => record.relists),
  literal(rows, ({ record }) => record.errors),
  literal(rows, ({ record }) => record.max),
  rows.map(({ record }) => histogram(record.hist)),
  literal(rows, ({ record }) => record.sandboxes),
  literal(rows, ({ record }) => record.containers),
  literal(rows, ({ record }) => record.exitedSandboxes),
  literal(rows, ({ record }) => record.exitedContainers),
  literal(rows, ({ record }) => record.sandboxListBytes),
  literal(rows, ({ record }) => record.containerListBytes),
  literal(rows, ({ record }) => record.expected),
  literal(rows, ({ record }) => record.matched),
  literal(rows, ({ record }) => record.unobservable),
  literal(rows, ({ record }) => record.covered),
  literal(rows, ({ record }) => record.span),
  ...kubeletColumns(rows),
  ...callColumns(rows),
  literal(rows, ({ record }) => record.wall),
  rows.map(({ record }) => packLists(record.lists)),
  ...statusColumns(rows),
  ...pressureColumns(rows),
  ...hangColumns(rows),
  rows.map(({ record }) => lagHistogram(record.kubeletLag?.starts)),
  rows.map(({ record }) => lagHistogram(record.kubeletLag?.stops)),
]);
