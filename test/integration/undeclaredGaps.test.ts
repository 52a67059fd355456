/*
 * The rows of plegwatch.undeclared_gaps: periods that neither a session nor a gap covers. Records are committed as agents write them.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Batch } from '../../src/protocol/batch.ts';
import type { EvidenceRecord, GapScope } from '../../src/protocol/record.ts';
import { agentStartedAt, type BatchIncarnation } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { event } from '../support/records.ts';

const SECOND = 1_000_000;
const BEGAN = Date.now() - 3_600_000;

let server: TestServer;
let databaseUrl: string;

/** Times are seconds since the start of the epoch. */
const gap = (scope: GapScope, from: number, to: number | null, cause = 'broken'): EvidenceRecord => ({
  type: 'gap',
  t: Math.max(0, (to ?? from) * SECOND),
  gapId: randomUUID(),
  scope,
  cause,
  from: from * SECOND,
  to: to === null ? null : to * SECOND,
});

const session = (no: number, armed: number | null, closed: number | null): EvidenceRecord => ({
  type: 'stream_session',
  t: (closed ?? armed ?? 0) * SECOND,
  sessionNo: no,
  opened: (armed ?? 1) * SECOND - 1,
  armed: armed === null ? null : armed * SECOND,
  closed: closed === null ? null : closed * SECOND,
  code: closed === null ? null : 'UNAVAILABLE',
  message: closed === null ? null : 'EOF',
  events: 1,
  replayed: 0,
});

const minute = (from: number, relists: number, span = 60): EvidenceRecord => ({
  type: 'relist_minute',
  t: from * SECOND,
  span: span * SECOND,
  relists,
  errors: 0,
  max: 1_000,
  hist: [relists],
  sandboxes: 1,
  containers: 1,
  exitedSandboxes: 0,
  exitedContainers: 0,
  sandboxListBytes: 400,
  containerListBytes: 600,
  expected: 0,
  matched: 0,
  unobservable: 0,
  covered: 0,
  decided: 0,
  wall: 0,
  lists: [],
});

/** The first records of an agent that found another one in the spool that had not stopped. */
const cutOff = (from: number, cause: string) => [gap('agent', from, 0.1, cause), gap('stream', 0, null)];

/** An incarnation that started this many seconds after the first one and wrote its last batch this many seconds later. */
function incarnation(no: number, startedS: number): BatchIncarnation {
  return agentStartedAt('node-a', no, BEGAN + startedS * 1_000);
}

/** A batch that was sealed this many seconds after the start of its epoch. */
const cut = (
  agent: BatchIncarnation,
  atS: number,
  records: readonly EvidenceRecord[],
  more: Partial<Batch> = {},
) => {
  const batch = agent.batch(1, records);
  const started = batch.wall0 - batch.mono0;
  return { ...batch, mono0: atS * SECOND, wall0: started + atS * SECOND, ...more };
};

/** Scope, start and end in seconds since the start of the first epoch. */
async function undeclared(more = ''): Promise<unknown[]> {
  const rows = await query<{ hole: unknown }>(
    databaseUrl,
    `SELECT json_build_array(scope, round(extract(epoch FROM from_at - began), 1), round(extract(epoch FROM to_at - began), 1)) AS hole
       FROM plegwatch.undeclared_gaps(${more}) u, (SELECT min(started_at) AS began FROM plegwatch.epochs) e ORDER BY scope DESC, from_at`,
  );
  return rows.map(({ hole }) => hole);
}

/** The gaps of lists and scrapes, in seconds since the start of the first epoch. */
async function unlisted(): Promise<unknown[]> {
  const rows = await query<{ gap: unknown }>(
    databaseUrl,
    `SELECT json_build_array(scope, cause, round(extract(epoch FROM from_at - began)), round(extract(epoch FROM to_at - began))) AS gap
       FROM plegwatch.gaps, (SELECT min(started_at) AS began FROM plegwatch.epochs) e WHERE scope IN ('list', 'kubelet') ORDER BY scope DESC, from_at`,
  );
  return rows.map(({ gap: each }) => each);
}

