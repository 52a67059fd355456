/*
 * The gauges of the fleet: how many Nodes have each mode, stream state and condition, counted in a real Postgres.
 */
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalPostgres, startPostgres } from '../../devtools/localServices/postgres.ts';
import { ControllerMetrics } from '../../src/controller/metrics.ts';
import { SILENT_AFTER_MS } from '../../src/controller/reports/conditions.ts';
import { type NodeCount, startNodeCounts } from '../../src/controller/reports/nodeCounts.ts';
import { migrate } from '../../src/store/migrate.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { needs } from '../support/needs.ts';
import { EvidenceFixture } from '../support/storedRecords.ts';
import { waitFor } from '../support/waitFor.ts';

const log = pino({ level: 'silent' });
const CLUSTER = 'test';

let postgres: LocalPostgres;
let store: Store;
let evidence: EvidenceFixture;

needs('postgres')('the counts of nodes', () => {
  beforeAll(async () => {
    postgres = await startPostgres({ settings: { fsync: 'off' } });
    await migrate({ databaseUrl: postgres.url, queues: 1, log });
    store = await openStore({ databaseUrl: postgres.url, log });
    evidence = new EvidenceFixture(store, await store.ensureCluster(CLUSTER));
  });
  afterAll(async () => {
    await store?.close();
    await postgres?.stop();
  });

  test('count what the reports say: a silent agent has no mode, and a deleted Node does not count', async () => {
    await addNode('evented', { mode: 'Evented' });
    await addNode('fell-back', { mode: 'Fallback', stream: 'Interrupted' });
    await addNode('of-a-later-version', { mode: 'Telepathic' });
    const silent = await addNode('silent', { mode: 'Evented' }, 'AgentSilent');
    await evidence.silentFor(silent, 600);
    const deleted = await addNode('deleted', { mode: 'Evented' });
    await evidence.deleted(deleted);
    const metrics = new ControllerMetrics();
    metrics.setNodeCounts(await countOnce());
    const text = await metrics.registry.metrics();
    const value = (series: string) =>
      Number(
        text
          .split('\n')
          .find((line) => line.startsWith(`${series} `))
          ?.split(' ')[1],
      );
    expect(value('plegwatch_nodes_by_mode{mode="Evented"}')).toBe(1);
    expect(value('plegwatch_nodes_by_mode{mode="Fallback"}')).toBe(1);
    expect(value('plegwatch_nodes_by_mode{mode="Generic"}')).toBe(0);
    // The silent agent's, and the one that this version does not know.
    expect(value('plegwatch_nodes_by_mode{mode="Unknown"}')).toBe(2);
    expect(value('plegwatch_nodes_by_stream{state="Active"}')).toBe(2);
    expect(value('plegwatch_nodes_by_stream{state="Interrupted"}')).toBe(1);
    expect(value('plegwatch_nodes_by_stream{state="Unknown"}')).toBe(1);
    expect(value('plegwatch_nodes_by_agent{reason="Reporting"}')).toBe(3);
    expect(value('plegwatch_nodes_by_agent{reason="AgentSilent"}')).toBe(1);
    expect(value('plegwatch_nodes_by_agent{reason="NeverSeen"}')).toBe(0);
    expect(value('plegwatch_nodes_by_condition{condition="AgentReporting",status="False"}')).toBe(1);
    expect(text).not.toContain('Telepathic');
  });

  test('vanish while the nodes cannot be counted, because old counts would look like present ones', async () => {
    const metrics = new ControllerMetrics();
    metrics.setNodeCounts(await countOnce());
    expect(await metrics.registry.metrics()).toContain('plegwatch_nodes_by_mode{');
    const broken = {
      ensureCluster: store.ensureCluster,
      run: () => Promise.reject(new Error('no database')),
    };
    metrics.setNodeCounts(await countOnce(broken));
    expect(await metrics.registry.metrics()).not.toContain('plegwatch_nodes_by_mode{');
  });
});

async function countOnce(
  from: Pick<Store, 'run' | 'ensureCluster'> = store,
): Promise<readonly NodeCount[] | null> {
  let counted: readonly NodeCount[] | null | undefined;
  const counting = startNodeCounts({
    store: from,
    cluster: CLUSTER,
    silentAfterMs: SILENT_AFTER_MS,
    log,
    onCounted: (counts) => {
      counted = counts;
    },
  });
  try {
    await waitFor('the nodes are counted', () => counted !== undefined);
    return counted ?? null;
  } finally {
    await counting.stop();
  }
}

/** Adds a node with a written report. */
async function addNode(name: string, state: object, agentReason = 'Reporting'): Promise<number> {
  const id = await evidence.node(name);
  await evidence.state(id, state);
  await evidence.reported(id, agentReason);
  return id;
}
