/*
 * `plegwatch report` as people and scripts run it: of one cluster or all, in each format, with exit codes. That it agrees with kubectl is
 * in report.test.ts.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { openStore, type Store } from '../../src/store/store.ts';
import { plegwatch } from '../support/commandLine.ts';
import { query, runText, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { EvidenceFixture } from '../support/storedRecords.ts';

/** A spreadsheet would run it, and a field of CSV would end in it. */
const FORMULA = '=HYPERLINK("http://evil.example";"x"),1';

let server: TestServer;
let west: EvidenceFixture;
let store: Store;
let databaseUrl: string;

needs('postgres')('plegwatch report', () => {
  beforeAll(async () => {
    server = await startServer();
    databaseUrl = await server.database();
    store = await openStore({ databaseUrl, log: silent });
    const east = new EvidenceFixture(store, await store.ensureCluster('east'));
    west = new EvidenceFixture(store, await store.ensureCluster('west'));
    const fallen = await east.node('fallen');
    await east.state(fallen, { mode: 'Fallback', modeReason: 'StreamBroke' });
    await east.missed(fallen, 'cart-1');
    await east.missed(fallen, 'cart-2');
    const healthy = await east.node('healthy');
    await east.state(healthy, { mode: 'Generic' });
    await east.minutes(healthy, 1);
    const silentNode = await west.node('silent');
    await west.silentFor(silentNode, 600);
    const hostile = await west.node('hostile');
    await runText(
      store,
      `UPDATE store.node_state SET stream_reason = $2, stream_error = 'no' WHERE node_id = $1`,
      [hostile, FORMULA],
    );
  });
  afterAll(async () => {
    await store?.close();
    await server?.stop();
  });

  const report = (...args: string[]) => plegwatch(['report', '--database-url', databaseUrl, ...args]);
  const nodesOf = (table: string) =>
    table
      .trim()
      .split('\n')
      .map((line) => line.split(/ {3,}/).slice(0, 2));

  test('without --cluster it shows every cluster, each node with its cluster', async () => {
    const { code, stdout } = await report();
    expect(nodesOf(stdout)).toEqual([
      ['CLUSTER', 'NAME'],
      ['east', 'fallen'],
      ['east', 'healthy'],
      ['west', 'hostile'],
      ['west', 'silent'],
    ]);
    expect(code).toBe(0);
  });

  test('--cluster may be repeated or hold several names, and --node selects nodes of them', async () => {
    for (const clusters of [
      ['--cluster', 'east', '--cluster', 'west'],
      ['--cluster', 'west,east'],
    ]) {
      const { stdout } = await report(...clusters, '--node', 'silent', '--node', 'fallen');
      expect(nodesOf(stdout).slice(1)).toEqual([
        ['east', 'fallen'],
        ['west', 'silent'],
      ]);
    }
  });

  test('a reader of one cluster sees only that one', async () => {
    const reader = await server.role(databaseUrl, 'reader');
    await query(databaseUrl, `SELECT store.grant_reader($1, 'west')`, [new URL(reader).username]);
    const { stdout } = await plegwatch(['report', '--database-url', reader, '-o', 'json']);
    expect(JSON.parse(stdout).items.map((item: { metadata: object }) => item.metadata)).toEqual([
      expect.objectContaining({ name: 'hostile', annotations: { 'plegwatch.dev/cluster': 'west' } }),
      expect.objectContaining({ name: 'silent' }),
    ]);
    const { code, stderr } = await plegwatch(['report', '--database-url', reader, '--cluster', 'east']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('[NOT_FOUND]')]);
  });

  test('an unknown cluster or node is an error that names those that there are, the most alike first', async () => {
    const cluster = await report('--cluster', 'esat');
    expect(cluster.stderr).toContain('There is no cluster esat');
    expect(cluster.stderr).toMatch(/^Known: east, test, west\. {2}\[NOT_FOUND\]$/m);
    const node = await report('--node', 'healthier');
    expect(node.stderr).toMatch(/^Known: healthy, hostile, fallen, silent\./m);
    expect([cluster.code, node.code, node.stdout]).toEqual([1, 1, '']);
  });

  test('YAML has what JSON has, and every time is a text for readers of YAML 1.1 too', async () => {
    const [json, yaml] = await Promise.all([report('-o', 'json'), report('-o', 'yaml')]);
    const expected = withoutMoments(JSON.parse(json.stdout).items);
    expect(withoutMoments(parse(yaml.stdout).items)).toEqual(expected);
    expect(withoutMoments(parse(yaml.stdout, { version: '1.1' }).items)).toEqual(expected);
    // YAML 1.1 reads an unquoted `no` as false.
    expect(yaml.stdout).toContain('lastError: "no"');
  });

  test('CSV has a row for each node and a column for each field, and no text that a spreadsheet runs', async () => {
    const { stdout } = await report('-o', 'csv');
    const lines = stdout.split('\n');
    expect(lines).toHaveLength(6);
    expect(lines[0]).toMatch(/^cluster,node,creationTimestamp,observedAt,completeThrough,mode,/);
    expect(lines[1]).toMatch(/^east,fallen,.*,Fallback,/);
    expect(lines[3]).toContain(`,"'=HYPERLINK(""http://evil.example"";""x""),1",`);
    expect(stdout).not.toMatch(/(^|,)"?=/m);
  });

  test('a script sees by exit code 3 and a sentence which nodes have what --fail-on names', async () => {
    const missed = await report('--fail-on', 'missed', '-o', 'json');
    expect([missed.code, missed.stderr]).toEqual([3, 'plegwatch: missed: fallen\n']);
    expect(JSON.parse(missed.stdout).items).toHaveLength(4);
    const several = await report('--fail-on', 'fallback,unknown', '--fail-on', 'silent');
    expect(several.code).toBe(3);
    expect(several.stderr.split('\n')).toEqual([
      'plegwatch: fallback: fallen',
      'plegwatch: unknown: hostile, silent',
      'plegwatch: silent: silent',
      '',
    ]);
    const fine = await report('--fail-on', 'missed,fallback,silent', '--node', 'healthy');
    expect([fine.code, fine.stderr]).toEqual([0, '']);
  });

  test('a silent agent is called silent only while a controller says that everything which agents sent is stored, as in Kubernetes', async () => {
    const reasonOf = async () => {
      const { stdout } = await report('--node', 'silent', '-o', 'json');
      const [item] = JSON.parse(stdout).items;
      return item.status.conditions.find(({ type }: { type: string }) => type === 'AgentReporting').reason;
    };
    expect(await reasonOf()).toBe('IngestBehind');
    await west.caughtUp();
    expect(await reasonOf()).toBe('AgentSilent');
  });

  test('without --fail-on the exit code is 0 whatever the nodes have, and 2 for a wrong command line', async () => {
    expect((await report()).code).toBe(0);
    const { code, stderr } = await report('--fail-on', 'everything', '-o', 'xml', 'fallen');
    expect(code).toBe(2);
    expect(stderr.split('\n')).toEqual([
      'plegwatch: fallen: there is no such argument',
      '--output (PLEGWATCH_OUTPUT) must be one of table, wide, json, yaml, csv',
      '--fail-on (PLEGWATCH_FAIL_ON) must be one of missed, fallback, unknown, incomplete, silent',
      'See plegwatch report --help.  [SETTING_INVALID]',
      '',
    ]);
  });

  test('a cluster without a node has an empty table with a reason, and an empty list', async () => {
    const table = await report('--cluster', 'test');
    expect([table.code, table.stdout]).toEqual([0, 'No node of cluster test has reported yet.\n']);
    const list = await report('--cluster', 'test', '-o', 'yaml');
    expect(parse(list.stdout).items).toEqual([]);
  });
});

const MOMENTS: ReadonlySet<string> = new Set(['observedAt', 'lastTransitionTime']);

/** Without the moment of the answer, which is the time of a condition too where no report has been written yet. */
function withoutMoments(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMoments);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      MOMENTS.has(key) && typeof each === 'string' ? '' : withoutMoments(each),
    ]),
  );
}
