/*
 * Postgres behind a real PgBouncer in transaction mode, which gives every transaction any of two sessions: everything that plegwatch does
 * with a database works through it, and leaves nothing in a session.
 */
import { execFile } from 'node:child_process';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPgBouncer } from '../../devtools/localServices/pgbouncer.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { maintain } from '../../src/store/maintain.ts';
import { migrate } from '../../src/store/migrate.ts';
import { SCHEMA_VERSION } from '../../src/store/migrations.ts';
import { openStore } from '../../src/store/store.ts';
import { CLI } from '../support/build.ts';
import { query, runText, silent } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { LASTING_READER, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

needs(
  'redis-server',
  'postgres',
  'pgbouncer',
)('behind PgBouncer in transaction mode', () => {
  let system: System;
  let bouncer: Awaited<ReturnType<typeof startPgBouncer>>;
  let runtime: SimulatedRuntime;
  /** The owner's URL, past PgBouncer. */
  let direct: string;
  const databasePoolMode = 'transaction';
  const through = (user: string) => `postgres://${user}:pw@127.0.0.1:${bouncer.port}/pooled`;

  beforeAll(async () => {
    system = await System.start({ kube: false });
    await system.sql("CREATE ROLE owner LOGIN PASSWORD 'pw'");
    await system.sql("CREATE ROLE ctl LOGIN PASSWORD 'pw'");
    await system.sql('CREATE DATABASE pooled OWNER owner');
    direct = `postgres://owner:pw@127.0.0.1:${system.postgres.port}/pooled`;
    const users = { owner: 'pw', ctl: 'pw' };
    bouncer = await startPgBouncer({ postgres: system.postgres.port, users, poolSize: 2 });
    runtime = await startSimulatedRuntime({ socket: system.folder('cri.sock'), seed: 1 });
  });
  afterAll(async () => {
    await system?.stop();
    await bouncer?.stop();
    await runtime?.stop();
  });

  test('two migrations at the same time apply each migration once', async () => {
    const databaseUrl = through('owner');
    const options = {
      databaseUrl,
      databasePoolMode,
      queues: 8,
      controllerRoles: ['ctl'],
      log: silent,
    } as const;
    const both = await Promise.all([migrate(options), migrate(options)]);
    expect(both.map(({ applied }) => applied.length).sort()).toEqual([0, SCHEMA_VERSION]);
  });

  test('a controller stores what two agents record, and reports and audits it', async () => {
    const databaseUrl = through('ctl');
    const controller = await system.controller({ databaseUrl, databasePoolMode });
    const nodes = ['node-a', 'node-b'];
    for (const node of nodes) await system.agent(node, runtime.socket, LASTING_READER);
    await waitFor('both agents are subscribed', () => runtime.subscribers === 2);
    for (let pod = 0; pod < 20; pod += 1) runtime.runPod({ name: `pod-${pod}`, containers: ['app'] });
    const text =
      'SELECT node, count(*)::int4 AS events FROM plegwatch.container_events GROUP BY node ORDER BY node';
    const wanted = JSON.stringify(nodes.map((node) => ({ node, events: 80 })));
    await waitFor('all is stored', async () => JSON.stringify(await query(direct, text)) === wanted);
    for (const command of ['report', 'audit']) {
      const args = [CLI, command, '--cluster', 'test', '--database-url', databaseUrl];
      const { code, output } = await outcomeOf([...args, '--database-pool-mode', databasePoolMode]);
      expect([code, output]).toEqual([0, expect.stringContaining(command === 'report' ? 'node-b' : '')]);
    }
    // A busy machine makes a Redis slow, which PgBouncer has no part in.
    const errors = controller
      .log()
      .split('\n')
      .filter(
        (line) => /"level":"(warn|error)"/.test(line) && !line.includes('"msg":"Redis is unavailable"'),
      );
    expect(errors).toEqual([]);
  });

  test('two exports of a lake at the same time write each day once', async () => {
    const args = ['export', 'container_events', '--format', 'parquet', '--dir', system.folder('lake')];
    const at = ['--database-url', through('ctl'), '--database-pool-mode', databasePoolMode];
    const run = () => outcomeOf([CLI, ...args, ...at]);
    const results = await Promise.all([run(), run()]);
    expect(results.map(({ code }) => code)).toEqual([0, 0]);
    expect(results.map(({ output }) => / (kept|rows)/.exec(output)?.[1]).sort()).toEqual(['kept', 'rows']);
  });

  test('maintain drops an expired partition, and two at the same time run one after the other', async () => {
    const old = "SELECT store.make_partition('container_event', current_date - 30)";
    await query(direct, old);
    const run = () => maintain({ databaseUrl: through('owner'), databasePoolMode, log: silent });
    const results = await Promise.all([run(), run()]);
    const dropped = results.flatMap((result) => result.dropped);
    expect(dropped).toHaveLength(1);
  });

  test('a maintenance that a reader holds up drops what it can, ends after a bound, and names the reader', async () => {
    const tables = ['container_event', 'relist_change'];
    for (const table of tables)
      await query(direct, 'SELECT store.make_partition($1, current_date - 30)', [table]);
    const expired = await query(
      direct,
      'SELECT store.partition_name(t, current_date - 30) AS name FROM unnest($1::text[]) AS t',
      [tables],
    );
    const [held, other] = expired.map(({ name }) => String(name));
    const run = () =>
      maintain({ databaseUrl: through('owner'), databasePoolMode, log: silent, lockWaitMs: 300 });
    const reader = new Client({
      connectionString: direct.replace('owner', 'ctl'),
      application_name: 'a reader',
    });
    await reader.connect();
    try {
      await reader.query('BEGIN; SELECT count(*) FROM store.container_event');
      await expect(run()).rejects.toMatchObject({
        code: 'DATABASE_TIMEOUT',
        message: expect.stringMatching(
          `these partitions could not be dropped, as the log says: ${held}\\. Sessions that hold locks: pid \\d+ \\(role ctl, a reader\\) on `,
        ),
      });
      const left = 'SELECT relname FROM pg_class WHERE relname = ANY ($1)';
      expect(await query(direct, left, [[held, other]])).toEqual([{ relname: held }]);
      await reader.query('ROLLBACK');
      expect(await run()).toMatchObject({ dropped: [held] });
    } finally {
      await reader.end();
    }
  });

  test('no session is left with a setting, a lock or a plan', async () => {
    const databaseUrl = through('owner');
    for (const name of ['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout']) {
      expect(await query(databaseUrl, `SELECT current_setting('${name}') AS value`)).toEqual([
        { value: '0' },
      ]);
    }
    const held =
      "SELECT * FROM pg_locks WHERE relation IN ('store.maintenance'::regclass, 'store.migration'::regclass) AND mode <> 'AccessShareLock'";
    expect(await query(direct, held)).toEqual([]);
    expect(await query(through('ctl'), 'SELECT name FROM pg_prepared_statements')).toEqual([]);
  });

  test('a statement and a transaction have their timeouts from the transaction', async () => {
    const store = await openStore({ databaseUrl: through('ctl'), databasePoolMode, log: silent });
    const text = "SELECT current_setting('statement_timeout') AS value";
    expect(await runText(store, text)).toEqual([{ value: '30s' }]);
    expect(await store.transaction((runner) => runText(runner, text))).toEqual([{ value: '30s' }]);
    await store.close();
  });

  test('without the setting the error names it', async () => {
    await expect(openStore({ databaseUrl: through('ctl'), log: silent })).rejects.toMatchObject({
      code: 'DATABASE_REFUSED',
      cure: expect.stringContaining('--database-pool-mode (PLEGWATCH_DATABASE_POOL_MODE) to transaction'),
    });
  });
});

function outcomeOf(args: readonly string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [...args], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr });
    });
  });
}
