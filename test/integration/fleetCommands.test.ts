/*
 * The commands and the page with the URL of a fleet database: they answer as one database with the rows of all groups would, and name a group that does
 * not answer.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LocalPlegwatch, startPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { freePort } from '../../devtools/localServices/process.ts';
import { openFleet } from '../../src/store/fleet.ts';
import { openStore } from '../../src/store/store.ts';
import { CLI } from '../support/build.ts';
import { plegwatch } from '../support/commandLine.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { emptyFleet, federateGroups } from '../support/fleetDatabase.ts';
import { HangingFront } from '../support/hangingFront.ts';
import { needs } from '../support/needs.ts';
import { writeHistory } from '../support/storedHistory.ts';
import { EvidenceFixture } from '../support/storedRecords.ts';
import { passes } from '../support/waitFor.ts';

const DAY_MS = 86_400_000;
const midnight = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const ago = (days: number) => new Date(midnight - days * DAY_MS).toISOString();
const PERIOD = `--from ${ago(2)} --to ${ago(0)}`;
const PAGE_PERIOD = `from=${ago(2)}&to=${ago(0)}`;

/** The moments at which a command was run, today or after midnight, and what depends on them. */
const MOMENTS = new RegExp(
  `(${ago(0).slice(0, 10)}|${ago(-1).slice(0, 10)})T[0-9:.]+Z|"?(coveredSeconds|completeness24h)"?: ?[0-9.]+`,
  'g',
);
const unaged = (text: string) => text.replaceAll(MOMENTS, 'now');

const ODD_PASSWORD = 'p@s/s:%20 ?#ö';

interface Page extends LocalPlegwatch {
  readonly origin: string;
  /** The status and the JSON at a path below /api. */
  readonly get: (path: string) => Promise<{ readonly status: number; readonly text: string }>;
}

async function startPage(databaseUrl: string): Promise<Page> {
  const port = await freePort();
  const settings = { databaseUrl, pageAddress: `127.0.0.1:${port}`, mcp: 'true' };
  const started = await startPlegwatch({ cli: CLI, command: 'ui', settings });
  const origin = `http://127.0.0.1:${port}`;
  return Object.assign(started, {
    origin,
    get: async (path: string) => {
      const response = await fetch(`${origin}/api/${path}`);
      return { status: response.status, text: await response.text() };
    },
  });
}

