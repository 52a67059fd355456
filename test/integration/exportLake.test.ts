/*
 * `plegwatch export --format parquet`: every value of every view, several views, and what becomes of days that are incomplete, completed later,
 * damaged, killed, or no longer in Postgres.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { runExport } from '../../src/analysis/export/command.ts';
import { EXPORTED_VIEWS } from '../../src/analysis/export/views.ts';
import { openReadStore } from '../../src/store/fleet.ts';
import { deleteExpiredEpochs } from '../../src/store/statements.ts';
import { agentIncarnation, agentStartedAt } from '../support/batches.ts';
import { CLI } from '../support/build.ts';
import { plegwatch } from '../support/commandLine.ts';
import { commitAll } from '../support/committed.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { evidence, NODE_INFO, NOT_READY, UNHEALTHY } from '../support/evidence.ts';
import { askDuckDb, askPostgres, lakeSql } from '../support/lake.ts';
import { needs } from '../support/needs.ts';
import { relistMinute } from '../support/records.ts';
import { until } from '../support/waitFor.ts';

const DAY_MS = 86_400_000;
const MANY = 200_000;
const US_PER_MINUTE = 60_000_000;
/** Once, because midnight may come between two tests. */
const NOW = Date.now();
const dayAgo = (days: number) => new Date(NOW - days * DAY_MS).toISOString().slice(0, 10);
/** All that is stored here was recorded at noon of the first of these days. */
const [DAY, TODAY] = [dayAgo(3), dayAgo(0)];
const NOON = Date.parse(`${DAY}T12:00:00Z`);

let server: TestServer;
let databaseUrl: string;
let reader: string;
let dir: string;

