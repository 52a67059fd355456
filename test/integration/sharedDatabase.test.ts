/*
 * Several clusters on one database, as a hub release and the releases of the clusters use it: one owner migrates, each controller is a
 * role of its own, and programs of several schema versions work at the same time.
 */
import { execFile } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { migrate } from '../../src/store/migrate.ts';
import { defaultMigrationsDir, SCHEMA_VERSION } from '../../src/store/migrations.ts';
import { openStore } from '../../src/store/store.ts';
import { CLI } from '../support/build.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { LASTING_READER, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

/** The migrations of a later version of plegwatch: ours, and more. */
function laterMigrations(more: Readonly<Record<string, string>>): string {
  const dir = mkdtempSync(join(tmpdir(), `plegwatch-migrations-${process.pid}-`));
  folders.push(dir);
  cpSync(defaultMigrationsDir(), dir, { recursive: true });
  for (const [name, sql] of Object.entries(more)) writeFileSync(join(dir, name), sql);
  return dir;
}

const nextNumber = `${SCHEMA_VERSION + 1}`.padStart(4, '0');
/** Adds a column and a table, which a controller of the next version would use; those of this version can stay. */
const EXPAND = {
  [`${nextNumber}_expand.sql`]: `-- compatible since: ${SCHEMA_VERSION}
    ALTER TABLE store.node ADD COLUMN pool text;
    CREATE TABLE store.pool (pool_id int4 PRIMARY KEY);`,
};
/** Removes a column that this version uses. */
const CONTRACT = {
  ...EXPAND,
  [`${`${SCHEMA_VERSION + 2}`.padStart(4, '0')}_contract.sql`]:
    'ALTER TABLE store.node DROP COLUMN node_uid CASCADE;',
};
const AHEAD = /The database has schema version \d, which programs of version \d or later can use/;

needs('postgres')('a database that several releases migrate', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server?.stop());

  test('an older migrate leaves a database that is ahead and compatible as it is', async () => {
    const databaseUrl = await server.database();
    const migrationsDir = laterMigrations(EXPAND);
    expect(await migrate({ databaseUrl, migrationsDir, log: silent })).toEqual({
      applied: [`${nextNumber}_expand`],
    });
    expect(await migrate({ databaseUrl, log: silent })).toEqual({ applied: [] });
    expect(await migrate({ databaseUrl, migrationsDir, log: silent })).toEqual({ applied: [] });
  });

  test('an older program refuses a database that is ahead and not compatible, and says what to upgrade', async () => {
    const databaseUrl = await server.database();
    await migrate({ databaseUrl, migrationsDir: laterMigrations(CONTRACT), log: silent });
    const refusal = {
      code: 'MIGRATION_MISMATCH',
      message: expect.stringMatching(AHEAD),
      cure: expect.stringContaining('Upgrade this release'),
    };
    await expect(openStore({ databaseUrl, log: silent })).rejects.toMatchObject(refusal);
    await expect(migrate({ databaseUrl, log: silent })).rejects.toMatchObject(refusal);
  });

  test('a program refuses the database of the version before it', async () => {
    const databaseUrl = await server.emptyDatabase();
    const migrationsDir = laterMigrations({});
    const [before = '', last = ''] = readdirSync(defaultMigrationsDir()).sort().slice(-2);
    rmSync(join(migrationsDir, last));
    appendFileSync(join(migrationsDir, before), readFileSync(join(defaultMigrationsDir(), last)));
    const { applied } = await migrate({ databaseUrl, migrationsDir, log: silent });
    expect(applied).toHaveLength(SCHEMA_VERSION - 1);
    await expect(openStore({ databaseUrl, log: silent })).rejects.toMatchObject({
      code: 'DATABASE_NOT_MIGRATED',
    });
  });

  test('a migration that changes a table names the reader that holds it up, and changes nothing', async () => {
    const databaseUrl = await server.database();
    const reader = new Client({ connectionString: databaseUrl, application_name: 'a reader' });
    await reader.connect();
    await reader.query('BEGIN; SELECT count(*) FROM store.node');
    const later = { databaseUrl, migrationsDir: laterMigrations(EXPAND), log: silent };
    await expect(migrate({ ...later, lockWaitMs: 100 })).rejects.toMatchObject({
      code: 'DATABASE_TIMEOUT',
      message: expect.stringMatching(/pid \d+ \(role t\d+, a reader\) on node\b/),
    });
    await reader.end();
    expect(await migrate(later)).toEqual({ applied: [`${nextNumber}_expand`] });
  });

  test('a setting of the database stays as it is unless migrate is given it', async () => {
    const databaseUrl = await server.emptyDatabase();
    const settings = async () => {
      const store = await openStore({ databaseUrl, log: silent });
      const { queues, maxQueues, eventRetentionDays, findingRetentionDays } = await store.readSettings();
      await store.close();
      return [queues, maxQueues, eventRetentionDays, findingRetentionDays];
    };
    await migrate({ databaseUrl, log: silent });
    expect(await settings()).toEqual([16, 16, 14, 400]);
    await migrate({ databaseUrl, queues: 4, eventRetentionDays: 3, findingRetentionDays: 30, log: silent });
    expect(await settings()).toEqual([4, 16, 3, 30]);
    await migrate({ databaseUrl, log: silent });
    expect(await settings()).toEqual([4, 16, 3, 30]);
  });

  test('migrate grants the roles that it is given, and after a migration what that one needs', async () => {
    const databaseUrl = await server.emptyDatabase();
    const controller = await server.role(databaseUrl, 'controller');
    const reader = await server.role(databaseUrl, 'reader');
    const nameOf = (url: string) => new URL(url).username;
    await migrate({ databaseUrl, controllerRoles: [nameOf(controller)], log: silent });
    await query(databaseUrl, 'SELECT store.grant_reader($1)', [nameOf(reader)]);
    const store = await openStore({ databaseUrl: controller, log: silent });
    expect(await store.ensureCluster('one')).toBeGreaterThan(0);
    await store.close();
    await migrate({ databaseUrl, migrationsDir: laterMigrations(EXPAND), log: silent });
    for (const url of [controller, reader]) expect(await query(url, 'SELECT * FROM store.pool')).toEqual([]);
    await expect(query(reader, "INSERT INTO store.cluster (name) VALUES ('x')")).rejects.toThrow('denied');
  });
});