/** The gaps in which nobody observed the node, in seconds since the start of the first epoch. */
async function downtimes(): Promise<unknown[]> {
  const rows = await query<{ gap: unknown }>(
    databaseUrl,
    `SELECT json_build_array(scope, cause, round(extract(epoch FROM from_at - began), 1), round(extract(epoch FROM to_at - began), 1)) AS gap
       FROM plegwatch.gaps, (SELECT min(started_at) AS began FROM plegwatch.epochs) e WHERE scope = 'agent' ORDER BY from_at`,
  );
  return rows.map(({ gap: each }) => each);
}

needs('postgres')('an undeclared gap', () => {
  beforeAll(async () => {
    server = await startServer();
  });
  beforeEach(async () => {
    databaseUrl = await server.database();
  });
  afterAll(() => server?.stop());

  it('is none where a gap lasts from the start to the first event, and a session from there on', async () => {
    await commitAll(databaseUrl, [
      cut(incarnation(1, 0), 100, [gap('stream', 0, 10, 'unproven'), session(1, 10, null)]),
    ]);
    expect(await undeclared()).toEqual([]);
  });

  it('is listed between the end of a session and the gap after it', async () => {
    await commitAll(databaseUrl, [
      cut(incarnation(1, 0), 100, [
        gap('stream', 0, 10),
        session(1, 10, 40),
        gap('stream', 45, 60),
        session(2, 60, null),
      ]),
    ]);
    expect(await undeclared()).toEqual([['stream', 40, 45]]);
  });

  it("is listed although the kubelet's own status was not watched since a stall of the agent, which says nothing of the stream", async () => {
    const stalled = gap('kubelet_status', 30, null, 'agent_stalled');
    await commitAll(databaseUrl, [
      cut(incarnation(1, 0), 100, [gap('stream', 0, 10), session(1, 10, 40), stalled, session(2, 60, null)]),
    ]);
    expect(await undeclared()).toEqual([['stream', 40, 60]]);
  });

  it('is listed at the start and at the end of what has arrived', async () => {
    await commitAll(databaseUrl, [cut(incarnation(1, 0), 100, [session(1, 10, 90)])]);
    expect(await undeclared()).toEqual([
      ['stream', 0, 10],
      ['stream', 90, 100],
    ]);
  });

  it('is listed between the end of all gaps of an agent and the downtime that the next one declares', async () => {
    const [first, second] = [incarnation(1, 0), incarnation(2, 105)];
    await commitAll(databaseUrl, [
      cut(first, 98, [gap('stream', 0, 10), session(1, 10, 97), gap('stream', 96, 98)]),
      cut(second, 20, [gap('agent', -4, 0.1, 'died'), gap('stream', 0, null)], { prev: first.epoch }),
    ]);
    expect(await undeclared()).toEqual([['stream', 98, 101]]);
  });

  it('is none from the moment at which an agent says that it stopped to the start of the next one', async () => {
    const [first, second] = [incarnation(1, 0), incarnation(2, 105)];
    await commitAll(databaseUrl, [
      cut(first, 98, [gap('stream', 0, 10), session(1, 10, 97.5), gap('agent', 97, null, 'stopped')]),
      cut(second, 20, [gap('stream', 0, null)], { prev: first.epoch }),
    ]);
    expect(await undeclared()).toEqual([]);
  });

  it('is none where an open session ends with the downtime that the next agent declares, whatever the wall clock did', async () => {
    const [first, second] = [incarnation(1, 0), incarnation(2, 105)];
    const stepped = cut(second, 20, [gap('agent', -10, 0.1, 'died'), gap('stream', 0, null)]);
    await commitAll(databaseUrl, [
      cut(first, 90, [gap('stream', 0, 10), session(1, 10, null)]),
      { ...stepped, wall0: stepped.wall0 + 1_800 * SECOND, prev: first.epoch },
    ]);
    expect(await undeclared()).toEqual([]);
    const [ended] = await query(
      databaseUrl,
      'SELECT extract(epoch FROM closed_at - opened_at)::int4 AS lasted FROM plegwatch.stream_sessions',
    );
    expect(ended).toEqual({ lasted: 85 });
  });

  it.each([
    ['went back and hides a downtime', 0],
    ['went ahead and adds one that was observed', -90_000],
  ])(
    'is none after a reboot whose wall clock %s: the gap begins at the last thing known',
    async (_what, from) => {
      await commitAll(databaseUrl, [
        cut(incarnation(1, 0), 100, [gap('stream', 0, 10), session(1, 10, null)]),
        cut(incarnation(2, 700), 60, [gap('agent', from, 0, 'rebooted'), gap('stream', 0, null)], {
          bootId: 'boot-2',
        }),
      ]);
      expect(await downtimes()).toEqual([['agent', 'rebooted', 97, 700]]);
      expect(await undeclared()).toEqual([]);
    },
  );

  it('is none after a reboot whose wall clock agrees with what is known: the gap begins when it says', async () => {
    await commitAll(databaseUrl, [
      cut(incarnation(1, 0), 100, [gap('stream', 0, 10), session(1, 10, null)]),
      cut(incarnation(2, 700), 60, [gap('agent', -570, 0, 'rebooted'), gap('stream', 0, null)], {
        bootId: 'boot-2',
      }),
    ]);
    expect(await downtimes()).toEqual([['agent', 'rebooted', 130, 700]]);
  });

  it.each([
    ['was killed', cutOff(-6, 'died'), ['agent', 'died', 99, 105.1]],
    ['stopped', [gap('stream', 0, null)], ['agent', 'stopped', 97, 105]],
    ['was on a boot before', cutOff(-90_000, 'rebooted'), ['agent', 'rebooted', 97, 105.1]],
  ] as const)(
    'is none after an agent that %s and one that ended before its first record: one gap lasts until the first agent that records something',
    async (_how, records, declared) => {
      const [first, empty, third] = [incarnation(1, 0), incarnation(2, 102), incarnation(3, 105)];
      const ended = declared[1] === 'stopped' ? [gap('agent', 97, null, 'stopped')] : [];
      const boot = declared[1] === 'rebooted' ? { bootId: 'boot-2' } : {};
      await commitAll(databaseUrl, [
        cut(first, 100, [gap('stream', 0, 10), session(1, 10, null), ...ended]),
        cut(empty, 0, [], { ...boot, prev: first.epoch }),
      ]);
      expect(await downtimes()).toEqual(ended.length === 0 ? [] : [[...declared.slice(0, 3), null]]);
      await commitAll(databaseUrl, [cut(third, 20, records, { ...boot, prev: empty.epoch })]);
      expect(await downtimes()).toEqual([declared]);
      expect(await undeclared()).toEqual([]);
    },
  );

  it('is none while lost records may have said why', async () => {
    const lost = [{ from: 2, to: 3, cause: 'spool_full' }];
    const agent = incarnation(1, 0);
    const first = cut(agent, 20, [gap('stream', 0, 10)]);
    const second = cut(agent, 100, [session(2, 60, null)], { first: 4, last: 4, lost });
    await commitAll(databaseUrl, [first, second]);
    expect(await undeclared()).toEqual([]);
  });

  it.each([
    ['the first records', 1],
    ['later records', 2],
  ])(
    'is listed after the first record that follows on lost ones, however late the loss of %s was declared',
    async (_, from) => {
      const agent = incarnation(1, 0);
      const lost = [{ from, to: 3, cause: 'spool_full' }];
      const after = [event(4, { t: 20 * SECOND }), session(1, 60, null)];
      await commitAll(databaseUrl, [
        ...(from === 1 ? [] : [cut(agent, 10, [gap('stream', 0, 5)])]),
        cut(agent, 100, after, { first: 4, last: 5, lost }),
      ]);
      expect(await undeclared()).toEqual([['stream', 20, 60]]);
    },
  );

  it.each([
    ['an event', []],
    ['a subscription without an event', [session(2, null, null)]],
    ['a stall', [gap('stream', 30, 40, 'reader_stalled')]],
  ])(
    'is none after lost records that may have begun a session or a gap which lasted until the agent died, where only %s is stored',
    async (_, after) => {
      const [first, second] = [incarnation(1, 0), incarnation(2, 105)];
      const lost = [{ from: 2, to: 3, cause: 'spool_unreadable' }];
      const records = [event(4, { t: 20 * SECOND }), ...after];
      await commitAll(databaseUrl, [
        cut(first, 10, [gap('stream', 0, 5)]),
        cut(first, 90, records, { first: 4, last: 3 + records.length, lost }),
        cut(second, 20, [gap('agent', -4, 0.1, 'died'), gap('stream', 0, null)], { prev: first.epoch }),
      ]);
      expect(await undeclared()).toEqual([]);
    },
  );

  it.each([
    ['a session that lasted on', session(1, 5, 40), ['stream', 40, 101]],
    ['a session that began later', session(2, 60, 80), ['stream', 20, 60], ['stream', 80, 101]],
    ['a gap that began later', gap('stream', 60, null), ['stream', 20, 60]],
  ] as const)(
    'is listed although records are lost, where %s says that nothing that these began was going on',
    async (_, told, ...listed) => {
      const [first, second] = [incarnation(1, 0), incarnation(2, 105)];
      const lost = [{ from: 2, to: 3, cause: 'spool_unreadable' }];
      const after = [event(4, { t: 20 * SECOND }), told];
      await commitAll(databaseUrl, [
        cut(first, 10, [gap('stream', 0, 5)]),
        cut(first, 90, after, { first: 4, last: 5, lost }),
        cut(second, 20, [gap('agent', -4, 0.1, 'died'), gap('stream', 0, null)], { prev: first.epoch }),
      ]);
      expect(await undeclared()).toEqual(listed);
    },
  );

  it('is none after lost records that a batch without records declared, which says nothing of their time', async () => {
    const [first, second] = [incarnation(1, 0), incarnation(2, 105)];
    const lost = [{ from: 4, to: 4, cause: 'spool_corrupt' }];
    const held = [{ epoch: first.epoch, incarnation: 1, last: 5 }];
    const before = [gap('stream', 0, 5), session(1, 5, 30), gap('stream', 28, 40)];
    await commitAll(databaseUrl, [
      cut(first, 40, before),
      cut(second, 20, [gap('agent', -4, 0.1, 'died'), gap('stream', 0, null)], { prev: first.epoch }),
      cut(first, 0, [], { lost, held }),
      cut(first, 41, [event(5, { t: 41 * SECOND })], { first: 5, last: 5, lost, held }),
    ]);
    expect(await undeclared()).toEqual([]);
  });

  it('is listed before lost records, however late the loss was declared', async () => {
    const agent = incarnation(1, 0);
    const [last, next] = [event(3, { t: 60 * SECOND }), event(5, { t: 70 * SECOND })];
    const lost = [{ from: 4, to: 4, cause: 'spool_unreadable' }];
    await commitAll(databaseUrl, [
      cut(agent, 60, [gap('stream', 0, 5), session(1, 5, 40), last]),
      cut(agent, 80, [next, gap('stream', 70, null)], { first: 5, last: 6 }),
      cut(agent, 90, [], { lost }),
    ]);
    expect(await undeclared()).toEqual([['stream', 40, 60]]);
  });

  it('is none between lost records of which the first may have begun a gap, and the others have ended it', async () => {
    const agent = incarnation(1, 0);
    const lost = [2, 5].map((seq) => ({ from: seq, to: seq, cause: 'spool_unreadable' }));
    const between = [20, 40].map((at, i) => event(3 + i, { t: at * SECOND }));
    const after = [event(6, { t: 70 * SECOND }), session(1, 60, null)];
    await commitAll(databaseUrl, [
      cut(agent, 10, [gap('stream', 0, 5)]),
      cut(agent, 50, between, { first: 3, last: 4, lost: lost.slice(0, 1) }),
      cut(agent, 90, after, { first: 6, last: 7, lost }),
    ]);
    expect(await undeclared()).toEqual([]);
  });

  it('is listed where lists did not work after lost records that may have said so, and worked again meanwhile', async () => {
    const agent = incarnation(1, 0);
    const lost = [{ from: 2, to: 2, cause: 'spool_unreadable' }];
    const silent = (from: number) => minute(from, 0, 300);
    const records = [silent(60), silent(360)];
    await commitAll(databaseUrl, [
      cut(agent, 10, [gap('stream', 0, null)]),
      cut(agent, 700, records, { first: 3, last: 4, lost }),
    ]);
    expect(await undeclared()).toEqual([]);
    await commitAll(databaseUrl, [
      cut(agent, 1_100, [minute(660, 12), silent(720)], { first: 5, last: 6, lost }),
    ]);
    expect(await undeclared()).toEqual([
      ['list', 360, 660],
      // The time after the last minute is still to come.
      ['list', 720, 1_020],
    ]);
  });

  it('is a period of more than two minutes without a relist or a gap of lists', async () => {
    await commitAll(databaseUrl, [
      cut(incarnation(1, 0), 1_000, [
        gap('stream', 0, null),
        minute(0, 12),
        minute(60, 0),
        minute(120, 12),
        minute(180, 0, 300),
        minute(480, 12),
        gap('list', 540, 1_000, 'unavailable'),
      ]),
    ]);
    expect(await undeclared()).toEqual([['list', 180, 480]]);
  });

  const scraped = (record: EvidenceRecord): EvidenceRecord => ({
    ...record,
    ...({
      kubelet: {
        scraped: { from: record.t, to: record.t },
        ...{ relists: 60, hist: [60], intervals: 0, intervalSum: 0 },
        ...{ lastSeenAge: null, discarded: null, streamErrors: null, listP99: null, resident: null },
      },
    } as object),
  });
  const minutes = [0, 60].map((from) => minute(from, 12));
  const upgraded = (batch: Batch): Batch => ({
    ...batch,
    context: { ...batch.context, no: 2, kubelet: 'v1.37.0' },
  });

  it('is none after the last row of an agent that was killed: gaps of lists and scrapes last from there to its end', async () => {
    const [first, second] = [incarnation(1, 0), incarnation(2, 705)];
    const opened = [gap('stream', 0, null), ...minutes.map(scraped)];
    await commitAll(databaseUrl, [
      cut(first, 120, opened),
      upgraded(cut(first, 180, [scraped(minute(120, 12))], { first: 4, last: 4 })),
      cut(second, 20, [...cutOff(-5, 'died'), minute(0, 12, 10)]),
    ]);
    expect(await unlisted()).toEqual([
      ['list', 'died', 180, 700],
      ['kubelet', 'died', 180, 700],
    ]);
    expect(await undeclared()).toEqual([]);
  });

  it('is none after the last row of an agent that was killed within two minutes after it: only longer times are gaps', async () => {
    const [first, second] = [incarnation(1, 0), incarnation(2, 235)];
    await commitAll(databaseUrl, [
      cut(first, 120, [gap('stream', 0, null), ...minutes.map(scraped)]),
      cut(second, 20, [...cutOff(-5, 'died'), minute(0, 12, 10)]),
    ]);
    expect(await unlisted()).toEqual([]);
    expect(await undeclared()).toEqual([]);
  });

  it('is none of scrapes after an agent that was killed and did not scrape', async () => {
    const [first, second] = [incarnation(1, 0), incarnation(2, 705)];
    await commitAll(databaseUrl, [
      cut(first, 120, [gap('stream', 0, null), ...minutes]),
      cut(second, 20, [...cutOff(-5, 'died'), minute(0, 12, 10)]),
    ]);
    expect(await unlisted()).toEqual([['list', 'died', 120, 700]]);
    expect(await undeclared()).toEqual([]);
  });

  it('is a period without a relist at the end of an agent that stopped, which has written its last row', async () => {
    const stopped = (relists: number) => [
      gap('stream', 0, null),
      ...minutes,
      minute(120, relists, 580),
      gap('agent', 700, null, 'stopped'),
    ];
    await commitAll(databaseUrl, [cut(incarnation(1, 0), 700, stopped(100))]);
    expect([await unlisted(), await undeclared()]).toEqual([[], []]);
    databaseUrl = await server.database();
    await commitAll(databaseUrl, [cut(incarnation(1, 0), 700, stopped(0))]);
    expect([await unlisted(), await undeclared()]).toEqual([[], [['list', 120, 700]]]);
  });

  it('is cut to the period that is asked about', async () => {
    await commitAll(databaseUrl, [
      cut(incarnation(1, 0), 100, [gap('stream', 0, 10), session(1, 10, 40), gap('stream', 80, null)]),
    ]);
    const at = (seconds: number) => `to_timestamp(${(BEGAN / 1_000 + seconds).toFixed(3)})`;
    expect(await undeclared(`${at(50)}, ${at(60)}`)).toHaveLength(1);
    expect(await undeclared(`${at(0)}, ${at(30)}`)).toEqual([]);
    expect(await undeclared(`${at(90)}`)).toEqual([]);
  });
});
