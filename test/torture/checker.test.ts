import { expect, test } from 'vitest';
import type { EvidenceRecord } from '../../src/protocol/record.ts';
import { type Attempt, type CheckedRow, type CheckedStore, judge, type TortureEvidence } from './checker.ts';
import { factsOf } from './facts.ts';

const EPOCH = 'a0000000-0000-4000-8000-000000000001';
const NODE = 'node-0';

const event = (t: number): EvidenceRecord => ({
  type: 'container_event',
  t,
  containerId: 'c1',
  eventType: 1,
  createdNs: '5',
  isSandbox: false,
  replayed: false,
  hasSandboxStatus: true,
});
const closed = {
  type: 'gap',
  t: 9,
  gapId: 'b0000000-0000-4000-8000-000000000001',
  scope: 'stream',
  cause: 'broken',
  from: 1,
  to: 2,
} as const satisfies EvidenceRecord;

const attempt = (seq: number, record = event(seq)): Attempt => ({ node: NODE, epoch: EPOCH, seq, record });
const row = (seq: number, t = seq): CheckedRow => ({
  node: NODE,
  epoch: EPOCH,
  seq,
  kind: 'container_event',
  facts: factsOf(event(t)) ?? '',
});

function store(
  rows: readonly CheckedRow[],
  more: Partial<CheckedStore> & { lost?: [number, number][]; to?: number } = {},
): CheckedStore {
  const { lost = [], to = Math.max(0, ...rows.map(({ seq }) => seq)) } = more;
  return {
    rows,
    epochs: [{ node: NODE, epoch: EPOCH, received: [[1, to]], lost }],
    gaps: [],
    absences: [],
    folded: {
      sessions: new Map(),
      gaps: new Map(),
      resolutions: new Set(),
      overdue: new Set(),
      states: new Set(),
    },
    ...more,
  };
}

const evidence = (more: Partial<TortureEvidence>): TortureEvidence => ({
  attempts: [attempt(1), attempt(2)],
  ended: new Map(),
  deaths: [],
  upTo: new Map([[EPOCH, 2]]),
  store: store([row(1), row(2)]),
  faults: [],
  premature: [],
  undrained: 0,
  forgetful: new Set(),
  ...more,
});

test('what was attempted and is there once, as it was, is as promised', () => {
  expect(judge(evidence({}))).toMatchObject({ attempted: 2, stored: 2, problems: [] });
});

test('what was attempted and is not there is lost', () => {
  const { lost, problems } = judge(evidence({ store: store([row(1)]) }));
  expect(lost).toEqual([`${NODE} ${EPOCH}:2 container_event`]);
  expect(problems).toEqual(['1 lost']);
});

test('an epoch that the store has never heard of is lost', () => {
  expect(judge(evidence({ store: { ...store([]), epochs: [] } })).lost).toHaveLength(2);
});

test('what the epoch counts as received, and has no row, is lost', () => {
  expect(judge(evidence({ store: store([row(1)], { to: 2 }) })).lost).toHaveLength(1);
});

test('a row of a seq that the epoch does not count as received is not stored', () => {
  expect(judge(evidence({ store: store([row(1), row(2)], { to: 1 }) })).lost).toHaveLength(1);
});

test('what a living agent attempts later is not waited for', () => {
  expect(judge(evidence({ attempts: [attempt(1), attempt(2), attempt(3)] }))).toMatchObject({
    attempted: 2,
    problems: [],
  });
});

test('a row that nobody attempted is unexpected', () => {
  expect(judge(evidence({ store: store([row(1), row(2), row(3)]) })).problems).toEqual(['1 unexpected']);
});

test('a row that is not as it was attempted is unexpected', () => {
  expect(judge(evidence({ store: store([row(1), row(2, 77)]) })).problems).toEqual(['1 unexpected']);
});

test('a row of another node than the one that attempted it is unexpected', () => {
  const stranger = { ...row(2), node: 'node-1' };
  expect(judge(evidence({ store: store([row(1), stranger]) })).problems).toEqual(['1 unexpected']);
});

test('two rows of one record are a duplicate', () => {
  expect(judge(evidence({ store: store([row(1), row(2), row(2)]) })).problems).toEqual(['1 duplicated']);
});

test('a tail that died before the spool had it is undetermined, and no more than that', () => {
  const died = { store: store([row(1)]), ended: new Map([[EPOCH, 1]]) };
  expect(judge(evidence(died))).toMatchObject({ undetermined: 1, problems: [] });
  const inSpool = { ...died, ended: new Map([[EPOCH, 2]]) };
  expect(judge(evidence(inSpool)).problems).toEqual(['1 lost']);
});

test('a tail that is too long to have died on its way is a problem', () => {
  const attempts = Array.from({ length: 300 }, (_, i) => attempt(i + 1));
  const { problems } = judge(evidence({ attempts, store: store([row(1)]), ended: new Map([[EPOCH, 1]]) }));
  expect(problems).toEqual([`299 records of ${EPOCH} never reached the spool`]);
});