needs('redis-server', 'postgres')('two clusters whose controllers are roles of their own', () => {
  let system: System;
  const clusters = ['one', 'two'] as const;
  const controllers: LocalPlegwatch[] = [];
  const runtimes: SimulatedRuntime[] = [];
  const urlOf = (role: string) => system.postgres.url.replace(/\/\/.*@/, `//${role}:pw@`);

  beforeAll(async () => {
    system = await System.start({ kube: false, clusters });
    for (const role of clusters) await system.sql(`CREATE ROLE ${role} LOGIN PASSWORD 'pw'`);
    await migrate({
      databaseUrl: system.postgres.url,
      controllerRoles: clusters.map((cluster) => `${cluster}=${cluster}`),
      log: silent,
    });
    for (const cluster of clusters) {
      const settings = { cluster, databaseUrl: urlOf(cluster), intervalFlow: '1s' };
      controllers.push(await system.controller(settings));
      const runtime = await startSimulatedRuntime({ socket: system.folder(`${cluster}.sock`), seed: 1 });
      runtimes.push(runtime);
      // The same name in both: only the cluster keeps them apart.
      const spoolDir = system.folder(`spool-${cluster}`);
      await system.agent('node', runtime.socket, { cluster, spoolDir, ...LASTING_READER });
      await waitFor('the agent is subscribed', () => runtime.subscribers > 0);
    }
  });
  afterAll(async () => {
    await system?.stop();
    for (const runtime of runtimes) await runtime.stop();
  });

  const counts = () =>
    system.sql<{ cluster: string; events: number }>(
      'SELECT cluster, count(*)::int4 AS events FROM plegwatch.container_events GROUP BY cluster ORDER BY cluster',
    );
  /** Runs a pod in each cluster, and waits until its four events are stored. */
  async function bothRecord(podsSoFar: number): Promise<void> {
    for (const runtime of runtimes) runtime.runPod({ name: `pod-${podsSoFar}`, containers: ['app'] });
    const wanted = clusters.map((cluster) => ({ cluster, events: podsSoFar * 4 }));
    await waitFor(
      'both have stored it',
      async () => JSON.stringify(await counts()) === JSON.stringify(wanted),
    );
  }

  test('each stores its own history, and goes on while the hub migrates to a compatible version', async () => {
    await bothRecord(1);
    const later = { databaseUrl: system.postgres.url, migrationsDir: laterMigrations(EXPAND), log: silent };
    expect((await migrate(later)).applied).toHaveLength(1);
    await bothRecord(2);
    await controllers[0]?.restart();
    await bothRecord(3);
  });

  test('the history of a cluster can be reported and audited by its own role on the later schema', async () => {
    for (const command of ['report', 'audit']) {
      const args = [CLI, command, '--cluster', 'one', '--database-url', urlOf('one')];
      const { code, text } = await outcomeOf(args);
      expect([code, text]).toEqual([0, expect.stringContaining(command === 'report' ? 'node' : '')]);
    }
  });

  test('a controller ends with what to do when the hub migrates to a version that it cannot use', async () => {
    const later = { databaseUrl: system.postgres.url, migrationsDir: laterMigrations(CONTRACT), log: silent };
    await migrate(later);
    for (const controller of controllers) {
      await waitFor('it has ended', () => !controller.running());
      expect(controller.log()).toMatch(AHEAD);
      expect(controller.log()).toContain('[MIGRATION_MISMATCH]');
    }
  });
});

function outcomeOf(args: readonly string[]): Promise<{ code: number; text: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [...args], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), text: stdout + stderr });
    });
  });
}
