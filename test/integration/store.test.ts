/*
 * The store on a real Postgres: migrations, views, partitions, roles, and the errors that an operator sees.
 */
import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { freePort } from '../../devtools/localServices/process.ts';
import {
  type EvidenceRecord,
  KUBELET_LAG_BOUNDS_MS,
  KUBELET_RELIST_BOUNDS_MS,
  RELIST_BOUNDS_MS,
} from '../../src/protocol/record.ts';
import { millis } from '../../src/protocol/units.ts';
import { databaseErrorKind } from '../../src/store/databaseError.ts';
import { migrate } from '../../src/store/migrate.ts';
import { defaultMigrationsDir, readMigrations, SCHEMA_VERSION } from '../../src/store/migrations.ts';
import { openStore } from '../../src/store/store.ts';
import { agentIncarnation } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, runText, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { freeze, thaw } from '../support/sigstop.ts';
import { passes, until, waitFor } from '../support/waitFor.ts';

const POD = ['pod_uid', 'pod_namespace', 'pod_name'];
const VERSION = ['runtime_name', 'runtime_version', 'kubelet_version'];

/** The columns that people rely on, view by view: the public contract. */
const VIEWS: Record<string, string[]> = {
  nodes: [
    ...['first_seen', 'last_seen', ...VERSION, 'agent_version'],
    ...['stream_state', 'mode', 'mode_since'],
  ],
  epochs: [
    ...['epoch', 'prev', 'incarnation', 'node_uid', 'boot_id', 'started_at', 'ended_at', 'end_cause'],
    ...['agent_version', 'acked_seq', 'complete_through'],
  ],
  container_events: [
    ...[
      'epoch',
      'seq',
      'received_at',
      'created_at',
      'event_type',
      'container_id',
      'is_sandbox',
      'sandbox_id',
    ],
    ...[
      ...POD,
      'container_name',
      'attempt',
      'replayed',
      'has_sandbox_status',
      'exit_code',
      'exit_reason',
      ...VERSION,
    ],
  ],
  short_lives: [
    ...[
      'finding_id',
      'detected_at',
      'cause',
      'container_id',
      ...POD,
      'container_name',
      'life_min_ms',
      'life_max_ms',
    ],
    ...['list_before', 'list_after', 'mode', 'relist_period_ms', 'chance_min', 'chance_max'],
  ],
  relist_changes: [
    ...['epoch', 'seq', 'window_from', 'window_to', 'container_id', 'is_sandbox', ...POD, 'container_name'],
    ...['old_state', 'new_state', 'pleg_events'],
  ],
  findings: [
    ...['finding_id', 'kind', 'event_type', 'cause', 'container_id', ...POD, 'container_name'],
    ...[
      'window_from',
      'window_to',
      'occurred_at',
      'detected_at',
      'resolved_at',
      'lateness_ms',
      'delivery_ms',
    ],
    ...['lag_min_ms', 'lag_max_ms', 'lag_anomalous', 'mode', ...VERSION, 'proof'],
  ],
  stream_sessions: [
    ...['opened_at', 'armed_at', 'closed_at', 'code', 'message', 'events', 'replayed', ...VERSION],
  ],
  mode_changes: ['not_before', 'at', 'model', 'from_mode', 'to_mode', 'reason', 'proof'],
  gaps: ['scope', 'cause', 'from_at', 'to_at', 'epoch', 'from_seq', 'to_seq', 'records', 'filled_at'],
  relist_minutes: [
    ...[
      'minute',
      'relists',
      'errors',
      'p50_ms',
      'p90_ms',
      'p99_ms',
      'max_ms',
      'hist',
      'sandboxes',
      'containers',
      'exited_sandboxes',
      'exited_containers',
      'sandbox_list_bytes',
      'container_list_bytes',
    ],
    ...['cpu_some', 'io_some', 'io_full', 'memory_some', 'memory_full', 'from_at', 'to_at'],
  ],
  kubelet_minutes: [
    ...['minute', 'relists', 'relist_p99_ms', 'hist', 'last_seen_age_ms', 'discarded', 'stream_errors'],
    ...['list_p99_ms', 'counted_from', 'counted_to'],
  ],
  node_conditions: ['at', 'status', 'reason', 'message', 'pleg_seen_ago_ms', 'threshold_ms'],
  pleg_verdicts: [
    ...['kind', 'from_at', 'to_at', 'verdict', 'why', 'kubelet_lists', 'our_lists'],
    ...['kubelet_list_calls', 'kubelet_list_errors', 'kubelet_list_ms', 'kubelet_longest_list_ms'],
    ...['kubelet_relist_ms', 'kubelet_status_ms', 'our_relists', 'our_errors', 'our_longest_relist_ms'],
    ...['our_period_ms', 'our_waiting_ms', 'at', 'message', 'pleg_seen_ago_ms', 'threshold_ms'],
    ...['day', 'list_call', ...POD, 'container_name', 'container_id'],
    ...['statuses_asked', 'statuses_quick', 'statuses_unanswered'],
  ],
  status_checks: [
    ...['minute', 'asked', 'slow', 'at', ...POD, 'container_name', 'container_id', 'is_sandbox'],
    ...['status_ms', 'timed_out', 'longest_relist_ms', ...VERSION, 'epoch', 'seq', 'day'],
    ...['list_call', 'verdict'],
  ],
  list_hangs: [
    ...[
      'list_call',
      'from_at',
      'to_at',
      'waited_ms',
      'verdict',
      'why',
      ...POD,
      'container_name',
      'container_id',
    ],
    ...['listed', 'asked', 'quick', 'unanswered', ...VERSION, 'epoch', 'seq', 'day'],
  ],
  rejected: ['at', 'queue', 'reason', 'claimed_node', 'bytes', 'times'],
};

