/*
 * Two machines whose agents claim the name of one node are named, and nothing that one machine does looks like it. On a real Postgres, whose past is
 * moved back minute by minute.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { conditionsOf } from '../../src/controller/reports/conditions.ts';
import { readEvidence } from '../../src/controller/reports/evidence.ts';
import type { Batch } from '../../src/protocol/batch.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { commitTo } from '../support/committed.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { events } from '../support/records.ts';

const MINUTE_MS = 60_000;
const HOUR = 60;
const NODE = 'node-a';

/** One run of an agent; `skewMs`: what the wall clock of its machine is wrong by. */
interface Agent {
  readonly bootId: string;
  readonly prev: string | null;
  readonly startedMs: number;
  readonly skewMs: number;
  readonly batches: ReturnType<typeof agentIncarnation>;
  seq: number;
}

let server: TestServer;
let databaseUrl: string;
let store: Store;
let clusterId: number;
/** How far what is stored was moved into the past. */
let passedMs: number;
let incarnations: number;

/** The time in the test: now, and what has passed. */
const nowMs = (): number => Date.now() + passedMs;

function starts(bootId: string, more: Partial<Pick<Agent, 'prev' | 'skewMs'>> = {}): Agent {
  incarnations += 1;
  const batches = agentIncarnation(NODE, incarnations);
  return { bootId, prev: null, skewMs: 0, ...more, startedMs: nowMs(), batches, seq: 0 };
}

/** The next batch of an agent, sealed at a time in the test. */
function batchOf(agent: Agent, sealedMs = nowMs()): Batch {
  agent.seq += 1;
  const { bootId, prev, startedMs, skewMs, batches } = agent;
  return {
    ...batches.batch(agent.seq, events(agent.seq, agent.seq)),
    ...{ bootId, prev, startedMono: 0 },
    mono0: Math.round((sealedMs - startedMs) * 1000),
    wall0: Math.round((sealedMs - passedMs + skewMs) * 1000),
  };
}

const stores = (...batches: readonly Batch[]) => commitTo(store, clusterId, batches);

async function passes(minutes: number): Promise<void> {
  passedMs += minutes * MINUTE_MS;
  const back = [`${minutes} minutes`];
  await query(
    databaseUrl,
    `UPDATE store.epoch SET started_at = started_at - $1::interval, first_stored_at = first_stored_at - $1::interval,
       last_batch_at = last_batch_at - $1::interval, last_seen = last_seen - $1::interval, last_new_at = last_new_at - $1::interval,
       last_stored_at = last_stored_at - $1::interval`,
    back,
  );
  await query(databaseUrl, 'UPDATE store.node SET last_seen = last_seen - $1::interval', back);
}

/** The condition `AgentReporting` of the report, and the boots that are named. */
async function said(): Promise<{
  readonly reason: string;
  readonly message: string;
  readonly boots: string[];
}> {
  const [{ node_id: id = 0 } = {}] = await query<{ node_id: number }>(
    databaseUrl,
    'SELECT node_id FROM store.node',
  );
  const [row] = (await store.run(readEvidence, [[id]])).rows;
  const found = row && conditionsOf(row, {}).find(({ type }) => type === 'AgentReporting');
  if (row === undefined || found === undefined) throw new Error('there is no evidence');
  return { ...found, boots: row.boots.map(({ boot_id }) => boot_id) };
}

/** Lets minutes pass, in each of which something is stored, and expects that one agent is reported in all of them. */
async function isOne(minutes: number, each: (minute: number) => readonly Batch[]): Promise<void> {
  for (let minute = 1; minute <= minutes; minute += 1) {
    await passes(1);
    await stores(...each(minute));
    expect([minute, await said()]).toEqual([
      minute,
      expect.objectContaining({ reason: 'Reporting', boots: [] }),
    ]);
  }
}

