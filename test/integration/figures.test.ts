/*
 * The figures that only the database knows, on a real Postgres, and the metrics made of them.
 */
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  countUnhealthy,
  type FiguresOptions,
  pauseAfter,
  readFigures,
  startFigures,
} from '../../src/controller/figures.ts';
import { ControllerMetrics } from '../../src/controller/metrics.ts';
import insertNodeCondition from '../../src/controller/nodes/sql/insertNodeCondition.sql';
import readLastNodeConditions from '../../src/controller/nodes/sql/readLastNodeConditions.sql';
import { SILENT_AFTER_MS } from '../../src/controller/reports/conditions.ts';
import { upsertConditions } from '../../src/controller/reports/statements.ts';
import { maintain } from '../../src/store/maintain.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { query, runText, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { EvidenceFixture } from '../support/storedRecords.ts';

const CLUSTER = 'test';
const ILL = 'PLEG is not healthy: pleg was last seen active 3m10s ago; threshold is 3m0s';

let server: TestServer;
let databaseUrl: string;
let store: Store;
let evidence: EvidenceFixture;

needs('postgres')('the figures of the database', () => {
  beforeAll(async () => {
    server = await startServer();
  });
  beforeEach(async () => {
    await store?.close();
    databaseUrl = await server.database();
    store = await openStore({ databaseUrl, log: silent });
    evidence = new EvidenceFixture(store, await store.ensureCluster(CLUSTER));
  });
  afterAll(async () => {
    await store?.close();
    await server?.stop();
  });

  const sql = (text: string, ...values: unknown[]) => query(databaseUrl, text, values);

  test('a fresh database has nothing late, incomplete or unhealthy, and counts as maintained', async () => {
    const value = await read();
    expect(value('oldest_due_report_age_seconds')).toBe(0);
    for (const reason of ['RecordsLost', 'CoverageLow', 'Unproven'])
      expect(value(`incomplete_nodes{reason="${reason}"}`)).toBe(0);
    for (const verdict of ['container', 'pod', 'runtime', 'kubelet', 'node', 'unknown'])
      expect(value(`pleg_unhealthy_nodes{verdict="${verdict}"}`)).toBe(0);
    const [row] = await sql('SELECT extract(epoch FROM now())::float8 AS now');
    expect(value('maintenance_last_success_timestamp_seconds')).toBeGreaterThan(Number(row?.['now']) - 600);
  });

  test('the age of the oldest due report is that of the one due the longest; one that is not due yet does not count', async () => {
    for (const [name, due] of [
      ['late', '-5 minutes'],
      ['later', '-1 minute'],
      ['tomorrow', '1 day'],
    ] as const) {
      await evidence.due(await evidence.node(name));
      await sql(
        'UPDATE store.report_queue q SET due_at = now() + $2::interval FROM store.node n WHERE n.node_id = q.node_id AND n.name = $1',
        name,
        due,
      );
    }
    const age = (await read())('oldest_due_report_age_seconds') ?? 0;
    expect(age).toBeGreaterThanOrEqual(300);
    expect(age).toBeLessThan(86_400);
  });

  test('incomplete evidence is counted by reason: an idle node is unproven, and a deleted Node does not count', async () => {
    await incomplete('lost', 'RecordsLost');
    await incomplete('broken', 'CoverageLow', ['broken', '1 hour']);
    await incomplete('idle', 'CoverageLow', ['unproven', '20 hours']);
    await incomplete('restarted', 'CoverageLow', ['stopped', '30 seconds']);
    await incomplete('silent', 'AgentSilent');
    await evidence.deleted(await incomplete('deleted', 'RecordsLost'));
    const value = await read();
    expect(value('incomplete_nodes{reason="RecordsLost"}')).toBe(1);
    expect(value('incomplete_nodes{reason="CoverageLow"}')).toBe(1);
    expect(value('incomplete_nodes{reason="Unproven"}')).toBe(2);
  });

  test('a gap counts from the next build of the report on, although the reason of its condition stays the same', async () => {
    const id = await incomplete('node', 'CoverageLow');
    expect((await read())('incomplete_nodes{reason="Unproven"}')).toBe(1);
    await gap(id, 'broken', '1 hour');
    await built(id, 'CoverageLow');
    const value = await read();
    expect(value('incomplete_nodes{reason="Unproven"}')).toBe(0);
    expect(value('incomplete_nodes{reason="CoverageLow"}')).toBe(1);
  });

  test('a read of the figures looks at no history: neither at gaps nor at conditions of Nodes', async () => {
    const [plan] = await sql(`EXPLAIN (FORMAT JSON) ${readFigures.text.replaceAll('$1', '1')}`);
    const relations = [...JSON.stringify(plan).matchAll(/"Relation Name":"(\w+)"/g)].map(([, name]) => name);
    expect(new Set(relations)).toEqual(
      new Set(['maintenance', 'report_queue', 'node', 'report', 'report_condition']),
    );
  });

  test('a Node whose PLEG is not healthy is counted by its verdict until it recovers or is deleted', async () => {
    const ids = await Promise.all(
      ['ill', 'recovered', 'deleted'].map(async (name) => {
        const id = await evidence.node(name);
        await evidence.reported(id, 'Reporting');
        await condition(id, 'False', ILL, '10 minutes');
        return id;
      }),
    );
    await condition(ids[1] ?? 0, 'True', 'kubelet is posting ready status', '5 minutes');
    await evidence.deleted(ids[2] ?? 0);
    const value = await read();
    expect(value('pleg_unhealthy_nodes{verdict="unknown"}')).toBe(1);
    expect(value('pleg_unhealthy_nodes{verdict="runtime"}')).toBe(0);
  });

  test('verdicts that take too long are unknown, and the other figures are there', async () => {
    const id = await evidence.node('ill');
    await evidence.reported(id, 'Reporting');
    await condition(id, 'False', ILL, '10 minutes');
    const value = await read(new ControllerMetrics(), {
      ...store,
      run: (statement, values) =>
        store.transaction(async (runner) => {
          if (statement.text === countUnhealthy.text)
            await runText(runner, 'SET LOCAL statement_timeout = 1; SELECT pg_sleep(10)');
          return runner.run(statement, values);
        }),
    });
    expect(value('pleg_unhealthy_nodes{verdict="unknown"}')).toBe(1);
    expect(value('oldest_due_report_age_seconds')).toBe(0);
    expect(value('nodes_by_mode{mode="Unknown"}')).not.toBeUndefined();
  });

  test('the latest condition of a Node counts, in whatever order the store received them', async () => {
    const id = await evidence.node('ill');
    await evidence.reported(id, 'Reporting');
    await condition(id, 'False', ILL, '1 minute');
    await condition(id, 'True', 'kubelet is posting ready status', '5 minutes');
    expect((await read())('pleg_unhealthy_nodes{verdict="unknown"}')).toBe(1);
  });

  test('the latest conditions, and the verdicts of nodes that are unhealthy, are read without the history before them', async () => {
    const ids = await Promise.all([1, 2, 3].map((n) => evidence.node(`ill-${n}`)));
    for (const id of ids) await evidence.reported(id, 'Reporting');
    await sql(
      `SELECT store.make_partition('node_condition', d::date) FROM generate_series(current_date - 40, current_date, interval '10 days') AS d`,
    );
    await sql(
      `INSERT INTO store.node_condition (at, day, node_id, cluster_id, status, reason, message)
       SELECT t.at, (t.at AT TIME ZONE 'UTC')::date, n.node_id, n.cluster_id, 'False', 'KubeletNotReady', $1
       FROM store.node n, generate_series(1, 2000) AS i, LATERAL (SELECT now() - i * interval '25 minutes' AS at) AS t`,
      ILL,
    );
    await sql(
      `UPDATE store.node n SET is_pleg_unhealthy = true,
              pleg_condition_at = (SELECT max(at) FROM store.node_condition k WHERE k.node_id = n.node_id)`,
    );
    await sql('ANALYZE store.node_condition');
    const [cluster] = await sql('SELECT cluster_id FROM store.cluster');
    const statements = [
      countUnhealthy.text.replaceAll('$1', `'{${ids.join(',')}}'`),
      readLastNodeConditions.replaceAll('$1', String(cluster?.['cluster_id'])),
    ];
    for (const statement of statements) {
      const [plan] = await sql(`EXPLAIN (ANALYZE, FORMAT JSON) ${statement}`);
      expect(conditionsRead(plan)).toBeLessThanOrEqual(10 * ids.length);
    }
    expect((await read())('pleg_unhealthy_nodes{verdict="unknown"}')).toBe(3);
  });

  test('nodes are counted by what their reports say: a silent agent has no mode, and a deleted Node does not count', async () => {
    await addNode('evented', { mode: 'Evented' });
    await addNode('fell-back', { mode: 'Fallback', stream: 'Interrupted' });
    await addNode('of-a-later-version', { mode: 'Telepathic' });
    const silent = await addNode('silent', { mode: 'Evented' }, 'AgentSilent');
    await evidence.silentFor(silent, 600);
    const deleted = await addNode('deleted', { mode: 'Evented' });
    await evidence.deleted(deleted);
    const metrics = new ControllerMetrics();
    const value = await read(metrics);
    expect(value('nodes_by_mode{mode="Evented"}')).toBe(1);
    expect(value('nodes_by_mode{mode="Fallback"}')).toBe(1);
    expect(value('nodes_by_mode{mode="Generic"}')).toBe(0);
    // The silent agent's, and the one that this version does not know.
    expect(value('nodes_by_mode{mode="Unknown"}')).toBe(2);
    expect(value('nodes_by_stream{state="Active"}')).toBe(2);
    expect(value('nodes_by_stream{state="Interrupted"}')).toBe(1);
    expect(value('nodes_by_stream{state="Unknown"}')).toBe(1);
    expect(value('nodes_by_agent{reason="Reporting"}')).toBe(3);
    expect(value('nodes_by_agent{reason="AgentSilent"}')).toBe(1);
    expect(value('nodes_by_agent{reason="NeverSeen"}')).toBe(0);
    expect(value('nodes_by_condition{condition="AgentReporting",status="False"}')).toBe(1);
    expect(await metrics.registry.metrics()).not.toContain('Telepathic');
  });

  test('only a maintenance that dropped every expired partition counts as a success', async () => {
    await sql("UPDATE store.maintenance SET succeeded_at = '2020-01-01Z'");
    await sql("SELECT store.make_partition('container_event', current_date - 20)");
    const owner = new Client({ connectionString: databaseUrl });
    await owner.connect();
    // A view on the partition alone keeps it from being dropped, but not from being detached.
    await owner.query(
      "DO $$ BEGIN EXECUTE 'CREATE VIEW kept AS SELECT * FROM store.' || store.partition_name('container_event', current_date - 20); END $$",
    );
    await expect(maintain({ databaseUrl, log: silent })).rejects.toMatchObject({ code: 'DATABASE_TIMEOUT' });
    const before = Date.parse('2020-01-01Z') / 1000;
    expect((await read())('maintenance_last_success_timestamp_seconds')).toBe(before);
    await owner.query('DROP VIEW kept');
    await owner.end();
    expect(await maintain({ databaseUrl, log: silent })).toMatchObject({
      kept: [],
      dropped: [expect.any(String)],
    });
    expect((await read())('maintenance_last_success_timestamp_seconds')).toBeGreaterThan(before);
  });

  test('reading the figures takes at most a twentieth of the time, however long one read takes', () => {
    expect(pauseAfter(20)).toBe(15_000);
    expect(pauseAfter(4_000)).toBe(76_000);
  });

  test('the figures vanish while the database does not answer, because old ones would look like present ones', async () => {
    const metrics = new ControllerMetrics();
    await read(metrics);
    expect(await metrics.registry.metrics()).toContain('plegwatch_nodes_by_mode{');
    const fail = () => Promise.reject(new Error('no database'));
    const value = await read(metrics, { ensureCluster: store.ensureCluster, run: fail, query: fail });
    expect(value('maintenance_last_success_timestamp_seconds')).toBeUndefined();
    expect(value('pleg_unhealthy_nodes{verdict="runtime"}')).toBeUndefined();
    expect(await metrics.registry.metrics()).not.toContain('plegwatch_nodes_by_mode{');
  });

  /** How many rows of conditions a plan has read. */
  function conditionsRead(plan: unknown): number {
    if (typeof plan !== 'object' || plan === null) return 0;
    const of = (key: string): unknown => Reflect.get(plan, key);
    const isScan = String(of('Relation Name')).startsWith('node_condition');
    const rows = Number(of('Actual Rows')) + Number(of('Rows Removed by Filter') ?? 0);
    const own = isScan ? rows * Number(of('Actual Loops')) : 0;
    return own + Object.values(plan).reduce((sum: number, each) => sum + conditionsRead(each), 0);
  }

  /** Adds a node with a written report. */
  async function addNode(name: string, state: object, agentReason = 'Reporting'): Promise<number> {
    const id = await evidence.node(name);
    await evidence.state(id, state);
    await evidence.reported(id, agentReason);
    return id;
  }

  async function incomplete(
    name: string,
    reason: string,
    lost?: [cause: string, lasted: string],
  ): Promise<number> {
    const id = await evidence.node(name, 48 * 3600);
    await evidence.reported(id, 'Reporting');
    if (lost !== undefined) await gap(id, ...lost);
    await built(id, reason);
    return id;
  }

  /** Stores the condition of a report that was built now, as the report writer does. */
  const built = (id: number, reason: string) =>
    sql(
      upsertConditions.text,
      [id],
      ['EvidenceComplete'],
      ['False'],
      [reason],
      [''],
      [new Date().toISOString()],
    );

  /** A gap that ended now. */
  const gap = (id: number, cause: string, lasted: string) =>
    sql(
      `INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at)
       SELECT $2, e.node_id, e.cluster_id, e.epoch, 'stream', $3, now() - $4::interval, now() FROM store.epoch e WHERE e.node_id = $1`,
      id,
      randomUUID(),
      cause,
      lasted,
    );

  /** Stores a condition of a Node, as the recorder does. */
  async function condition(id: number, status: string, message: string, ago: string): Promise<void> {
    const [row] = await sql(
      `SELECT cluster_id, name, (extract(epoch FROM now() - $2::interval) * 1000000)::int8 AS at FROM store.node WHERE node_id = $1`,
      id,
      ago,
    );
    const of = [row?.['cluster_id'], row?.['name'], row?.['at']];
    await sql(
      insertNodeCondition,
      ...of,
      status,
      'KubeletNotReady',
      message,
      190_000,
      180_000,
      status === 'False',
    );
  }
});

/** Reads the figures once. Returns the value of a metric by its name without prefix; undefined if it is absent. */
async function read(
  metrics = new ControllerMetrics(),
  from: FiguresOptions['store'] = store,
): Promise<(series: string) => number | undefined> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const figures = startFigures({
    store: from,
    cluster: CLUSTER,
    silentAfterMs: SILENT_AFTER_MS,
    log: silent,
    onRead: (found) => {
      metrics.setFigures(found, true);
      resolve();
    },
  });
  await promise;
  await figures.stop();
  const lines = (await metrics.registry.metrics()).split('\n');
  return (series) => {
    const line = lines.find((each) => each.startsWith(`plegwatch_${series} `));
    return line === undefined ? undefined : Number(line.split(' ').at(-1));
  };
}