needs('postgres')('the store', () => {
  let server: TestServer;
  const folders: string[] = [];

  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(async () => {
    await server.stop();
    for (const folder of folders) rmSync(folder, { recursive: true });
  });

  /** A copy of the migrations that a test may spoil. */
  function copyOfMigrations(): string {
    const dir = mkdtempSync(join(tmpdir(), `plegwatch-migrations-${process.pid}-`));
    folders.push(dir);
    cpSync(defaultMigrationsDir(), dir, { recursive: true });
    return dir;
  }

  it('two concurrent migrations apply each migration once', async () => {
    const databaseUrl = await server.emptyDatabase();
    const both = await Promise.all([1, 2].map(() => migrate({ databaseUrl, queues: 4, log: silent })));
    const names = readMigrations(defaultMigrationsDir()).map((file) => file.name);
    expect(both.flatMap((one) => one.applied).sort()).toEqual(names);
    const store = await openStore({ databaseUrl, log: silent });
    expect(await store.readSettings()).toMatchObject({
      queues: 4,
      eventRetentionDays: 14,
      findingRetentionDays: 400,
    });
    await store.close();
  });

  it('keeps the highest queue count beside the current one', async () => {
    const databaseUrl = await server.database(8);
    expect(await migrate({ databaseUrl, queues: 2, log: silent })).toEqual({ applied: [] });
    const store = await openStore({ databaseUrl, log: silent });
    expect(await store.readSettings()).toMatchObject({ queues: 2, maxQueues: 8 });
    await store.close();
  });

  it('a migration waits for a Postgres that cannot be reached, for at most databaseWait', async () => {
    const databaseUrl = await server.emptyDatabase();
    await server.part.kill();
    await expect(migrate({ databaseUrl, queues: 2, log: silent })).rejects.toMatchObject({
      code: 'DATABASE_UNREACHABLE',
    });
    const warn = vi.fn();
    const log = Object.assign(pino({ level: 'silent' }), { warn });
    const migrated = migrate({ databaseUrl, queues: 2, log, databaseWait: millis(300_000) });
    await waitFor('the migration waits', async () => (warn.mock.calls.length > 0 ? true : undefined));
    await server.part.restart();
    expect((await migrated).applied).not.toEqual([]);
    expect(warn).toHaveBeenCalledExactlyOnceWith(
      { error: expect.stringContaining('cannot be reached') },
      'waiting for Postgres',
    );
  });

  it('the program requires the last migration of the folder', () => {
    expect(readMigrations(defaultMigrationsDir()).at(-1)?.number).toBe(SCHEMA_VERSION);
  });

  it('refuses a migration that was changed after it was applied, and changes nothing', async () => {
    const databaseUrl = await server.database();
    const migrationsDir = copyOfMigrations();
    const file = join(migrationsDir, '0001_functions.sql');
    writeFileSync(file, `${readFileSync(file, 'utf8')}\n-- changed`);
    await expect(migrate({ databaseUrl, queues: 9, log: silent, migrationsDir })).rejects.toMatchObject({
      code: 'MIGRATION_MISMATCH',
      message: expect.stringContaining('0001_functions'),
    });
    expect(await query(databaseUrl, "SELECT value FROM store.setting WHERE key = 'queues'")).toEqual([
      { value: 2 },
    ]);
  });

  it.each([
    ['a number that is missing', '0007_comments.sql', '0099_comments.sql'],
    ['a number that two files share', '0004_views.sql', '0003_views.sql'],
  ])('refuses a folder of migrations with %s', async (_, from, to) => {
    const databaseUrl = await server.emptyDatabase();
    const migrationsDir = copyOfMigrations();
    renameSync(join(migrationsDir, from), join(migrationsDir, to));
    await expect(migrate({ databaseUrl, queues: 2, log: silent, migrationsDir })).rejects.toMatchObject({
      code: 'MIGRATION_MISMATCH',
      message: expect.stringContaining(to.slice(0, -4)),
    });
    expect(await query(databaseUrl, "SELECT to_regnamespace('store') AS store")).toEqual([{ store: null }]);
  });

  it('a failed migration is named without its statement and rolled back', async () => {
    const databaseUrl = await server.emptyDatabase();
    const migrationsDir = copyOfMigrations();
    writeFileSync(join(migrationsDir, '0004_views.sql'), "SELECT 'secret' FROM nowhere");
    const error = await migrate({ databaseUrl, queues: 2, log: silent, migrationsDir }).catch(
      (e: unknown) => e,
    );
    expect(error).toMatchObject({ message: expect.stringContaining('0004_views') });
    expect(String(error)).not.toContain('secret');
    expect(await query(databaseUrl, "SELECT to_regclass('store.container_event') AS event")).toEqual([
      { event: null },
    ]);
  });

  it('every view has its public columns in order, and runs with the rights of the reader', async () => {
    const databaseUrl = await server.database();
    for (const [view, columns] of Object.entries(VIEWS)) {
      const found = await query<{ name: string }>(
        databaseUrl,
        'SELECT attname AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 ORDER BY attnum',
        [`plegwatch.${view}`],
      );
      const names = found.map(({ name }) => name);
      expect(names.slice(0, 2), view).toEqual(['cluster', 'node']);
      expect(
        names.filter((name) => columns.includes(name)),
        view,
      ).toEqual(columns);
    }
    const plain = await query(
      databaseUrl,
      `SELECT relname FROM pg_class WHERE relnamespace = 'plegwatch'::regnamespace AND relkind = 'v'
       AND NOT coalesce('security_invoker=true' = ANY (reloptions), false)`,
    );
    expect(plain).toEqual([]);
  });

  it('every view, function and column that people read has a comment', async () => {
    const silentOnes = await query(
      await server.database(),
      `SELECT c.relname AS of, a.attname AS column FROM pg_class c
       LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
       WHERE c.relnamespace = 'plegwatch'::regnamespace AND c.relkind IN ('v', 'c') AND col_description(c.oid, a.attnum) IS NULL
       UNION ALL
       SELECT c.relname, NULL FROM pg_class c
       WHERE c.relnamespace = 'plegwatch'::regnamespace AND c.relkind = 'v' AND obj_description(c.oid, 'pg_class') IS NULL
       UNION ALL
       SELECT p.proname, CASE WHEN t.typrelid = 0 THEN 'columns without a type of their own' END FROM pg_proc p JOIN pg_type t ON t.oid = p.prorettype
       WHERE p.pronamespace = 'plegwatch'::regnamespace AND (obj_description(p.oid, 'pg_proc') IS NULL OR t.typrelid = 0)`,
    );
    expect(silentOnes, 'Add COMMENT ON to migrations/0007_comments.sql.').toEqual([]);
  });

  it('has the bucket bounds of the agents, and computes quantiles in the right bucket', async () => {
    const databaseUrl = await server.database();
    const [row] = await query<{ bounds: number[] }>(databaseUrl, 'SELECT store.hist_bounds() AS bounds');
    expect(row?.bounds).toEqual([...RELIST_BOUNDS_MS]);
    const kubelets = await query(databaseUrl, 'SELECT store.kubelet_hist_bounds() AS bounds');
    expect(kubelets).toEqual([{ bounds: [...KUBELET_RELIST_BOUNDS_MS] }]);
    const lags = await query(databaseUrl, 'SELECT store.kubelet_lag_bounds() AS bounds');
    expect(lags).toEqual([{ bounds: [...KUBELET_LAG_BOUNDS_MS] }]);
    const hist = [0, 10, 0, 80, 0, 10];
    const quantiles = await query<{ q: number }>(
      databaseUrl,
      'SELECT store.hist_quantile($1::int2[], q) AS q FROM unnest($2::float8[]) AS q',
      [hist, [0.05, 0.1, 0.5, 0.95, 1]],
    );
    expect(quantiles.map(({ q }) => q)).toEqual([1.5, 2, 3.5, 7, 8]);
    const empty = await query(databaseUrl, "SELECT store.hist_quantile('{0,0}'::int2[], 0.5) AS q");
    expect(empty).toEqual([{ q: null }]);
    const beyond = [...RELIST_BOUNDS_MS.map(() => 0), 3];
    const last = await query(databaseUrl, 'SELECT store.hist_quantile($1::int4[], 0.5) AS q', [beyond]);
    expect(last).toEqual([{ q: RELIST_BOUNDS_MS.at(-1) }]);
  });

  it('shows unknown event types and states by number', async () => {
    const databaseUrl = await server.database();
    const [row] = await query(
      databaseUrl,
      'SELECT store.event_type_name(7) AS type, store.pleg_state_name(9) AS state, store.pleg_event_names(6) AS pleg',
    );
    expect(row).toEqual({
      type: 'UNKNOWN(7)',
      state: 'UNKNOWN(9)',
      pleg: ['ContainerDied', 'ContainerRemoved'],
    });
  });

  it('a controller can write and a reader can read without owning anything', async () => {
    const databaseUrl = await server.database();
    const controller = await server.role(databaseUrl, 'controller');
    const reader = await server.reader(databaseUrl);
    await query(databaseUrl, 'SELECT store.grant_controller($1)', [new URL(controller).username]);
    const store = await openStore({ databaseUrl: controller, log: silent });
    expect(await store.ensureCluster('another')).toBeGreaterThan(0);
    expect(
      await runText(store, "SELECT store.make_partition('container_event', current_date - 5) AS made"),
    ).toEqual([{ made: true }]);
    await expect(runText(store, 'DELETE FROM store.container_event')).rejects.toThrow('permission denied');
    await expect(runText(store, 'DROP TABLE store.container_event')).rejects.toThrow('must be owner');
    await store.close();
    for (const view of Object.keys(VIEWS)) await query(reader, `SELECT * FROM plegwatch.${view} LIMIT 1`);
    await expect(query(reader, 'SELECT store.make_partitions(1)')).rejects.toThrow('permission denied');
  });

  it('concurrent requests for a partition create it once', async () => {
    const databaseUrl = await server.database();
    const made = await Promise.all(
      Array.from({ length: 4 }, () =>
        query<{ made: boolean }>(
          databaseUrl,
          "SELECT store.make_partition('relist_change', current_date - 9) AS made",
        ),
      ),
    );
    expect(made.flat().filter(({ made }) => made)).toHaveLength(1);
  });

  it('survives a connection that breaks between two statements of a transaction', async () => {
    const databaseUrl = await server.database();
    const store = await openStore({ databaseUrl, log: silent, databaseMaxConnections: 1 });
    const broken = store.transaction(async (runner) => {
      const rows = await runText<{ pid: number }>(runner, 'SELECT pg_backend_pid() AS pid');
      await query(server.part.url, 'SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
      await passes(async () => {
        const there = 'SELECT FROM pg_stat_activity WHERE pid = $1';
        expect(await query(server.part.url, there, [rows[0]?.pid])).toEqual([]);
      });
      await runText(runner, 'SELECT 1');
    });
    const error = await broken.catch((e: unknown) => e);
    expect(databaseErrorKind(error)).toBe('outage');
    await store.ping();
    await store.close();
  });

  it('a transaction that Postgres no longer answers ends with the first statement that is not answered', async () => {
    const store = await openStore({ databaseUrl: await server.database(), log: silent });
    let backend = 0;
    // A statement that nobody answers ends by a timer; no other one comes.
    const timers: (() => void)[] = [];
    const failed = store.transaction(async (sql) => {
      const [row] = await runText<{ pid: number }>(sql, 'SELECT pg_backend_pid() AS pid');
      backend = row?.pid ?? 0;
      await freeze(backend);
      vi.stubGlobal('setTimeout', (run: () => void) => timers.push(run));
      return runText(sql, 'SELECT 1');
    });
    try {
      await until(() => timers.length > 0);
      timers[0]?.();
      await expect(failed).rejects.toThrow('Query read timeout');
      expect(timers).toHaveLength(1);
    } finally {
      vi.unstubAllGlobals();
      thaw(backend);
      await store.close();
    }
  });

  it('a gap that a killed agent left open ends at the next incarnation, and one of a live agent stays open', async () => {
    const databaseUrl = await server.database();
    const stream = (t: number): EvidenceRecord => ({
      type: 'gap',
      t,
      gapId: randomUUID(),
      scope: 'stream',
      cause: 'broken',
      from: t,
      to: null,
    });
    const killed = agentIncarnation('node-a', 1, 60_000);
    const present = agentIncarnation('node-a', 2, 20_000);
    await commitAll(databaseUrl, [
      killed.batch(1, [stream(1_000_000)]),
      present.batch(1, [stream(2_000_000)], { prev: killed.epoch }),
    ]);
    const gaps = await query(
      databaseUrl,
      `SELECT g.to_at IS NULL AS open, g.to_at = n.started_at AS until_next
         FROM plegwatch.gaps g LEFT JOIN plegwatch.epochs n ON n.prev = g.epoch
         WHERE g.scope = 'stream' ORDER BY g.from_at`,
    );
    expect(gaps).toEqual([
      { open: false, until_next: true },
      { open: true, until_next: null },
    ]);
  });

  it('reports what is wrong with --database-url, never the password', async () => {
    const databaseUrl = await server.database();
    const open = async (change: (url: URL) => void) => {
      const url = new URL(databaseUrl);
      url.password = 'hunter2';
      change(url);
      const error = await openStore({ databaseUrl: url.href, log: silent }).catch((e: unknown) => e);
      const text = `${String(error)} ${JSON.stringify(error)}`;
      expect(text).toContain('--database-url');
      expect(text).not.toContain('hunter2');
      return Reflect.get(Object(error), 'code');
    };
    const right = new URL(databaseUrl).password;
    const closedPort = `${await freePort()}`;
    expect(await open(() => undefined)).toBe('DATABASE_REFUSED');
    expect(
      await open((url) => {
        url.password = right;
        url.pathname = '/nowhere';
      }),
    ).toBe('DATABASE_REFUSED');
    expect(
      await open((url) => {
        url.port = closedPort;
      }),
    ).toBe('DATABASE_UNREACHABLE');
    const empty = await server.emptyDatabase();
    await expect(openStore({ databaseUrl: empty, log: silent })).rejects.toMatchObject({
      code: 'DATABASE_NOT_MIGRATED',
      cure: expect.stringContaining('plegwatch migrate'),
    });
  });
});