/** At the URL of a database, or at a page of it. */
async function withMcp<T>(at: string | Page, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(
    typeof at === 'string'
      ? new StdioClientTransport({
          ...{ command: process.execPath, args: [CLI, 'mcp'], stderr: 'ignore' },
          env: { PATH: process.env['PATH'] ?? '', PLEGWATCH_DATABASE_URL: at },
        })
      : new StreamableHTTPClientTransport(new URL('/mcp', at.origin)),
  );
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** The rows of the files that an export wrote, as in any order. */
async function exported(url: string, args: readonly string[]): Promise<Record<string, readonly string[]>> {
  const dir = mkdtempSync(join(tmpdir(), 'plegwatch-fleet-export-'));
  try {
    expect(await run(url, ['export', ...args, '--dir', dir])).toMatchObject({ code: 0, stderr: '' });
    const linesOf = (file: string) =>
      gunzipSync(readFileSync(join(dir, file)))
        .toString()
        .split('\n');
    return Object.fromEntries(
      readdirSync(dir).map((file) => {
        const [header = '', ...rows] = linesOf(file);
        return [file, [header, ...rows.sort()]];
      }),
    );
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const run = (url: string, args: readonly string[]) => plegwatch([...args, '--database-url', url]);

async function printed(url: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(url, args);
  // An audit of a history that no agent wrote finds differences.
  expect([args, code, stderr]).toEqual([args, args[0] === 'audit' ? 3 : 0, '']);
  return stdout;
}

needs('postgres')('with the URL of a fleet database whose groups have the rows of one database', () => {
  let server: TestServer;
  let whole: string;
  let fleet: string;
  let finding: string;
  let pages: readonly [Page, Page];

  beforeAll(async () => {
    server = await startServer();
    const database = await server.database();
    await writeHistory(database, { nodes: 6, days: 2, lives: 20, step: 600 });
    await query(database, "DELETE FROM store.cluster WHERE name = 'test'");
    whole = await server.reader(database);
    fleet = await emptyFleet(server);
    const groups: Record<string, string> = {};
    // A reader of one cluster has no rows of another one: as if each had a database of its own.
    for (const cluster of ['east', 'west']) {
      const url = await server.role(database, cluster);
      await query(database, 'SELECT store.grant_reader($1, $2)', [new URL(url).username, cluster]);
      groups[cluster] = url;
    }
    await federateGroups(fleet, groups);
    const [found] = await query<{ id: string }>(
      whole,
      "SELECT finding_id AS id FROM plegwatch.findings WHERE kind = 'missed' AND cluster = 'west' ORDER BY finding_id LIMIT 1",
    );
    finding = found?.id ?? '';
    pages = [await startPage(fleet), await startPage(whole)];
  });
  afterAll(async () => {
    for (const page of pages ?? []) await page.stop();
    await server?.stop();
  });

  it.each([
    'report -o json',
    'report -o csv',
    'report --cluster west -o yaml',
    'report --node east-003 -o json',
    'readiness',
    'readiness --cluster west -o json',
    `fallbacks ${PERIOD}`,
    'find 00',
    'find job -o json',
    'finding FINDING',
    'audit --cluster west --node west-001',
    'finding FINDING --cluster west -o json',
    `timeline west-001 ${PERIOD}`,
    `timeline west-001 ${PERIOD} -o json`,
    `timeline west-001 ${PERIOD} --html -`,
    'finding FINDING --html -',
    `timeline east-002 --cluster east ${PERIOD} --every`,
  ])('%s prints what that database prints', async (line) => {
    const args = line.replace('FINDING', finding).split(' ');
    // Ages are counted until the moment at which a command is run.
    await passes(async () =>
      expect(unaged(await printed(fleet, args))).toBe(unaged(await printed(whole, args))),
    );
  });

  it.each(['gaps', 'findings', 'relist_hours'])(
    'an export of %s has the rows of that database',
    async (view) => {
      const args = [view, ...PERIOD.split(' ')];
      const files = await exported(fleet, args);
      expect(files).toEqual(await exported(whole, args));
      expect(Object.keys(files)).toHaveLength(2);
      expect(Object.values(files).flat().length).toBeGreaterThan(5);
    },
  );

  it('a lake has the days of all groups, each with as many rows as that database has', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'plegwatch-fleet-lake-'));
    const args = ['export', 'findings', '--format', 'parquet', ...PERIOD.split(' '), '--dir'];
    const linesOf = async (url: string, name: string) =>
      (await printed(url, [...args, join(dir, name)])).trim().split('\n').sort();
    const lines = await linesOf(fleet, 'fleet');
    expect(lines).toEqual(await linesOf(whole, 'whole'));
    expect(lines.map((line) => /cluster=(\w+).*: [1-9]\d* rows/.exec(line)?.[1])).toEqual([
      ...['east', 'east', 'west', 'west'],
    ]);
    rmSync(dir, { recursive: true });
  });

  it.each([
    'fleet',
    'unobserved',
    `timeline?cluster=east&node=east-001&${PAGE_PERIOD}`,
    `fallbacks?${PAGE_PERIOD}`,
    'finding?id=FINDING',
    'finding?id=FINDING&cluster=west',
    `versions?${PAGE_PERIOD}`,
    'hours?days=2',
    'change',
    'search?q=job-0',
    `pool?by=cluster&cluster=west&${PAGE_PERIOD}`,
    `pool?by=pool&pool=general&${PAGE_PERIOD}`,
    `pool?by=version&runtime=containerd&runtimeVersion=2.0.5&kubelet=v1.36.2&${PAGE_PERIOD}`,
    `neighbours?cluster=east&node=east-003&${PAGE_PERIOD}`,
    'pool?by=cluster&cluster=nowhere',
    'timeline?cluster=nowhere&node=east-001',
  ])('the page answers %s as with that database', async (asked) => {
    const path = asked.replace('FINDING', finding);
    await passes(async () => {
      const [ofFleet, ofWhole] = await Promise.all(pages.map((page) => page.get(path)));
      expect(unaged(ofFleet?.text ?? '')).toBe(unaged(ofWhole?.text ?? ''));
      expect(ofFleet?.status).toBe(ofWhole?.status);
    });
  });

  it.each([
    ['report', { node: 'west-003' }],
    ['find', { text: 'east-00' }],
    ['readiness', {}],
    ['question', { name: 'How does the rate of misses differ by runtime and kubelet version?' }],
    [
      'question',
      { name: 'How does the rate of misses differ by runtime and kubelet version?', cluster: 'west' },
    ],
  ])('the tool %s of mcp answers %o as with that database', async (name, args) => {
    const answer = (at: string | Page) => withMcp(at, (client) => client.callTool({ name, arguments: args }));
    await passes(async () => {
      const ofWhole = await answer(whole);
      for (const ofFleet of [await answer(fleet), await answer(pages[0])]) {
        expect(ofFleet.isError ?? false).toBe(false);
        expect(unaged(JSON.stringify(ofFleet.structuredContent))).toBe(
          unaged(JSON.stringify(ofWhole.structuredContent)),
        );
      }
    });
  });
});

