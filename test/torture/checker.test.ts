import { expect, test } from 'vitest';
import type { EvidenceRecord } from '../../src/protocol/record.ts';
import { type CheckedRow, type CheckedStore, checkRecords, type TortureEvidence } from './checker.ts';
import { type Attempt, factsOf } from './facts.ts';
import type { Event } from './schedule.ts';

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
    downtimes: [],
    undeclared: [],
    miscounted: [],
    strangers: [],
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
  different: [],
  undrained: 0,
  forgetful: new Set(),
  kubelets: [],
  starts: new Map(),
  ...more,
});

test('records that are stored once and unchanged are no problem', () => {
  expect(checkRecords(evidence({}))).toMatchObject({ attempted: 2, stored: 2, problems: [] });
});

test('an attempted record that is not stored is lost', () => {
  const { lost, problems } = checkRecords(evidence({ store: store([row(1)]) }));
  expect(lost).toEqual([`${NODE} ${EPOCH}:2 container_event`]);
  expect(problems).toEqual(['1 lost']);
});

test('every record of an epoch that the store does not know is lost', () => {
  expect(checkRecords(evidence({ store: { ...store([]), epochs: [] } })).lost).toHaveLength(2);
});

test('a record that its epoch counts as received but that has no row is lost', () => {
  expect(checkRecords(evidence({ store: store([row(1)], { to: 2 }) })).lost).toHaveLength(1);
});

test('a row of a seq that the epoch does not count as received is not stored', () => {
  expect(checkRecords(evidence({ store: store([row(1), row(2)], { to: 1 }) })).lost).toHaveLength(1);
});

test('later records of an agent that is alive are not waited for', () => {
  expect(checkRecords(evidence({ attempts: [attempt(1), attempt(2), attempt(3)] }))).toMatchObject({
    attempted: 2,
    problems: [],
  });
});

test('a node that there is not is unexpected', () => {
  expect(checkRecords(evidence({ store: store([row(1), row(2)], { strangers: ['node-x'] }) }))).toMatchObject(
    {
      unexpected: ['node-x: there is no such node'],
      problems: ['1 unexpected'],
    },
  );
});

test('a row that no agent attempted is unexpected', () => {
  expect(checkRecords(evidence({ store: store([row(1), row(2), row(3)]) })).problems).toEqual([
    '1 unexpected',
  ]);
});

test('a row that differs from its attempt is unexpected', () => {
  expect(checkRecords(evidence({ store: store([row(1), row(2, 77)]) })).problems).toEqual(['1 unexpected']);
});

test('a row that lost how its container ended is unexpected', () => {
  const stopped = { ...event(2), exit: { code: 0, reason: 'Completed' } } as const;
  expect(checkRecords(evidence({ attempts: [attempt(1), attempt(2, stopped)] })).problems).toEqual([
    '1 unexpected',
  ]);
});

test('a row stored under another node is unexpected', () => {
  const otherNode = { ...row(2), node: 'node-1' };
  expect(checkRecords(evidence({ store: store([row(1), otherNode]) })).problems).toEqual(['1 unexpected']);
});

test('two rows of one record are a duplicate', () => {
  expect(checkRecords(evidence({ store: store([row(1), row(2), row(2)]) })).problems).toEqual([
    '1 duplicated',
  ]);
});

test('a tail that did not reach the spool before the agent died is undetermined, and one that did is lost', () => {
  const died = { store: store([row(1)]), ended: new Map([[EPOCH, 1]]) };
  expect(checkRecords(evidence(died))).toMatchObject({ undetermined: 1, problems: [] });
  const inSpool = { ...died, ended: new Map([[EPOCH, 2]]) };
  expect(checkRecords(evidence(inSpool)).problems).toEqual(['1 lost']);
});

test('an undetermined tail of more records than can be in flight is a problem', () => {
  const attempts = Array.from({ length: 300 }, (_, i) => attempt(i + 1));
  const { problems } = checkRecords(
    evidence({ attempts, store: store([row(1)]), ended: new Map([[EPOCH, 1]]) }),
  );
  expect(problems).toEqual([`299 records of ${EPOCH} never reached the spool`]);
});

const fullDisk = (node: number) =>
  ({ atMs: 1, forMs: 1, fault: { kind: 'full disk', node, kill: false } }) as const;
const lostRange = { node: NODE, epoch: EPOCH, cause: 'store_lost', from: 2, to: 2 };

test('a gap declares a loss only if the epoch counts the seq as lost too', () => {
  expect(checkRecords(evidence({ store: store([row(1)], { gaps: [lostRange] }) })).lost).toHaveLength(1);
  const both = store([row(1)], { gaps: [lostRange], lost: [[2, 2]] });
  expect(checkRecords(evidence({ store: both }))).toMatchObject({ lost: [], declared: 1 });
});

test('a gap that no fault explains is a problem', () => {
  const declared = { store: store([row(1)], { gaps: [lostRange], lost: [[2, 2]] as [number, number][] }) };
  expect(checkRecords(evidence(declared)).problems).toEqual(['1 unexplained']);
  const restored = { atMs: 1, forMs: 1, fault: { kind: 'restore', of: 'postgres' } } as const;
  expect(checkRecords(evidence({ ...declared, faults: [restored] })).problems).toEqual(['1 unexplained']);
  const explained = { ...declared, faults: [restored], forgetful: new Set([NODE]) };
  expect(checkRecords(evidence(explained)).problems).toEqual([]);
});