needs('postgres')('plegwatch export --format parquet', () => {
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server?.stop());
  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'lake-'));
    databaseUrl = await server.database();
    reader = await server.reader(databaseUrl);
    return () => rmSync(dir, { recursive: true, force: true });
  });

  const agentAtNoon = (node: string) => agentStartedAt(node, 1, NOON);
  const storeDay = (node: string) => commitAll(databaseUrl, [agentAtNoon(node).batch(1, evidence())]);
  const argsOf = (...views: readonly string[]) => [
    ...['export', ...views, '--format', 'parquet', '--dir', dir, '--database-url', reader],
    ...['--from', DAY, '--to', TODAY],
  ];
  /** The lines of the days without their places. */
  const exported = async (view: string, env: Readonly<Record<string, string>> = {}) => {
    const { code, stdout, stderr } = await plegwatch(argsOf(view), env);
    const lines = stdout.split('\n').filter((line) => line !== '');
    return { code, stderr, ofDay: lines[0]?.split(`${view}/cluster=test/day=${DAY}: `)[1], lines };
  };
  const folderOf = (view: string) => join(dir, view, 'cluster=test');
  const fileOf = (view: string) => join(folderOf(view), `day=${DAY}`, 'part.parquet');
  const partOf = (view: string) => join(folderOf(view), `day=${DAY}`, '_part.parquet');
  const listedOf = (view: string) =>
    JSON.parse(readFileSync(join(folderOf(view), '_manifest.json'), 'utf8')).files[DAY];
  const isAsListed = (view: string) =>
    createHash('sha256')
      .update(readFileSync(fileOf(view)))
      .digest('hex') === listedOf(view).sha256;
  const read = (view: string, columns: string) =>
    askDuckDb([
      "SET TimeZone = 'UTC'",
      `SELECT ${columns} FROM read_parquet('${dir}/${view}/*/*/*.parquet', hive_partitioning = true,
         hive_types = {'cluster': VARCHAR, 'day': DATE})`,
    ]);
  const countOf = async (view: string) => (await read(view, 'count(*)')).rows[0]?.[0];
  const storeMany = async (rows: number) => {
    await storeDay('node-a');
    await query(databaseUrl, `SELECT store.make_partition('node_condition', $1::date)`, [DAY]);
    await query(
      databaseUrl,
      `INSERT INTO store.node_condition (at, day, node_id, cluster_id, status, reason, message)
       SELECT $1::date + i * interval '1 ms', $1::date, node_id, cluster_id, 'False', 'KubeletNotReady', repeat('x', 100)
       FROM store.node, generate_series(1, ${rows}) AS i WHERE name = 'node-a'`,
      [DAY],
    );
  };

  test('each view has the values that Postgres has, in a file for each day that is over', async () => {
    await storeDay('node-a');
    await query(databaseUrl, `SELECT store.make_partition('node_condition', $1::date)`, [DAY]);
    for (const text of [UNHEALTHY, NOT_READY, NODE_INFO]) {
      await query(databaseUrl, text);
      await query(databaseUrl, text.replaceAll('now()', `timestamptz '${DAY} 13:00:00.000001+00'`));
    }
    await query(
      databaseUrl,
      `UPDATE store.container SET pod_name = 'под-👩‍🚀-\\"''%_' || chr(1) || chr(10), pod_namespace = '日本'`,
    );
    const extremes = 'CASE seq % 2 WHEN 0 THEN 9223372036854775807 ELSE -9223372036854775808 END';
    await query(databaseUrl, `UPDATE store.container_event SET created_ns = ${extremes}`);
    await query(databaseUrl, 'UPDATE store.node SET first_seen = $1', [new Date(NOON)]);
    const views = Object.entries(EXPORTED_VIEWS);
    const { code, stdout, stderr } = await plegwatch(argsOf(...views.map(([view]) => view)));
    expect([code, stderr]).toEqual([0, '']);
    const empty: string[] = [];
    for (const [view, { time }] of views) {
      expect(stdout).toMatch(new RegExp(`\\b${view}/cluster=test/day=`));
      const all = await askPostgres(reader, `SELECT * FROM plegwatch.${view} LIMIT 0`);
      // The length of a fallback that has not ended grows.
      const columns = all.columns.filter((name) => name !== 'hours');
      const isOver = columns.includes('day')
        ? 'day < $1::date'
        : `${time.name} < $1::date::timestamp AT TIME ZONE 'UTC'`;
      const texts = columns.map((name) => (['proof', 'labels'].includes(name) ? `${name}::text` : name));
      const inPostgres = `SELECT ${texts.join(', ')} FROM plegwatch.${view} WHERE ${isOver}`;
      const expected = await askPostgres(reader, inPostgres, [TODAY]);
      const found = await read(view, columns.map((name) => `"${name}"`).join(', '));
      const sorted = (rows: readonly (readonly unknown[])[]) => rows.map((row) => JSON.stringify(row)).sort();
      expect([view, sorted(found.rows)]).toEqual([view, sorted(expected.rows)]);
      if (found.rows.length === 0) empty.push(view);
    }
    // Lags are kept for two days; of the others, this history has none.
    expect(empty).toEqual(['status_lags']);
  });

  test('a run that names no view exports those that the queries in lake/ read', async () => {
    await storeDay('node-a');
    expect(await plegwatch(argsOf())).toMatchObject({ code: 0, stderr: '' });
    expect(readdirSync(dir)).toEqual(lakeSql('duckdb').views);
    expect(lakeSql('spark').views.filter((view) => !view.endsWith('_files'))).toEqual(readdirSync(dir));
    expect(await countOf('container_events')).not.toBe('0');
  });

  test('views that cannot be exported are named, with the code of each, and the others are exported', async () => {
    await storeDay('node-a');
    writeFileSync(join(dir, 'findings'), 'in its place');
    await query(databaseUrl, `REVOKE SELECT ON plegwatch.gaps FROM ${new URL(reader).username}`);
    const { code, stdout, stderr } = await plegwatch(argsOf('findings', 'gaps,relists', 'container_events'));
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^plegwatch export findings: --dir: .*\[EXPORT_UNWRITABLE\]\nplegwatch export gaps: .*\[DATABASE_REFUSED\]\n$/s,
    );
    expect(new Set(stdout.match(/^\w+/gm))).toEqual(new Set(['relists', 'container_events']));
    expect(await countOf('container_events')).not.toBe('0');
  });

  test('a cluster that is called null keeps its name', async () => {
    await storeDay('node-a');
    await query(databaseUrl, "UPDATE store.cluster SET name = 'null' WHERE name = 'test'");
    expect(await plegwatch(argsOf('container_events'))).toMatchObject({ code: 0, stderr: '' });
    expect((await read('container_events', 'DISTINCT cluster')).rows).toEqual([['null']]);
  });

  test('a day without rows has a file without rows', async () => {
    await storeDay('node-a');
    const { lines } = await exported('findings');
    expect(lines.slice(1).map((line) => /: 0 rows/.test(line))).toEqual([true, true]);
    expect(readdirSync(folderOf('findings'))).toEqual([
      '_manifest.json',
      ...[3, 2, 1].map((days) => `day=${dayAgo(days)}`),
    ]);
  });

  test('a day is incomplete until all that agents recorded of it is stored, and is written only when rows were added', async () => {
    const agent = agentAtNoon('node-a');
    const records = evidence();
    const [head, tail] = [records.slice(0, 4), records.slice(4)];
    await commitAll(databaseUrl, [agent.batch(1, head)]);
    // As if it had been silent since three minutes after noon.
    await query(databaseUrl, `UPDATE store.epoch SET complete_through = $1::date + time '12:03'`, [DAY]);
    const view = 'relist_minutes';
    const first = await exported(view);
    expect(first.ofDay).toMatch(/^\d+ rows?, not complete$/);
    expect(listedOf(view).complete).toBe(false);
    const { mtimeMs } = statSync(fileOf(view));
    expect((await exported(view)).ofDay).toBe('kept, not complete');
    await commitAll(databaseUrl, [agent.batch(5, tail)]);
    const second = await exported(view);
    expect(second.ofDay).toMatch(/^\d+ rows?$/);
    expect(Number.parseInt(second.ofDay ?? '', 10)).toBeGreaterThan(Number.parseInt(first.ofDay ?? '', 10));
    expect(listedOf(view)).toMatchObject({ complete: true, rows: Number.parseInt(second.ofDay ?? '', 10) });
    expect(statSync(fileOf(view)).mtimeMs).toBeGreaterThan(mtimeMs);
    expect((await exported(view)).ofDay).toBe('kept');
  });

  test('a minute that began before midnight is in its day, also if that was exported before it ended', async () => {
    const view = 'relist_minutes';
    const agent = agentAtNoon('node-a');
    const records = evidence();
    await commitAll(databaseUrl, [agent.batch(1, records)]);
    await query(databaseUrl, "UPDATE store.epoch SET complete_through = $1::date + interval '24:00:05'", [
      DAY,
    ]);
    const rows = Number.parseInt((await exported(view)).ofDay ?? '', 10);
    const last = relistMinute({ t: 715 * US_PER_MINUTE, span: 6 * US_PER_MINUTE });
    await commitAll(databaseUrl, [agent.batch(records.length + 1, [last])]);
    expect((await exported(view)).ofDay).toBe(`${rows + 1} rows`);
  });

  test('a complete day is written again when an agent that was not known delivers its records of it', async () => {
    const view = 'container_events';
    await storeDay('node-a');
    const before = Number.parseInt((await exported(view)).ofDay ?? '', 10);
    await storeDay('node-b');
    expect((await exported(view)).ofDay).toBe(`${2 * before} rows`);
    expect(await countOf(view)).toBe(`${2 * before}`);
  });

  test('a finding that was resolved after its day was exported is written again', async () => {
    await storeDay('node-a');
    await exported('findings');
    const resolved = async () => (await read('findings', 'count(resolved_at)')).rows[0]?.[0];
    expect(await resolved()).toBe('0');
    await query(
      databaseUrl,
      `INSERT INTO store.finding_update (node_id, cluster_id, day, finding_id, what, at)
       SELECT node_id, cluster_id, day, finding_id, 'resolved', detected_at FROM store.finding WHERE kind = 'missed' LIMIT 1`,
    );
    await exported('findings');
    expect(await resolved()).toBe('1');
  });

  test('a run that was killed before a complete file had its name is finished by the next one', async () => {
    const view = 'container_events';
    await storeDay('node-a');
    await exported(view);
    renameSync(fileOf(view), partOf(view));
    expect((await exported(view)).ofDay).toBe('kept');
    expect(isAsListed(view)).toBe(true);
  });

  test('a complete file that cannot have its name is kept, and has it after the next run that can', async () => {
    const view = 'container_events';
    await storeDay('node-a');
    mkdirSync(fileOf(view), { recursive: true });
    const { code, stderr } = await exported(view);
    expect([code, stderr]).toEqual([1, expect.stringContaining('[EXPORT_UNWRITABLE]')]);
    rmSync(fileOf(view), { recursive: true });
    await query(databaseUrl, `UPDATE store.setting SET value = '2' WHERE key = 'event_retention_days'`);
    expect(await exported(view)).toMatchObject({ code: 0, ofDay: 'kept' });
    expect(isAsListed(view)).toBe(true);
  });

  test('a cluster whose name leads out of the folder is refused', async () => {
    await storeDay('node-a');
    await query(databaseUrl, "UPDATE store.cluster SET name = 'x/../../../out' WHERE name = 'test'");
    const { code, stderr } = await plegwatch(
      argsOf('findings').map((arg) => (arg === dir ? join(dir, 'in') : arg)),
    );
    expect([code, stderr]).toEqual([1, expect.stringContaining('[DATABASE_VALUE]')]);
    expect(readdirSync(dir)).toEqual([]);
  });

  test('two runs at once export each day once, and leave the files that the manifest lists', async () => {
    const view = 'container_events';
    await storeDay('node-a');
    await query(databaseUrl, `UPDATE store.container SET pod_name = repeat('x', 100000)`);
    const runs = await Promise.all([exported(view), exported(view)]);
    expect(runs.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    for (const at of [0, 1, 2])
      expect(runs.map(({ lines }) => lines[at]?.includes(': kept')).sort()).toEqual([false, true]);
    expect(isAsListed(view)).toBe(true);
  });

  test('no lock that a reader can take holds up a run for longer than its bound, and who has it is named', async () => {
    const view = 'findings';
    await storeDay('node-a');
    const role = await server.role(databaseUrl, 'stranger');
    const stranger = new Client({ connectionString: role, application_name: 'a reader' });
    await stranger.connect();
    const store = await openReadStore({ databaseUrl: reader, databaseSecretDir: undefined, log: silent });
    const [from, to] = [new Date(DAY), new Date(TODAY)];
    const failed: unknown[] = [];
    const run = (lockWaitMs: number) =>
      runExport({
        ...{ store, views: [view, 'gaps'], format: 'parquet', dir, cluster: undefined, from, to },
        ...{ print: () => undefined, fail: (of, error) => failed.push([of, error]), lockWaitMs },
      });
    try {
      const key = `hashtextextended('plegwatch export ${view} of test', 0)`;
      for (const mode of ['', '_shared']) {
        await stranger.query(`SELECT pg_advisory_lock${mode}(${key})`);
        await run(500);
        await stranger.query('SELECT pg_advisory_unlock_all()');
        expect(failed.splice(0)).toEqual([
          [
            view,
            expect.objectContaining({
              code: 'DATABASE_TIMEOUT',
              message: `Another session keeps the lock of plegwatch export ${view} of test: pid ${Reflect.get(stranger, 'processID')} (role ${new URL(role).username}, a reader).`,
            }),
          ],
        ]);
      }
      expect([existsSync(fileOf(view)), isAsListed('gaps')]).toEqual([false, true]);
      await run(0);
      expect([failed, isAsListed(view)]).toEqual([[], true]);
    } finally {
      await stranger.end();
      await store.close();
    }
  });

  test('a file with a changed byte is written again, or is an error once Postgres no longer has its day', async () => {
    const view = 'container_events';
    await storeDay('node-a');
    const rows = (await exported(view)).ofDay;
    const change = () => {
      const bytes = readFileSync(fileOf(view));
      bytes[20] = (bytes[20] ?? 0) ^ 1;
      writeFileSync(fileOf(view), bytes);
    };
    change();
    expect((await exported(view)).ofDay).toBe(rows);
    expect(isAsListed(view)).toBe(true);
    await query(databaseUrl, `UPDATE store.setting SET value = '2' WHERE key = 'event_retention_days'`);
    expect(await exported(view)).toMatchObject({ code: 0, ofDay: 'kept' });
    change();
    const { code, stderr } = await exported(view);
    expect([code, stderr]).toEqual([1, expect.stringContaining('[EXPORT_DAMAGED]')]);
    expect(stderr).toContain(fileOf(view));
  });

  test('a file is not replaced by one with fewer rows', async () => {
    const view = 'node_conditions';
    await storeMany(100);
    await exported(view);
    await query(
      databaseUrl,
      "DELETE FROM store.node_condition WHERE day = $1 AND at <> $1::date + interval '1 ms'",
      [DAY],
    );
    const { code, ofDay } = await exported(view);
    expect([code, ofDay]).toEqual([0, 'kept, because Postgres has only 1 of its 100 rows']);
    expect([await countOf(view), isAsListed(view)]).toEqual(['100', true]);
  });

  test('a Node that was created again leaves the file of its earlier day, where the others are as they are now, but not if Postgres lost records', async () => {
    for (const node of ['node-a', 'node-b', 'node-c']) await storeDay(node);
    const firstSeen = (node: string, at: number) =>
      query(databaseUrl, 'UPDATE store.node SET first_seen = $2 WHERE name = $1', [node, new Date(at)]);
    for (const node of ['node-a', 'node-b', 'node-c']) await firstSeen(node, NOON);
    expect((await exported('nodes')).ofDay).toBe('3 rows');
    await firstSeen('node-c', NOON + DAY_MS);
    await query(
      databaseUrl,
      `INSERT INTO store.report (node_id, cluster_id, node_deleted_at) SELECT node_id, cluster_id, now() FROM store.node WHERE name = 'node-a'`,
    );
    expect((await exported('nodes')).ofDay).toBe('2 rows');
    expect((await read('nodes', 'node, day::text, deleted_at IS NOT NULL')).rows.toSorted()).toEqual([
      ['node-a', DAY, true],
      ['node-b', DAY, false],
      ['node-c', dayAgo(2), false],
    ]);
    await firstSeen('node-b', NOON + DAY_MS);
    await query(databaseUrl, "UPDATE store.epoch SET received = '{}'");
    expect((await exported('nodes')).ofDay).toMatch(/^kept, because Postgres has only 1 of its 2 rows/);
  });

  test.each([
    ['that was cut off', (text: string) => text.slice(0, 100)],
    ['whose counts are no numbers of rows', (text: string) => text.replace(/"rows": \d+/, '"rows": 1e999')],
  ])('a manifest %s is an error, and stays as it is', async (_, damaged) => {
    const view = 'container_events';
    await storeDay('node-a');
    await exported(view);
    const manifest = join(folderOf(view), '_manifest.json');
    const text = damaged(readFileSync(manifest, 'utf8'));
    writeFileSync(manifest, text);
    const { code, stderr } = await exported(view);
    expect([code, stderr]).toEqual([1, expect.stringContaining('[EXPORT_DAMAGED]')]);
    expect(readFileSync(manifest, 'utf8')).toBe(text);
  });

  test('a run that exports nothing says so, and which clusters the role may no longer read', async () => {
    const nothing = expect.stringContaining('no cluster has nodes');
    expect(await exported('findings')).toMatchObject({ code: 0, lines: [nothing] });
    await storeDay('node-a');
    expect((await exported('findings')).lines).toHaveLength(3);
    const role = new URL(reader).username;
    await query(databaseUrl, 'SELECT store.revoke_access($1)', [role]);
    await query(databaseUrl, "SELECT store.grant_reader($1, 'other')", [role]);
    const kept = expect.stringMatching(/^findings\/cluster=test: kept, because .* may read$/);
    expect(await exported('findings')).toMatchObject({ code: 0, lines: [nothing, kept] });
  });

  test.each(['container_events', 'findings'])(
    'an incomplete day of %s is not replaced from a database that lost its records, where nothing seems to be missing and as many of another day are stored',
    async (view) => {
      await storeDay('node-a');
      await query(databaseUrl, "UPDATE store.epoch SET complete_through = $1::date + interval '12:03'", [
        DAY,
      ]);
      await query(databaseUrl, "UPDATE store.node SET last_seen = now() - interval '1 hour'");
      const rows = Number.parseInt((await exported(view)).ofDay ?? '', 10);
      expect([rows > 0, listedOf(view).complete]).toEqual([true, false]);
      const kept = `kept, because Postgres has only 0 of its ${rows} rows, not complete`;
      const theDayBefore = agentStartedAt('node-a', 1, NOON - DAY_MS);
      for (const agent of [agentIncarnation('node-a'), theDayBefore]) {
        databaseUrl = await server.database();
        reader = await server.reader(databaseUrl);
        await commitAll(databaseUrl, [agent.batch(1, evidence())]);
        await query(databaseUrl, 'UPDATE store.epoch SET complete_through = now()');
        expect(await exported(view)).toMatchObject({ code: 0, ofDay: kept });
        expect([await countOf(view), isAsListed(view)]).toEqual([`${rows}`, true]);
      }
    },
  );

  test('a row of an incomplete day that later records disprove is taken out, also after old epochs expired', async () => {
    const view = 'mode_changes';
    await storeDay('node-a');
    await query(
      databaseUrl,
      `INSERT INTO store.node (cluster_id, name, last_seen, incarnation)
       SELECT cluster_id, 'gone', now() - interval '500 days', 2 FROM store.node`,
    );
    await query(
      databaseUrl,
      `INSERT INTO store.epoch (node_id, cluster_id, epoch, incarnation, claimed_incarnation, node_uid, boot_id, started_mono, started_at,
                                ack_generation, last_seq, received, last_seen, last_stored_at, last_new_at, closed_at, close_cause)
       SELECT node_id, cluster_id, gen_random_uuid(), 1, 1, '', '', 0, last_seen, 1, 100, '{[1,101)}', last_seen, last_seen, last_seen, last_seen,
              'released' FROM store.node WHERE name = 'gone'`,
    );
    await query(databaseUrl, "UPDATE store.node SET last_seen = now() - interval '1 hour'");
    // As if it had been silent since then, or had delivered until then what it recorded meanwhile.
    const deliveredUntil = async (after: string) => {
      const set = 'kubelet_seen_to = $1::date + $2::interval, complete_through = $1::date + $2::interval';
      await query(databaseUrl, `UPDATE store.epoch SET ${set}`, [DAY, after]);
      return (await exported(view)).ofDay;
    };
    const unobservedOn = async () =>
      (await read(view, "list(day::text) FILTER (reason = 'NotObserved')")).rows[0]?.[0];
    const rows = Number.parseInt((await deliveredUntil('12:03')) ?? '', 10);
    expect([await unobservedOn(), listedOf(view).complete]).toEqual([[DAY], false]);
    await query(databaseUrl, deleteExpiredEpochs.text);
    expect(await query(databaseUrl, "SELECT FROM plegwatch.epochs WHERE node = 'gone'")).toEqual([]);
    expect(await deliveredUntil('30 hours')).toBe(`${rows - 1} rows`);
    expect(await unobservedOn()).toEqual([dayAgo(2)]);
  });

  test('a day whose rows are as large as they may be is written in little memory', async () => {
    await storeDay('node-a');
    await query(databaseUrl, `SELECT store.make_partition('node_condition', $1::date)`, [DAY]);
    await query(
      databaseUrl,
      `INSERT INTO store.node_condition (at, day, node_id, cluster_id, status, reason, message)
       SELECT $1::date + i * interval '1 ms', $1::date, node_id, cluster_id, 'False', 'KubeletNotReady', repeat(md5(i::text), 1000)
       FROM store.node, generate_series(1, 8000) AS i WHERE name = 'node-a'`,
      [DAY],
    );
    const { code, stdout } = await plegwatch(argsOf('node_conditions'), {
      NODE_OPTIONS: '--max-old-space-size=96',
    });
    expect([code, stdout]).toEqual([0, expect.stringContaining(': 8000 rows\n')]);
  });

  test('a run that is killed leaves no half of a file under its name, and the next one exports the day, of more rows than its memory can hold', async () => {
    const view = 'node_conditions';
    await storeMany(MANY);
    // Again, if it was over before it was killed.
    do {
      rmSync(folderOf(view), { recursive: true, force: true });
      const run = spawn(process.execPath, [CLI, ...argsOf(view)], { stdio: 'ignore' });
      const exit = once(run, 'exit');
      await until(() => existsSync(partOf(view)) || run.exitCode !== null);
      run.kill('SIGKILL');
      await exit;
    } while (!existsSync(partOf(view)));
    expect(existsSync(fileOf(view))).toBe(false);
    const { ofDay } = await exported(view, { NODE_OPTIONS: '--max-old-space-size=64' });
    expect(ofDay).toBe(`${MANY} rows`);
    expect(readdirSync(join(folderOf(view), `day=${DAY}`))).toEqual(['part.parquet']);
    expect([await countOf(view), isAsListed(view)]).toEqual([`${MANY}`, true]);
  });
});