needs('postgres')('with the URL of a fleet database, one of whose groups does not answer', () => {
  let server: TestServer;
  let fleet: string;
  let west: string;
  let reader: string;
  let page: Page;
  let finding: string;

  /** A database of a group: of each cluster one node, which has the cluster's name. Ids begin with 1 in each. */
  async function group(...clusters: readonly string[]): Promise<string> {
    const databaseUrl = await server.database();
    const store = await openStore({ databaseUrl, log: silent });
    for (const cluster of clusters) {
      const fixture = new EvidenceFixture(store, await store.ensureCluster(cluster));
      const id = await fixture.node(cluster);
      await fixture.minutes(id, 10);
      finding = await fixture.missed(id, `${cluster}-pod`);
    }
    await store.close();
    // As if a reader of a cluster had been named where nothing of it is.
    await query(
      databaseUrl,
      "INSERT INTO store.cluster (name) VALUES ('paris'), ('lima') ON CONFLICT DO NOTHING",
    );
    return databaseUrl;
  }
  const superuser = (statement: string) => query(server.part.url, statement);
  const nameOf = (url: string) => new URL(url).pathname.slice(1);

  async function whileAway<T>(databaseUrl: string, work: () => Promise<T>): Promise<T> {
    const name = nameOf(databaseUrl);
    await superuser(`ALTER DATABASE ${name} CONNECTION LIMIT 0`);
    await superuser(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
    try {
      return await work();
    } finally {
      await superuser(`ALTER DATABASE ${name} CONNECTION LIMIT -1`);
    }
  }
  const whileWestIsAway = <T>(work: () => Promise<T>) => whileAway(west, work);

  beforeAll(async () => {
    server = await startServer();
    const east = await group('paris', 'rome');
    west = await group('lima');
    fleet = await emptyFleet(server);
    const ofWest = new URL(await server.reader(west));
    await superuser(`ALTER ROLE ${ofWest.username} PASSWORD '${ODD_PASSWORD}'`);
    ofWest.password = encodeURIComponent(ODD_PASSWORD);
    await federateGroups(fleet, { east: await server.reader(east), west: ofWest.href });
    reader = await server.role(fleet, 'stranger');
    page = await startPage(fleet);
  });
  afterAll(async () => {
    await page?.stop();
    await server?.stop();
  });

  const nodesIn = (text: string) => JSON.parse(text).nodes.map(({ node }: { node: string }) => node);

  it('each command that is about all groups says which one it was, and writes nothing', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'plegwatch-fleet-export-'));
    await whileWestIsAway(async () => {
      for (const args of [
        ['report'],
        ['report', '--cluster', 'lima'],
        ['find', 'ri'],
        ['finding', finding],
        ['timeline', 'paris'],
        ['readiness'],
        ['fallbacks'],
        ['export', 'findings', '--dir', dir],
      ]) {
        const { code, stdout, stderr } = await run(fleet, args);
        expect([args, code, stdout]).toEqual([args, 1, '']);
        expect(stderr).toMatch(
          /Group west: Postgres at postgres:\/\/reader_\d+:\*\*\*@\S+:\d+\/t\d+\?\S* .*too many connections.*\[DATABASE_\w+\]/s,
        );
      }
    });
    expect(readdirSync(dir)).toEqual([]);
    rmSync(dir, { recursive: true });
  });

  it('a command that is about clusters of the others answers', async () => {
    await whileWestIsAway(async () => {
      for (const args of [
        ['report', '--cluster', 'rome', '-o', 'csv'],
        ['timeline', 'paris', '--cluster', 'paris'],
        ['find', 'paris', '--cluster', 'paris,rome'],
      ])
        expect(await printed(fleet, args)).toContain(args[2] === 'rome' ? 'rome' : 'paris');
    });
    expect(await printed(fleet, ['report', '-o', 'csv'])).toMatch(/lima.*paris.*rome/s);
  });

  it('a lake of clusters has them from the groups that have their nodes', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'plegwatch-fleet-lake-'));
    const args = ['export', 'findings', '--format', 'parquet', '--dir', dir, '--cluster', 'paris,lima'];
    expect(await printed(fleet, args)).toMatch(/cluster=paris.*\n.*cluster=lima/);
    rmSync(dir, { recursive: true });
  });

  it('the page says which one it was where it is concerned, and shows the others and all again', async () => {
    expect(nodesIn((await page.get('fleet')).text)).toEqual(['lima', 'paris', 'rome']);
    await whileWestIsAway(async () => {
      await passes(async () => expect((await page.get('fleet')).status).toBe(503));
      for (const path of ['fleet', 'unobserved', 'search?q=paris', 'timeline?cluster=lima&node=lima'])
        expect([path, JSON.parse((await page.get(path)).text)]).toMatchObject([
          path,
          { error: { code: 'DATABASE_AWAY', message: expect.stringContaining('Postgres of group west') } },
        ]);
      expect((await page.get('timeline?cluster=paris&node=paris')).status).toBe(200);
    });
    await passes(async () =>
      expect(nodesIn((await page.get('fleet')).text)).toEqual(['lima', 'paris', 'rome']),
    );
  });

  it('the page asks a group that hangs once, names it until it answers, and answers about the others meanwhile', async () => {
    const { hostname, port } = new URL(west);
    const front = await HangingFront.to(hostname, Number(port));
    const own = await emptyFleet(server);
    const ofWest = new URL(await server.reader(west));
    ofWest.host = `127.0.0.1:${front.port}`;
    await federateGroups(own, { west: ofWest.href, other: await server.reader(await group('oslo')) });
    const shown = await startPage(own);
    try {
      expect(nodesIn((await shown.get('fleet')).text)).toEqual(['lima', 'oslo']);
      front.hang();
      await passes(async () => expect((await shown.get('fleet')).status).toBe(503));
      const before = front.held;
      const asked = Array.from({ length: 10 }, (_, n) => `search?q=pod-${n}`);
      for (const path of asked) {
        expect(JSON.parse((await shown.get(path)).text)).toMatchObject({
          error: { code: 'DATABASE_AWAY', message: 'Postgres of group west does not answer.' },
        });
        expect((await shown.get('timeline?cluster=oslo&node=oslo')).status).toBe(200);
      }
      expect(front.held - before).toBeLessThan(asked.length);
      front.goOn();
      await passes(async () => expect(nodesIn((await shown.get('fleet')).text)).toEqual(['lima', 'oslo']));
    } finally {
      front.stop();
      await shown.stop();
    }
  });

  it('a group that moved is asked at its new place while a question waits at the old one, and one that got a cluster keeps its connections', async () => {
    const [databaseUrl, own] = [await group('nice'), await emptyFleet(server)];
    const user = await server.reader(databaseUrl);
    await federateGroups(own, { moving: user });
    const store = openFleet({ databaseUrl: own, log: silent });
    const [begun, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    try {
      const [there] = await store.parts();
      expect(there?.mayHave('added')).toBe(false);
      const asked = there?.transaction(() => {
        begun.resolve();
        return answered.promise;
      });
      await begun.promise;
      await query(
        databaseUrl,
        `WITH c AS (INSERT INTO store.cluster (name) VALUES ('added') RETURNING cluster_id)
         INSERT INTO store.node (cluster_id, name, last_seen) SELECT cluster_id, 'added', now() FROM c`,
      );
      await federateGroups(own, { moving: user });
      expect((await store.parts())[0]).toBe(there);
      expect(there?.mayHave('added')).toBe(true);
      await federateGroups(own, { moving: await server.reader(databaseUrl) });
      expect(await store.parts()).not.toContain(there);
      answered.resolve();
      await asked;
    } finally {
      answered.resolve();
      await store.close();
    }
  });

  it('a program that asks by mcp is told which one it was, also by the questions that the fleet database answers', async () => {
    const isTold = (at: string | Page) =>
      withMcp(at, async (client) => {
        for (const [name, args] of [
          ['find', { text: 'paris' }],
          ['question', { name: 'How does the rate of misses differ by runtime and kubelet version?' }],
        ] as const) {
          const { isError, structuredContent } = await client.callTool({ name, arguments: args });
          expect([name, isError, structuredContent]).toMatchObject([
            name,
            true,
            { error: { message: expect.stringMatching(/group west/i) } },
          ]);
        }
      });
    await whileWestIsAway(async () => {
      for (const at of [fleet, page]) await isTold(at);
    });
  });

  it('a role without users in the groups is refused, and a cluster that no group has is not found', async () => {
    const stranger = await run(reader, ['report']);
    expect([stranger.code, stranger.stdout]).toEqual([1, '']);
    expect(stranger.stderr).toMatch(/Group east: .*no user there.*\[DATABASE_REFUSED\]/s);
    const unknown = await run(fleet, ['report', '--cluster', 'oslo']);
    expect(unknown.stderr).toMatch(/no cluster oslo.*Known: lima, paris, rome.*\[NOT_FOUND\]/s);
  });

  it('a group that answers and cannot be used is not called away, and a cure for its schema names its URL', async () => {
    const number = 'SELECT max(number) FROM store.migration';
    const [applied] = await query<{ row: object }>(
      west,
      `DELETE FROM store.migration m WHERE number = (${number}) RETURNING to_json(m) AS row`,
    );
    const shown = await startPage(fleet);
    try {
      expect((await run(fleet, ['report'])).stderr).toMatch(
        /Group west: .*\nRun plegwatch migrate as the owner of the database in the URL of group west for plegwatch federate\. /,
      );
      expect(JSON.parse((await shown.get('fleet')).text)).toMatchObject({
        error: { message: 'Postgres of group west cannot be used.', cure: expect.stringContaining('log') },
      });
    } finally {
      await shown.stop();
      await query(
        west,
        'INSERT INTO store.migration SELECT (json_populate_record(NULL::store.migration, $1)).*',
        [JSON.stringify(applied?.row)],
      );
    }
  });

  it('a view that the fleet lacks is one to make it with, by federate', async () => {
    const own = await emptyFleet(server);
    await federateGroups(own, {
      west: await server.reader(west),
      twin: await server.reader(await group('oslo')),
    });
    await query(own, 'DROP VIEW plegwatch.findings CASCADE');
    await withMcp(own, async (client) => {
      const name = 'Which findings resolved late, and how late is late?';
      const { structuredContent } = await client.callTool({ name: 'question', arguments: { name } });
      expect(structuredContent).toMatchObject({
        error: {
          code: 'DATABASE_NOT_MIGRATED',
          message: expect.stringContaining('plegwatch.findings'),
          cure: expect.stringMatching(/then plegwatch federate/),
        },
      });
    });
  });

  /** The checks of a fleet database that are not ok, by their names. */
  async function doctorOf(url: string) {
    const { code, stdout } = await run(url, ['doctor', '-o', 'json']);
    const { checks } = JSON.parse(stdout);
    type Check = Readonly<Record<'name' | 'status' | 'message' | 'cure' | 'code', string>>;
    const problems = checks.filter(({ status }: Check) => status !== 'ok');
    return { code, names: checks.map(({ name }: Check) => name), problems };
  }

  it('doctor checks every group, and whether the server of the fleet reaches it', async () => {
    expect(await doctorOf(fleet)).toEqual({
      code: 0,
      names: ['fleet', 'group east', 'group west', 'fleet server'],
      problems: [],
    });
    const away = await whileWestIsAway(() => doctorOf(fleet));
    expect(away).toMatchObject({
      code: 1,
      problems: [{ name: 'group west', status: 'failed', message: expect.stringContaining('Group west') }],
    });
    // Only the server of the fleet connects to another place.
    await query(fleet, "ALTER SERVER plegwatch_west OPTIONS (SET dbname 'nowhere')");
    const [moved] = (await doctorOf(fleet)).problems;
    expect(moved).toMatchObject({ name: 'group west', code: 'DATABASE_REFUSED' });
    await query(fleet, `ALTER SERVER plegwatch_west OPTIONS (SET dbname '${nameOf(west)}')`);
  });

  it('doctor warns of what makes answers smaller, counts twice, or refuses a reader', async () => {
    const twin = await group('lima');
    const own = await emptyFleet(server);
    await federateGroups(own, { west: await server.reader(west), twin: await server.reader(twin) });
    const half = new URL(await server.role(own, 'half')).username;
    await query(
      own,
      `CREATE USER MAPPING FOR ${half} SERVER plegwatch_west OPTIONS (user 'a', password 'b')`,
    );
    await query(twin, 'CREATE VIEW plegwatch.added AS SELECT 1 AS n');
    await query(twin, 'DROP VIEW plegwatch.short_lives');
    const { code, problems } = await doctorOf(own);
    expect(code).toBe(0);
    expect(problems).toMatchObject([
      { name: 'fleet clusters', message: expect.stringContaining('twin and west have the cluster lima') },
      {
        name: 'fleet views',
        message: expect.stringMatching(/changed since it was made: short_lives\.cluster/),
      },
      { name: 'fleet views', message: expect.stringMatching(/do not share .*added\.n/) },
      {
        name: 'fleet readers',
        message: expect.stringContaining(`${half} is refused: it has no user in group twin`),
      },
    ]);
  });

  it('a command about a cluster that two groups have answers with the rows of both, or names them if it can have one only', async () => {
    const [left, right] = [await group('paris', 'lyon'), await group('paris')];
    await query(right, "UPDATE store.node SET name = 'paris-2'");
    const own = await emptyFleet(server);
    await federateGroups(own, { left: await server.reader(left), right: await server.reader(right) });
    for (const args of [
      ['report', '--cluster', 'paris', '-o', 'csv'],
      ['find', 'paris', '--cluster', 'paris'],
    ])
      expect([args, new Set((await printed(own, args)).match(/paris-2|paris/g))]).toEqual([
        args,
        new Set(['paris', 'paris-2']),
      ]);
    expect(await printed(own, ['timeline', 'paris-2', '--cluster', 'paris'])).toContain('paris-2');
    const dir = mkdtempSync(join(tmpdir(), 'plegwatch-fleet-lake-'));
    const lake = await run(own, ['export', '--format', 'parquet', '--dir', dir]);
    expect([lake.code, lake.stderr]).toEqual([
      2,
      expect.stringMatching(
        /groups left and right have the cluster paris\.\n.*--database-url.*SETTING_INVALID/,
      ),
    ]);
    expect(readdirSync(dir)).toEqual([]);
    rmSync(dir, { recursive: true });
    await query(right, "UPDATE store.node SET name = 'paris'");
    const sentence = 'The groups left and right have a node paris of the cluster paris.';
    const { code, stderr } = await run(own, ['timeline', 'paris', '--cluster', 'paris']);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(`${sentence}\n.*--database-url.*SETTING_INVALID`),
    ]);
    const asked = { name: 'timeline', arguments: { node: 'paris' } };
    expect(JSON.stringify(await withMcp(own, (client) => client.callTool(asked)))).toContain(sentence);
  });

  it('a group that does not answer is named where it had the cluster that is asked for, as another group has', async () => {
    const [left, right] = [await group('paris', 'lyon'), await group('paris')];
    const own = await emptyFleet(server);
    await federateGroups(own, { left: await server.reader(left), right: await server.reader(right) });
    const shown = await startPage(own);
    try {
      await whileAway(right, async () => {
        for (const args of [
          ['report', '--cluster', 'paris'],
          ['timeline', 'paris', '--cluster', 'paris'],
          ['report', '--cluster', 'lyon,paris'],
        ]) {
          const { code, stdout, stderr } = await run(own, args);
          expect([args, code, stdout, stderr]).toEqual([args, 1, '', expect.stringContaining('Group right')]);
        }
        expect(await printed(own, ['report', '--cluster', 'lyon', '-o', 'csv'])).toContain('lyon');
        expect(await shown.get('timeline?cluster=paris&node=paris')).toMatchObject({
          status: 503,
          text: expect.stringContaining('Postgres of group right'),
        });
        expect((await shown.get('timeline?cluster=lyon&node=lyon')).status).toBe(200);
      });
      const [comment] = await query(own, "SELECT obj_description('plegwatch_right'::regnamespace) AS text");
      expect(comment?.['text']).not.toContain('paris');
    } finally {
      await shown.stop();
    }
  });

  it('the page and doctor name a group in which the role of the fleet was renamed', async () => {
    const own = await emptyFleet(server);
    const renamed = new URL(await server.reader(await group('nice')));
    await federateGroups(own, { west: await server.reader(west), renamed: renamed.href });
    const shown = await startPage(own);
    try {
      await superuser(`ALTER ROLE ${renamed.username} RENAME TO renamed_reader`);
      await query(
        own,
        "ALTER USER MAPPING FOR CURRENT_USER SERVER plegwatch_renamed OPTIONS (SET user 'renamed_reader')",
      );
      expect(JSON.parse((await shown.get('fleet')).text)).toMatchObject({
        error: { message: 'Postgres of group renamed cannot be used.', cure: expect.stringContaining('log') },
      });
    } finally {
      await shown.stop();
    }
    expect((await doctorOf(own)).problems).toContainEqual(
      expect.objectContaining({
        name: 'group renamed',
        status: 'failed',
        message: expect.stringContaining('role renamed_reader may read no cluster'),
        cure: expect.stringContaining('grant the role'),
      }),
    );
  });

  it('the page names the groups that have one cluster, and asks a group that is added at once', async () => {
    const twin = await group('paris');
    const own = await emptyFleet(server);
    const groups = { west: await server.reader(west), twin: await server.reader(twin) };
    await federateGroups(own, { west: groups.west });
    const shown = await startPage(own);
    try {
      expect(nodesIn((await shown.get('fleet')).text)).toEqual(['lima']);
      await federateGroups(own, groups);
      await passes(async () => expect(nodesIn((await shown.get('fleet')).text)).toEqual(['lima', 'paris']));
      const again = await server.reader(twin);
      await federateGroups(own, { ...groups, again });
      expect(await shown.get('timeline?cluster=paris&node=paris')).toMatchObject({
        status: 409,
        text: expect.stringContaining('The groups again and twin have the cluster paris.'),
      });
    } finally {
      await shown.stop();
    }
  });
});