test('records missing from a restored store are explained if a full disk evicted the acknowledged ones', () => {
  const declared = { store: store([row(1)], { gaps: [lostRange], lost: [[2, 2]] as [number, number][] }) };
  const restored = { atMs: 2, forMs: 1, fault: { kind: 'restore', of: 'postgres' } } as const;
  const problems = (...faults: TortureEvidence['faults']) =>
    checkRecords(evidence({ ...declared, faults })).problems;
  expect(problems(fullDisk(0), restored)).toEqual([]);
  expect(problems(fullDisk(0))).toEqual(['1 unexplained']);
  expect(problems(fullDisk(1), restored)).toEqual(['1 unexplained']);
});

test('a misread block explains corrupt records of its node, and a full Redis explains no gap', () => {
  const problems = (fault: Event['fault'], cause = 'spool_corrupt') => {
    const gaps = [{ ...lostRange, cause }];
    const declared = { store: store([row(1)], { gaps, lost: [[2, 2]] }) };
    return checkRecords(evidence({ ...declared, faults: [{ atMs: 1, forMs: 1, fault }] })).problems;
  };
  expect(problems({ kind: 'misread block', node: 0, block: 1, by: 1 })).toEqual([]);
  expect(problems({ kind: 'misread block', node: 1, block: 1, by: 1 })).toEqual(['1 unexplained']);
  expect(problems({ kind: 'misread block', node: 0, block: 1, by: 1 }, 'spool_full')).toEqual([
    '1 unexplained',
  ]);
  expect(problems({ kind: 'full redis' })).toEqual(['1 unexplained']);
});

test('a gap of a full disk is explained only by a full disk of that node', () => {
  const cause = { ...lostRange, cause: 'spool_unwritable' };
  const declared = { store: store([row(1)], { gaps: [cause], lost: [[2, 2]] as [number, number][] }) };
  expect(checkRecords(evidence({ ...declared, faults: [fullDisk(1)] })).problems).toEqual(['1 unexplained']);
  expect(checkRecords(evidence({ ...declared, faults: [fullDisk(0)] })).problems).toEqual([]);
});

test('a downtime is explained by a death of that agent in that time', () => {
  const absent = {
    ...store([row(1), row(2)]),
    downtimes: [{ node: NODE, cause: 'died', from: 10_000, to: 20_000 }],
  };
  const died = (at: number, node = NODE) =>
    checkRecords(evidence({ store: absent, deaths: [{ node, at }] })).problems;
  expect(died(15_000)).toEqual([]);
  expect(died(40_000)).toEqual(['1 unexplained']);
  expect(died(15_000, 'node-1')).toEqual(['1 unexplained']);
});

test('a downtime under a moved clock is explained by any death of that agent', () => {
  const absent = {
    ...store([row(1), row(2)]),
    downtimes: [{ node: NODE, cause: 'died', from: 10_000, to: 20_000 }],
  };
  const deaths = [{ node: NODE, at: 40_000 }];
  const moved = (node: number, died = deaths) =>
    checkRecords(
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

test('a folded record is stored if its row reflects it', () => {
  const attempts = [attempt(1), attempt(2, closed)];
  const known = (ended: boolean): CheckedStore => {
    const there = store([row(1)], { to: 2 });
    return { ...there, folded: { ...there.folded, gaps: new Map([[closed.gapId, ended]]) } };
  };
  expect(checkRecords(evidence({ attempts, store: known(false) })).problems).toEqual(['1 lost']);
  expect(checkRecords(evidence({ attempts, store: known(true) })).problems).toEqual([]);
});

test('an acknowledgement ahead of the committed seqs is a problem', () => {
  const premature = [{ epoch: EPOCH, ackGeneration: 1, acknowledged: 2, committed: 1 }];
  expect(checkRecords(evidence({ premature })).problems).toEqual(['1 premature']);
});

test('a batch left in its queue is a problem', () => {
  expect(checkRecords(evidence({ undrained: 1 })).problems).toEqual(['1 batches left in the inboxes']);
});

test('an empty store is a problem even if nothing was attempted', () => {
  expect(checkRecords(evidence({ attempts: [], store: store([]) })).problems).toEqual([
    'nothing was stored at all',
  ]);
});

test('a downtime that the next agent did not declare is explained only by lost records', () => {
  const silent = { node: NODE, cause: 'silent', from: 10_000, to: 20_000 };
  const deaths = [{ node: NODE, at: 15_000 }];
  const absent = { ...store([row(1), row(2)]), downtimes: [silent] };
  expect(checkRecords(evidence({ deaths, store: absent })).problems).toEqual(['1 unexplained']);
  const gap = { node: NODE, epoch: EPOCH, cause: 'spool_full', from: 3, to: 4 };
  const fault = { kind: 'full disk', node: 0, kill: true } as const;
  const faults = [{ atMs: 0, forMs: 1, fault }];
  const lossy = { ...absent, gaps: [gap] };
  expect(checkRecords(evidence({ deaths, faults, store: lossy })).problems).toEqual([]);
});

test('an hour that is not the sum of its minutes is miscounted', () => {
  const miscounted = [{ node: NODE, hour: '2026-11-23 10:00:00+00' }];
  const { problems } = checkRecords(evidence({ store: { ...store([row(1), row(2)]), miscounted } }));
  expect(problems).toEqual(['1 miscounted']);
});

test('a period that neither evidence nor a gap covers is undeclared', () => {
  const undeclared = [{ node: NODE, scope: 'stream', from: 10_000, to: 20_000 }];
  const { problems } = checkRecords(evidence({ store: { ...store([row(1), row(2)]), undeclared } }));
  expect(problems).toEqual(['1 undeclared']);
});

test('an audit that finds something wrong in the store is a problem', () => {
  const different = ['node-0: A finding is not there.'];
  expect(checkRecords(evidence({ different })).problems).toEqual(['1 different']);
});