needs('postgres')('agents of a node', () => {
  beforeAll(async () => {
    server = await startServer();
  });
  beforeEach(async () => {
    databaseUrl = await server.database();
    store = await openStore({ databaseUrl, log: silent });
    clusterId = await store.ensureCluster(CLUSTER);
    passedMs = 0;
    incarnations = 0;
  });
  afterEach(() => store.close());
  afterAll(() => server?.stop());

  it('two that run on different boots are named within minutes, until one of them ends', async () => {
    const [one, other] = [starts('boot-1'), starts('boot-2')];
    await stores(batchOf(one), batchOf(other));
    await isOne(2, () => [batchOf(one), batchOf(other)]);
    for (let minute = 3; minute <= 4; minute += 1) {
      await passes(1);
      await stores(batchOf(one), batchOf(other));
    }
    const { reason, message, boots } = await said();
    expect([reason, boots]).toEqual(['TwoAgents', ['boot-1', 'boot-2']]);
    expect(message).toMatch(
      /^Agents of two machines report under this name, without signatures: boot boot-1 since \S+Z, boot boot-2 since \S+Z\.$/,
    );
    await passes(4);
    await stores(batchOf(other));
    expect(await said()).toMatchObject({ reason: 'Reporting', boots: [] });
  });

  it('two that run on different boots are named although both start again every minute', async () => {
    for (let minute = 0; minute <= 4; minute += 1) {
      await passes(1);
      await stores(batchOf(starts('boot-1')), batchOf(starts('boot-2')));
    }
    expect(await said()).toMatchObject({ reason: 'TwoAgents', boots: ['boot-1', 'boot-2'] });
  });

  it('one that starts again and again on the same boot is one', async () => {
    await stores(batchOf(starts('boot-1')));
    await isOne(6, () => [batchOf(starts('boot-1'))]);
  });

  it('one whose machine reboots is one, on a new disk too, and if it reboots every other minute', async () => {
    const before = starts('boot-0');
    await stores(batchOf(before));
    await isOne(6, () => [batchOf(before)]);
    let agent = starts('boot-1');
    await isOne(10, (minute) => {
      if (minute % 2 === 0) agent = starts(`boot-${minute}`);
      return [batchOf(agent)];
    });
  });

  it('one whose machine boots with a clock that is three hours behind is one', async () => {
    const before = starts('boot-1');
    await stores(batchOf(before));
    await passes(10 * HOUR);
    await isOne(6, () => [batchOf(before)]);
    const agent = starts('boot-2', { skewMs: -3 * HOUR * MINUTE_MS });
    await isOne(8, () => [batchOf(agent)]);
  });

  it.each([
    ['some of which is stored', true],
    ['none of which is stored', false],
  ])('one that sends for minutes what was recorded before a reboot, %s, is one', async (_which, isStored) => {
    const before = starts('boot-1');
    if (isStored) await stores(batchOf(before));
    const sealed: number[] = [];
    for (let minute = 0; minute < 10; minute += 1) {
      await passes(HOUR);
      sealed.push(nowMs());
    }
    const agent = starts('boot-2', { prev: before.batches.epoch });
    await stores(batchOf(agent));
    await isOne(10, (minute) => [batchOf(before, sealed[minute - 1]), batchOf(agent)]);
  });

  it('one that sends for minutes what was recorded before a reboot days ago is one', async () => {
    const before = starts('boot-1');
    const sealed: number[] = [];
    for (let batch = 0; batch < 10; batch += 1) {
      await passes(3);
      sealed.push(nowMs());
    }
    const agent = starts('boot-2', { prev: before.batches.epoch });
    await passes(48 * HOUR);
    await stores(batchOf(agent));
    await isOne(10, (minute) => [batchOf(before, sealed[minute - 1]), batchOf(agent)]);
  });

  it('one of which batches of two boots waited in the queue, and are stored for minutes, is one', async () => {
    const before = starts('boot-1');
    const sealed: number[] = [];
    for (let hour = 0; hour < 5; hour += 1) {
      await passes(HOUR);
      sealed.push(nowMs());
    }
    const agent = starts('boot-2');
    for (let hour = 0; hour < 5; hour += 1) {
      await passes(HOUR);
      sealed.push(nowMs());
    }
    await isOne(15, (minute) => [batchOf(minute <= 5 ? before : agent, sealed[minute - 1])]);
  });
});
