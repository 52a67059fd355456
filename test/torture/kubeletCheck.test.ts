import { describe, expect, test } from 'vitest';
import type { TruthEntry } from '../../devtools/simulator/groundTruth.ts';
import type { KubeletContainer } from '../../src/protocol/observation.ts';
import type { EvidenceRecord } from '../../src/protocol/record.ts';
import { mono, wall } from '../../src/protocol/units.ts';
import { checkKubelets } from './kubeletCheck.ts';

const EPOCH = 'a0000000-0000-4000-8000-000000000001';
const NODE = 'node-0';
/** The epoch began here; times below are seconds since then. */
const START = mono(1_000_000_000);

const pod = { uid: 'u1', namespace: 'sim', name: 'web' };
const subject = { id: 'c1', sandbox: 's1', isSandbox: false, pod, container: 'app', attempt: 0 };
type Entry = Parameters<typeof entriesOf>[0][number][1];

/** Entries of the ground truth at these seconds. */
function entriesOf(
  entries: readonly (readonly [
    at: number,
    entry: TruthEntry extends infer T ? (T extends TruthEntry ? Omit<T, 'n' | 'at' | 'mono'> : never) : never,
  ])[],
): TruthEntry[] {
  return entries.map(([at, entry], n) => ({ n, at: wall(0), mono: mono(START + at * 1e6), ...entry }));
}

const happened = (transition: 'started' | 'stopped'): Entry => ({
  ...{ what: 'transition', ...subject, transition, exitCode: null, silent: null },
});
const status = (state: KubeletContainer['state'] | null, more = {}): Entry => ({
  ...{ what: 'status', pod, isTerminating: false, ended: false },
  containers: state === null ? [] : [{ id: 'c1', name: 'app', state, lastId: null }],
  ...more,
});
const watch = (number: number, change: 'opened' | 'closed', cause = ''): Entry => ({
  ...{ what: 'watch', watch: number, change, cause },
});

/** A stop at 10 s that the status does not show by 13 s, when the agent asks. */
const LATE = [
  [1, watch(1, 'opened')],
  [2, status('running')],
  [10, happened('stopped')],
] as const;

const finding = (more: object = {}): EvidenceRecord => ({
  ...{ type: 'finding', t: 15e6, findingId: 'f', kind: 'kubelet_late', eventType: 'STOPPED' },
  ...{ cause: 'not_shown', containerId: 'c1', window: { from: 9.5e6, to: 10.5e6 }, occurred: null },
  ...{ lateness: 2.5e6, delivery: null },
  proof: { asked: 13e6, answered: 13.1e6, lateAfter: 2e6 },
  ...more,
});

const check = (records: readonly EvidenceRecord[], entries: readonly TruthEntry[]) =>
  checkKubelets(
    records.map((record, i) => ({ node: NODE, epoch: EPOCH, seq: i + 1, record })),
    { kubelets: [{ node: NODE, entries }], starts: new Map([[EPOCH, START]]) },
  );

describe('an accusation', () => {
  test('a late status is true if the status had not shown the stop by the time of the question', () => {
    expect(check([finding()], entriesOf(LATE))).toMatchObject({ accused: [], late: 1 });
    const later = entriesOf([...LATE, [13.5, status('terminated')]]);
    expect(check([finding()], later).accused).toEqual([]);
  });

  test.each<[string, Parameters<typeof entriesOf>[0], object?]>([
    ['the status had shown it', [...LATE, [12, status('terminated')]]],
    ['it had not happened', LATE.slice(0, 2)],
    ['it happened after the window', [...LATE.slice(0, 2), [10.6, happened('stopped')]]],
    ['the kubelet did not know the pod', [LATE[0], LATE[2]]],
    ['the pod was terminating', [...LATE, [12, status('running', { isTerminating: true })]]],
    ['the pod had ended', [...LATE, [12, status('terminated', { ended: true })]]],
    ['the watch had ended', [...LATE, [12, watch(1, 'closed', 'UNAVAILABLE')]]],
    ['the watch began too late', [[9.8, watch(1, 'opened')], ...LATE.slice(1)]],
    ['it was asked too early', LATE, { proof: { asked: 12e6, answered: 12.1e6, lateAfter: 2e6 } }],
  ])('a late status is false if %s', (_, entries, more) => {
    expect(check([finding(more)], entriesOf(entries)).accused).toHaveLength(1);
  });

  test('nothing is said of an epoch whose start is not known', () => {
    const attempts = [{ node: NODE, epoch: 'another', seq: 1, record: finding() }];
    const result = checkKubelets(attempts, { kubelets: [], starts: new Map() });
    expect(result).toMatchObject({ accused: [], late: 0 });
  });
});

describe('a claim that the status was watched', () => {
  const state = (t: number, podsApi: 'Watching' | 'Broken'): EvidenceRecord => ({
    ...{ type: 'node_state', t: t * 1e6, model: '', mode: 'Generic', modeSince: 0, modeReason: '' },
    stream: { state: 'Off', since: 0, reason: '', lastError: '' },
    relist: { healthy: true, reason: '' },
    podsApi: { state: podsApi, reason: '' },
  });
  const gap = (from: number, to: number | null): EvidenceRecord => ({
    ...{ type: 'gap', t: (to ?? from) * 1e6, gapId: 'g', scope: 'kubelet_status', cause: 'ended' },
    ...{ from: from * 1e6, to: to === null ? null : to * 1e6 },
  });
  const ended = entriesOf([
    [1, watch(1, 'opened')],
    [20, watch(1, 'closed', 'RESOURCE_EXHAUSTED')],
    [22, watch(2, 'opened')],
  ]);

  test('a gap that covers the time without a watch leaves no false claim', () => {
    const records = [state(2, 'Watching'), gap(19, null), gap(19, 22.1), state(60, 'Watching')];
    expect(check(records, ended)).toMatchObject({ unwatched: [], claims: 2 });
  });

  test.each([
    ['there is no gap', [state(2, 'Watching'), state(60, 'Watching')]],
    [
      'the gap begins too late',
      [state(2, 'Watching'), gap(20.5, null), gap(20.5, 22.1), state(60, 'Watching')],
    ],
    ['the gap ends too early', [state(2, 'Watching'), gap(19, null), gap(19, 21), state(60, 'Watching')]],
  ])('the claim is false if %s', (_, records) => {
    expect(check(records, ended).unwatched).toHaveLength(1);
  });

  test('a watch that the agent left is no break, nor is one that ended before the agent could say so', () => {
    const left = entriesOf([
      [1, watch(1, 'opened')],
      [20, watch(1, 'closed', 'cancelled')],
    ]);
    expect(check([state(2, 'Watching'), state(60, 'Watching')], left).unwatched).toEqual([]);
    expect(check([state(2, 'Watching'), state(24, 'Watching')], ended).unwatched).toEqual([]);
  });
});
