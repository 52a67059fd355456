/*
 * The queue of due reports on a real Postgres: what is written first when more is due than the budget allows, and which Nodes exist.
 */
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ReportQueue } from '../../src/controller/reports/queue.ts';
import { report, reportQueue } from '../../src/store/schema/tables.ts';
import { nodes } from '../../src/store/schema/views.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { EvidenceFixture } from '../support/storedRecords.ts';

let server: TestServer;
let store: Store;
let evidence: EvidenceFixture;
let queue: ReportQueue;

needs('postgres')('the queue of reports', () => {
  beforeAll(async () => {
    server = await startServer();
  });
  beforeEach(async () => {
    await store?.close();
    store = await openStore({ databaseUrl: await server.database(), log: silent });
    const clusterId = await store.ensureCluster('test');
    evidence = new EvidenceFixture(store, clusterId);
    queue = new ReportQueue(store, clusterId);
  });
  afterAll(async () => {
    await store?.close();
    await server?.stop();
  });

  test('those that say something else than the agent come first, then those that are missing, then old figures', async () => {
    await figures('old-figures');
    await due('first');
    await written('says-no-mode', { mode: null }, { mode: 'Evented' });
    await written('other-mode', { mode: 'Evented' }, { mode: 'Fallback' });
    await written('other-stream', { stream: 'Active' }, { stream: 'Silent' });
    await evidence.missed(await written('new-miss'), 'cart');
    expect(await namesDue(20)).toEqual([
      ...['other-mode', 'other-stream', 'new-miss'],
      ...['first', 'says-no-mode'],
      'old-figures',
    ]);
  });

  test('some first reports and old figures are written at once, however many changes are due', async () => {
    for (let n = 0; n < 30; n++) await written(`change-${n}`, { mode: 'Evented' }, { mode: 'Fallback' });
    for (let n = 0; n < 5; n++) await due(`first-${n}`);
    for (let n = 0; n < 5; n++) await figures(`old-${n}`);
    expect(await namesDue(20)).toEqual([
      ...Array.from({ length: 16 }, (_, n) => `change-${n}`),
      ...['first-0', 'first-1', 'first-2'],
      'old-0',
    ]);
  });

  test('first reports and old figures have what changes leave of the budget', async () => {
    await written('change', { mode: 'Evented' }, { mode: 'Fallback' });
    for (let n = 0; n < 5; n++) await due(`first-${n}`);
    for (let n = 0; n < 20; n++) await figures(`old-${n}`);
    const names = await namesDue(20);
    expect(names.slice(0, 7)).toEqual([
      'change',
      'first-0',
      'first-1',
      'first-2',
      'first-3',
      'first-4',
      'old-0',
    ]);
    expect(names).toHaveLength(20);
  });

  test('a report that was written a moment ago waits', async () => {
    await written('just-written', { mode: 'Evented' }, { mode: 'Fallback' });
    expect(await queue.due(60_000, 20)).toEqual([]);
  });

  test('a Node that was created again exists before its report is written, which the API server may refuse', async () => {
    await written('back');
    await written('gone');
    await queue.markDeleted(['back', 'gone']);
    await queue.enqueueRewrites(['back'], 0);
    const rows = await store.query((db) =>
      db.select({ node: nodes.node, deletedAt: nodes.deleted_at }).from(nodes).orderBy(nodes.node),
    );
    expect(rows).toEqual([
      { node: 'back', deletedAt: null },
      { node: 'gone', deletedAt: expect.any(String) },
    ]);
  });
});

const namesDue = async (max: number) => (await queue.due(0, max)).map(({ node }) => node);

/** A node without a report, which is due. */
async function due(name: string): Promise<number> {
  const id = await evidence.node(name);
  await evidence.due(id);
  return id;
}

/** A node whose report and agent disagree; it is due. */
async function written(
  name: string,
  said: { mode?: string | null; stream?: string } = {},
  is: { mode?: string; stream?: string } = {},
): Promise<number> {
  const id = await due(name);
  const { mode = is.mode ?? 'Unknown', stream = 'Active' } = said;
  await evidence.state(id, is);
  await evidence.reported(id, 'Reporting');
  await store.query((db) =>
    db
      .update(report)
      .set({ mode, stream_state: mode === null ? null : stream })
      .where(eq(report.node_id, id)),
  );
  return id;
}

/** A node with a report of which only the figures are old. */
async function figures(name: string): Promise<void> {
  const id = await written(name);
  await store.query((db) => db.update(reportQueue).set({ urgent: false }).where(eq(reportQueue.node_id, id)));
}
