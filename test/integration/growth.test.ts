/*
 * The work for a node does not grow with the number of nodes: for twice as many nodes, Postgres looks at no more than 2.1 times as many pages. Pages
 * are counted, not time, so the result does not depend on the machine.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { countNodes, readFigures } from '../../src/controller/figures.ts';
import { ReportQueue } from '../../src/controller/reports/queue.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { createCommitter } from '../support/committed.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { events, missedFinding, nodeState, relistMinute, streamSession } from '../support/records.ts';
import { passes } from '../support/waitFor.ts';

const NODES = 100;
const BATCHES_A_NODE = 3;
const EVENTS_A_BATCH = 4;
/** As many as the writer of reports takes at a time. */
const REPORTS_A_PASS = 20;
const SILENT_MS = 240_000;
const MAX_GROWTH = 2.1;
/** The machine decides how many batches share a transaction, and with it pages: the least of these counts. */
const MEASUREMENTS = 3;

/** How many pages of plegwatch's tables and indexes were looked at. A session tells this at its end. */
const PAGES = `SELECT sum(coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0)
                        + coalesce(toast_blks_hit, 0) + coalesce(toast_blks_read, 0) + coalesce(tidx_blks_hit, 0)
                        + coalesce(tidx_blks_read, 0))::float8 AS n
                 FROM pg_statio_user_tables WHERE schemaname = 'store'`;
const SESSIONS = `SELECT count(*)::int4 AS n FROM pg_stat_activity
                   WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`;

let server: TestServer;

needs('postgres')('twice as many nodes', () => {
  beforeAll(async () => {
    server = await startServer();
    // Its workers look at pages, too.
    await query(server.part.url, 'ALTER SYSTEM SET autovacuum = off');
    await query(server.part.url, 'SELECT pg_reload_conf()');
  });
  afterAll(async () => {
    await server?.stop();
  });

  it('take at most 2.1 times as many pages to store what they send, and to keep their reports and figures', async () => {
    const least: Record<string, number> = {};
    for (let n = 0; n < MEASUREMENTS; n += 1) {
      const [some, twice] = [await pagesOf(NODES), await pagesOf(2 * NODES)];
      for (const [what, pages] of Object.entries(some)) {
        expect(pages, what).toBeGreaterThan(0);
        least[what] = Math.min(least[what] ?? Number.POSITIVE_INFINITY, (twice[what] ?? 0) / pages);
      }
      if (Object.values(least).every((growth) => growth <= MAX_GROWTH)) return;
    }
    for (const [what, growth] of Object.entries(least)) expect(growth, what).toBeLessThanOrEqual(MAX_GROWTH);
  });
});

/** How many pages each kind of work looks at, with this many nodes. */
async function pagesOf(count: number): Promise<Record<string, number>> {
  const databaseUrl = await server.database();
  const agents = Array.from({ length: count }, (_, i) => agentIncarnation(`node-${i}`));
  const seqOf = (round: number) => 1 + round * (EVENTS_A_BATCH + 4);
  const send = async (store: Store, round: number) => {
    const commit = await createCommitter(store);
    const records = () => [
      ...events(seqOf(round), seqOf(round) + EVENTS_A_BATCH - 1),
      relistMinute(),
      streamSession({ t: round }),
      nodeState({ t: round }),
      missedFinding(),
    ];
    const outcomes = await commit(agents.map((one) => one.batch(seqOf(round), records())));
    expect(new Set(outcomes)).toEqual(new Set(['committed']));
  };
  const pages = async (work: (store: Store, clusterId: number) => Promise<void>): Promise<number> => {
    const before = await told(databaseUrl);
    const store = await openStore({ databaseUrl, log: silent });
    try {
      await work(store, await store.ensureCluster(CLUSTER));
    } finally {
      await store.close();
    }
    return (await told(databaseUrl)) - before;
  };
  await pages((store) => send(store, 0));
  await query(databaseUrl, 'ANALYZE');
  return {
    'batches of known epochs': await pages(async (store) => {
      for (let round = 1; round <= BATCHES_A_NODE; round += 1) await send(store, round);
    }),
    'the reports that are due, one pass': await pages(async (store, clusterId) => {
      const queue = new ReportQueue(store, clusterId);
      const due = await queue.due(0, REPORTS_A_PASS);
      expect(due).toHaveLength(REPORTS_A_PASS);
      await queue.read(due.map(({ node_id }) => node_id));
    }),
    'reports that grow old': await pages((store, clusterId) =>
      new ReportQueue(store, clusterId).enqueueStale(SILENT_MS),
    ),
    'counts of nodes': await pages(async (store, clusterId) => {
      await store.run(countNodes, [clusterId, SILENT_MS]);
    }),
    'figures for metrics': await pages(async (store, clusterId) => {
      await store.run(readFigures, [clusterId]);
    }),
  };
}

/** Once every session has ended but the one that asks. */
async function told(databaseUrl: string): Promise<number> {
  await passes(async () => expect(await query(databaseUrl, SESSIONS)).toEqual([{ n: 0 }]));
  return (await query<{ n: number }>(databaseUrl, PAGES))[0]?.n ?? 0;
}