const fullDisk = (node: number) =>
  ({ atMs: 1, forMs: 1, fault: { kind: 'full disk', node, kill: false } }) as const;
const hole = { node: NODE, epoch: EPOCH, cause: 'store_lost', from: 2, to: 2 };

test('a gap covers what is lost only where the epoch counts it as lost too', () => {
  expect(judge(evidence({ store: store([row(1)], { gaps: [hole] }) })).lost).toHaveLength(1);
  const both = store([row(1)], { gaps: [hole], lost: [[2, 2]] });
  expect(judge(evidence({ store: both }))).toMatchObject({ lost: [], declared: 1 });
});

test('a gap that no fault explains is a problem', () => {
  const declared = { store: store([row(1)], { gaps: [hole], lost: [[2, 2]] as [number, number][] }) };
  expect(judge(evidence(declared)).problems).toEqual(['1 unexplained']);
  const restored = { atMs: 1, forMs: 1, fault: { kind: 'restore', of: 'postgres' } } as const;
  expect(judge(evidence({ ...declared, faults: [restored] })).problems).toEqual(['1 unexplained']);
  const explained = { ...declared, faults: [restored], forgetful: new Set([NODE]) };
  expect(judge(evidence(explained)).problems).toEqual([]);
});

test('what a restored store lacks may be gone where the disk was full, which takes what is acknowledged', () => {
  const declared = { store: store([row(1)], { gaps: [hole], lost: [[2, 2]] as [number, number][] }) };
  const restored = { atMs: 2, forMs: 1, fault: { kind: 'restore', of: 'postgres' } } as const;
  const problems = (...faults: TortureEvidence['faults']) =>
    judge(evidence({ ...declared, faults })).problems;
  expect(problems(fullDisk(0), restored)).toEqual([]);
  expect(problems(fullDisk(0))).toEqual(['1 unexplained']);
  expect(problems(fullDisk(1), restored)).toEqual(['1 unexplained']);
});

test('a gap of a full disk is explained by that of its own node only', () => {
  const cause = { ...hole, cause: 'spool_unwritable' };
  const declared = { store: store([row(1)], { gaps: [cause], lost: [[2, 2]] as [number, number][] }) };
  expect(judge(evidence({ ...declared, faults: [fullDisk(1)] })).problems).toEqual(['1 unexplained']);
  expect(judge(evidence({ ...declared, faults: [fullDisk(0)] })).problems).toEqual([]);
});

test('an absence of the agent is explained by a death of it in that time, on that node', () => {
  const absent = { ...store([row(1), row(2)]), absences: [{ node: NODE, from: 10_000, to: 20_000 }] };
  const died = (at: number, node = NODE) =>
    judge(evidence({ store: absent, deaths: [{ node, at }] })).problems;
  expect(died(15_000)).toEqual([]);
  expect(died(40_000)).toEqual(['1 unexplained']);
  expect(died(15_000, 'node-1')).toEqual(['1 unexplained']);
});

test('an absence by a clock that was moved is explained by any death of that agent', () => {
  const absent = { ...store([row(1), row(2)]), absences: [{ node: NODE, from: 10_000, to: 20_000 }] };
  const deaths = [{ node: NODE, at: 40_000 }];
  const moved = (node: number, died = deaths) =>
    judge(
      evidence({
        store: absent,
        deaths: died,
        faults: [{ atMs: 0, forMs: 1, fault: { kind: 'clock', node, byMs: 3_600_000 } }],
      }),
    ).problems;
  expect(moved(0)).toEqual([]);
  expect(moved(1)).toEqual(['1 unexplained']);
  expect(moved(0, [])).toEqual(['1 unexplained']);
});

test('a folded record is stored when its row knows of it', () => {
  const attempts = [attempt(1), attempt(2, closed)];
  const known = (ended: boolean): CheckedStore => {
    const there = store([row(1)], { to: 2 });
    return { ...there, folded: { ...there.folded, gaps: new Map([[closed.gapId, ended]]) } };
  };
  expect(judge(evidence({ attempts, store: known(false) })).problems).toEqual(['1 lost']);
  expect(judge(evidence({ attempts, store: known(true) })).problems).toEqual([]);
});

test('an acknowledgement ahead of what is committed is a problem, whatever comes later', () => {
  const premature = [{ epoch: EPOCH, round: 1, acknowledged: 2, committed: 1 }];
  expect(judge(evidence({ premature })).problems).toEqual(['1 premature']);
});

test('a batch that nobody takes out of its lane is a problem', () => {
  expect(judge(evidence({ undrained: 1 })).problems).toEqual(['1 batches stand in the lanes']);
});

test('a store in which nothing is stored is a problem even where nothing was attempted', () => {
  expect(judge(evidence({ attempts: [], store: store([]) })).problems).toEqual(['nothing was stored at all']);
});
