/*
 * `plegwatch export`: each view on a history that a controller stored, files that are kept, and a day that is larger than the memory.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EXPORTED_VIEWS } from '../../src/analysis/export/views.ts';
import { agentIncarnation } from '../support/batches.ts';
import { plegwatch } from '../support/commandLine.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { evidence, UNHEALTHY } from '../support/evidence.ts';
import { needs } from '../support/needs.ts';

const DAY_MS = 86_400_000;
const MANY = 200_000;
/** Once, because midnight may come between two runs. */
const NOW = Date.now();
const dayAgo = (days: number) => new Date(NOW - days * DAY_MS).toISOString().slice(0, 10);

let server: TestServer;
let databaseUrl: string;
let reader: string;
let dir: string;

needs('postgres')('plegwatch export', () => {
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'export-'));
    server = await startServer();
    databaseUrl = await server.database();
    reader = await server.reader(databaseUrl);
    await commitAll(databaseUrl, [agentIncarnation('node-a', 1, 120_000).batch(1, evidence())]);
    await query(databaseUrl, UNHEALTHY);
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  const exported = (view: string, folder: string, ...args: string[]) =>
    plegwatch(['export', view, '--dir', join(dir, folder), '--database-url', reader, ...args]);
  const textOf = (folder: string, name: string) =>
    gunzipSync(readFileSync(join(dir, folder, name))).toString();
  const filesOf = (folder: string) => readdirSync(join(dir, folder)).sort();

  test('each view that it knows has a file for each day with its columns and its rows', async () => {
    for (const view of Object.keys(EXPORTED_VIEWS)) {
      const { code, stderr } = await exported(view, 'all', '--from', '-1d');
      expect([view, code, stderr]).toEqual([view, 0, '']);
      const texts = filesOf('all')
        .filter((name) => name.startsWith(`${view}-2`))
        .map((name) => textOf('all', name));
      expect(texts.length).toBeGreaterThanOrEqual(2);
      for (const text of texts) expect(text).toMatch(/^cluster,node,/);
      const rows = texts.map((text) => text.trimEnd().split('\n').length - 1).reduce((sum, n) => sum + n, 0);
      const [count] = await query<{ n: number }>(
        databaseUrl,
        `SELECT count(*)::int4 AS n FROM plegwatch.${view}`,
      );
      expect([view, rows]).toEqual([view, count?.n]);
    }
  });

  test('CSV of several views, or of none, is refused with the cure before Postgres is asked, and nothing is written', async () => {
    const nowhere = 'postgres://127.0.0.1:1/nowhere';
    for (const views of [[], ['findings', 'gaps'], ['findings,gaps']]) {
      const args = ['export', ...views, '--dir', join(dir, 'several'), '--database-url', nowhere];
      const { code, stderr } = await plegwatch(args);
      expect([code, stderr]).toEqual([
        2,
        expect.stringMatching(/one view.*\nName one, or set --format parquet.*\[SETTING_INVALID\]/),
      ]);
    }
    expect(readdirSync(dir)).not.toContain('several');
  });

  test('a run goes on where another was interrupted: what is complete is kept, what is not is written', async () => {
    const args = ['--from', dayAgo(3), '--to', dayAgo(1)] as const;
    const first = await exported('findings', 'resumed', ...args);
    const files = filesOf('resumed');
    expect(files).toHaveLength(2);
    const [kept = '', lost = ''] = files;
    const before = statSync(join(dir, 'resumed', kept)).mtimeMs;
    rmSync(join(dir, 'resumed', lost));
    writeFileSync(join(dir, 'resumed', `${lost}.part`), 'half of a file');
    const again = await exported('findings', 'resumed', ...args);
    expect(again.stdout).toBe(`${kept}: kept\n${first.stdout.split('\n')[1]}\n`);
    expect(filesOf('resumed')).toEqual(files);
    expect(statSync(join(dir, 'resumed', kept)).mtimeMs).toBe(before);
  });

  test('a file that was written before its day was over is written again', async () => {
    const args = ['--from', dayAgo(2), '--to', dayAgo(1)] as const;
    await exported('findings', 'early', ...args);
    const [name = ''] = filesOf('early');
    const day = Date.parse(name.slice('findings-'.length, -'.csv.gz'.length));
    const noon = new Date(day + DAY_MS / 2);
    utimesSync(join(dir, 'early', name), noon, noon);
    const { stdout } = await exported('findings', 'early', ...args);
    expect(stdout).toMatch(new RegExp(`^${name}: \\d+ rows?$`, 'm'));
    expect(statSync(join(dir, 'early', name)).mtimeMs).toBeGreaterThan(noon.getTime());
  });

  test('files of one cluster have its name and only its rows', async () => {
    await query(databaseUrl, `INSERT INTO store.cluster (name) VALUES ('empty')`);
    await exported('findings', 'clusters', '--cluster', 'empty', '--from', '-1d');
    await exported('findings', 'clusters', '--cluster', 'test', '--from', '-1d');
    const rowsOf = (cluster: string) =>
      filesOf('clusters')
        .filter((name) => name.startsWith(`findings-${cluster}-`))
        .map((name) => textOf('clusters', name).trimEnd().split('\n').length - 1);
    expect(Math.max(...rowsOf('empty'))).toBe(0);
    expect(Math.max(...rowsOf('test'))).toBeGreaterThan(0);
    const unknown = await exported('findings', 'clusters', '--cluster', 'other');
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('[NOT_FOUND]')]);
  });

  test('a day with more rows than the memory can hold is written', async () => {
    const yesterday = dayAgo(1);
    await query(databaseUrl, `SELECT store.make_partition('node_condition', $1::date)`, [yesterday]);
    await query(
      databaseUrl,
      `INSERT INTO store.node_condition (at, day, node_id, cluster_id, status, reason, message)
       SELECT $1::date + i * interval '1 ms', $1::date, node_id, cluster_id, 'False', 'KubeletNotReady', repeat('x', 100)
       FROM store.node, generate_series(1, ${MANY}) AS i WHERE name = 'node-a'`,
      [yesterday],
    );
    const args = [
      'export',
      'node_conditions',
      '--dir',
      join(dir, 'large'),
      '--database-url',
      reader,
      '--from',
      yesterday,
    ];
    const { code, stdout } = await plegwatch(args, { NODE_OPTIONS: '--max-old-space-size=64' });
    expect([code, stdout]).toEqual([0, expect.stringContaining(`: ${MANY} rows\n`)]);
  });
});
