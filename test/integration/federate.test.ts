/*
 * The fleet database: several groups of clusters, each with a database of its own, read as one. test/integration/questions.test.ts asks it every
 * documented question about many nodes.
 */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { migrate } from '../../src/store/migrate.ts';
import { listPublished } from '../../src/store/statements.ts';
import { openStore } from '../../src/store/store.ts';
import { silent, startServer, type TestServer } from '../support/database.ts';
import { emptyFleet, federateGroups } from '../support/fleetDatabase.ts';
import { needs } from '../support/needs.ts';
import { queryAnew as query } from '../support/query.ts';
import { EvidenceFixture } from '../support/storedRecords.ts';

needs('postgres')('a fleet database', () => {
  let server: TestServer;
  let east: string;
  let west: string;
  let readers: { readonly east: string; readonly west: string };
  let fleet: string;

  /** A database of a group: of each cluster one node, which has the cluster's name. */
  async function group(...clusters: readonly string[]): Promise<string> {
    const databaseUrl = await server.database();
    const store = await openStore({ databaseUrl, log: silent });
    for (const cluster of clusters)
      await new EvidenceFixture(store, await store.ensureCluster(cluster)).node(cluster);
    await store.close();
    return databaseUrl;
  }
  /** A role of a group that reads one of its clusters. */
  async function readerOf(databaseUrl: string, cluster: string): Promise<string> {
    const url = await server.role(databaseUrl, cluster);
    await query(databaseUrl, 'SELECT store.grant_reader($1, $2)', [new URL(url).username, cluster]);
    return url;
  }
  const superuser = (statement: string) => query(server.part.url, statement);
  const nameOf = (url: string) => new URL(url).pathname.slice(1);
  const userOf = (url: string) => new URL(url).username;
  const nodesOf = async (url: string) =>
    (await query(url, 'SELECT node FROM plegwatch.nodes ORDER BY node')).map(({ node }) => node);

  beforeAll(async () => {
    server = await startServer();
    east = await group('paris', 'rome');
    west = await group('lima');
    readers = { east: await server.reader(east), west: await server.reader(west) };
    fleet = await emptyFleet(server);
    await federateGroups(fleet, readers);
  });
  afterAll(async () => {
    await server?.stop();
  });

  it('has every view and function of its groups, with their columns, arguments and defaults', async () => {
    const published = await query(fleet, listPublished.text);
    expect(published.filter(({ name }) => name !== 'clusters')).toEqual(
      await query(east, listPublished.text),
    );
    expect(published.length).toBeGreaterThan(20);
  });

  it('names the clusters of each group, so that one that is missing is seen', async () => {
    const rows = await query(
      fleet,
      'SELECT group_name, cluster, nodes::int4 FROM plegwatch.clusters ORDER BY cluster',
    );
    expect(rows).toEqual([
      { group_name: 'west', cluster: 'lima', nodes: 1 },
      { group_name: 'east', cluster: 'paris', nodes: 1 },
      { group_name: 'east', cluster: 'rome', nodes: 1 },
    ]);
  });

  it('is an error to every question while a group does not answer, never an answer without it', async () => {
    await superuser(`ALTER DATABASE ${nameOf(west)} ALLOW_CONNECTIONS false`);
    try {
      for (const asked of [
        'SELECT * FROM plegwatch.nodes',
        'SELECT count(*) FROM plegwatch.findings',
        'SELECT * FROM plegwatch.miss_rate()',
        "SELECT * FROM plegwatch.timeline('paris', 'paris', now() - interval '1 hour')",
        'SELECT * FROM plegwatch.clusters',
      ])
        await expect(query(fleet, asked), asked).rejects.toThrow(
          /could not (establish connection|connect to server)/,
        );
      await expect(federateGroups(fleet, readers)).rejects.toMatchObject({ code: 'DATABASE_REFUSED' });
    } finally {
      await superuser(`ALTER DATABASE ${nameOf(west)} ALLOW_CONNECTIONS true`);
    }
    expect(await nodesOf(fleet)).toEqual(['lima', 'paris', 'rome']);
  });

  it('shows a reader what its users in the groups may read, also after the fleet was set up again, and refuses a role without users there', async () => {
    const [reader, stranger] = [await server.role(fleet, 'reader'), await server.role(fleet, 'stranger')];
    const users = { east: await readerOf(east, 'rome'), west: await readerOf(west, 'nowhere') };
    await federateGroups(fleet, users, userOf(reader));
    expect(await nodesOf(reader)).toEqual(['rome']);
    await federateGroups(fleet, readers);
    expect(await nodesOf(reader)).toEqual(['rome']);
    for (const asked of ['SELECT * FROM plegwatch.nodes', 'SELECT * FROM plegwatch.miss_rate()'])
      await expect(query(stranger, asked)).rejects.toThrow(/user mapping not found/);
    await expect(query(reader, 'DROP VIEW plegwatch.nodes')).rejects.toThrow(/must be owner/);
  });

  it('is an error to a user of a group that was renamed there, and federate names the group, with and without --reader', async () => {
    const [renamed, reader] = [await readerOf(west, 'lima'), userOf(await server.role(fleet, 'reader'))];
    const url = new URL(renamed);
    url.username = `${url.username}_new`;
    await superuser(`ALTER ROLE ${userOf(renamed)} RENAME TO ${url.username}`);
    const groups = { east: readers.east, west: url.href };
    const isRefused = {
      code: 'DATABASE_REFUSED',
      message: expect.stringMatching(`groups-.*/west.* role ${url.username} may read no cluster`),
    };
    await expect(federateGroups(fleet, groups)).rejects.toMatchObject(isRefused);
    await expect(federateGroups(fleet, groups, reader)).rejects.toMatchObject(isRefused);
    await query(
      fleet,
      `ALTER USER MAPPING FOR CURRENT_USER SERVER plegwatch_west OPTIONS (SET user '${url.username}', SET password '${url.password}')`,
    );
    try {
      for (const asked of ['SELECT * FROM plegwatch.nodes', 'SELECT * FROM plegwatch.miss_rate()'])
        await expect(query(fleet, asked), asked).rejects.toThrow(/may read no cluster/);
    } finally {
      await federateGroups(fleet, readers);
    }
  });

  it('has what groups of different versions share, and calls functions of them with every argument', async () => {
    const older = await group('oslo');
    await query(older, 'DROP VIEW plegwatch.short_lives');
    await query(older, 'DROP VIEW plegwatch.rejected');
    await query(older, "CREATE VIEW plegwatch.rejected AS SELECT now() AS at, 'oslo'::text AS cluster");
    const own = await emptyFleet(server);
    await federateGroups(own, { ...readers, older: await server.reader(older) });
    expect(await nodesOf(own)).toEqual(['lima', 'oslo', 'paris', 'rome']);
    expect(await query(own, 'SELECT * FROM plegwatch.rejected')).toEqual([
      { at: expect.any(Date), cluster: 'oslo' },
    ]);
    await expect(query(own, 'SELECT FROM plegwatch.short_lives')).rejects.toThrow(/does not exist/);
    // Times reach the groups whatever style the session writes them in.
    const oddly = `${own}?options=${encodeURIComponent('-c DateStyle=SQL,DMY')}`;
    const timeline =
      "SELECT kind, what FROM plegwatch.timeline('oslo', 'oslo', now() - interval '2 hours', now())";
    expect(await query(oddly, timeline)).toContainEqual({ kind: 'agent', what: 'started' });
    // A group that is left out is gone, and one that is added is there.
    await federateGroups(own, { east: readers.east });
    expect(await nodesOf(own)).toEqual(['paris', 'rome']);
    await federateGroups(own, readers);
    expect(await nodesOf(own)).toEqual(['lima', 'paris', 'rome']);
  });

  it('calls a function for the columns that all groups have, with every argument or null', async () => {
    const [older, newer] = [await group('bern'), await group('nice')];
    for (const [url, columns, values] of [
      [older, 'n int4', 'n'],
      [newer, 'added text, n int4', "'new', n"],
    ]) {
      await query(String(url), `CREATE TYPE store.counted AS (${columns})`);
      await query(
        String(url),
        `CREATE FUNCTION plegwatch.counted(n int4 DEFAULT 7) RETURNS SETOF store.counted LANGUAGE sql AS 'SELECT ${String(values).replaceAll("'", "''")}'`,
      );
      // A group may write intervals in another style.
      await superuser(`ALTER DATABASE ${nameOf(newer)} SET intervalstyle = 'iso_8601'`);
    }
    const own = await emptyFleet(server);
    await federateGroups(own, { older: await server.reader(older), newer: await server.reader(newer) });
    const twice = (n: number | null) => [{ n }, { n }];
    expect(await query(own, 'SELECT * FROM plegwatch.counted()')).toEqual(twice(7));
    expect(await query(own, 'SELECT * FROM plegwatch.counted(NULL)')).toEqual(twice(null));
    expect(await query(own, 'SELECT * FROM plegwatch.miss_rate(by_label => NULL)')).toEqual([]);
  });

  it('is made by nothing that a group writes: its settings, the names and types of its columns, and its defaults', async () => {
    const hostile = await group('oslo');
    await query(hostile, 'CREATE SCHEMA evil');
    for (const [name, value] of [
      ['format_type(oid, int4)', "'int4); CREATE TABLE public.owned (x int4'"],
      ['quote_ident(text)', "'x int4); CREATE TABLE public.owned (x'"],
    ])
      await query(hostile, `CREATE FUNCTION evil.${name} RETURNS text LANGUAGE sql RETURN ${value}`);
    await superuser(`ALTER DATABASE ${nameOf(hostile)} SET search_path = evil, pg_catalog`);
    await query(
      hostile,
      'CREATE VIEW plegwatch.named AS SELECT 1 AS "x int4); CREATE TABLE public.owned (x", 2 AS y',
    );
    await query(
      hostile,
      `CREATE FUNCTION plegwatch.baited(q xml DEFAULT query_to_xml('CREATE TABLE public.owned ()', true, true, ''))
       RETURNS SETOF plegwatch.named LANGUAGE sql AS 'SELECT 1, 2'`,
    );
    const own = await emptyFleet(server);
    await federateGroups(own, { hostile: await server.reader(hostile) });
    expect(await nodesOf(own)).toEqual(['oslo']);
    expect(await query(own, 'SELECT * FROM plegwatch.named')).toEqual([{ y: 2 }]);
    await expect(query(own, 'SELECT * FROM plegwatch.baited()')).rejects.toThrow(/does not exist/);
    expect(await query(own, "SELECT to_regclass('public.owned') AS owned")).toEqual([{ owned: null }]);
  });

  it('leaves what others made: schemas, servers, and views that read its own', async () => {
    const shop = await emptyFleet(server);
    await query(shop, 'CREATE SCHEMA store CREATE TABLE orders (n int4)');
    await expect(federateGroups(shop, readers)).rejects.toMatchObject({
      code: 'SETTING_INVALID',
      message: expect.stringContaining('did not make'),
    });
    expect(await query(shop, 'SELECT FROM store.orders')).toEqual([]);

    const own = await emptyFleet(server);
    const asSuperuser = new URL(server.part.url);
    asSuperuser.pathname = `/${nameOf(own)}`;
    await query(asSuperuser.href, 'CREATE SERVER plegwatch_archive FOREIGN DATA WRAPPER postgres_fdw');
    await federateGroups(own, readers);
    await query(own, 'CREATE SCHEMA mine CREATE VIEW names AS SELECT node FROM plegwatch.nodes');
    await query(own, 'CREATE VIEW mine.rates AS SELECT missed FROM plegwatch.miss_rate()');
    await query(
      own,
      'CREATE FUNCTION mine.nodes() RETURNS int8 LANGUAGE sql RETURN (SELECT count(*) FROM plegwatch.nodes)',
    );
    await expect(federateGroups(own, readers)).rejects.toMatchObject({
      code: 'DATABASE_REFUSED',
      message: expect.stringContaining('function mine.nodes(), view mine.names, view mine.rates'),
    });
    expect(await query(own, 'SELECT * FROM mine.names')).toHaveLength(3);
    await query(own, 'DROP SCHEMA mine CASCADE');
    await federateGroups(own, readers);
    expect(
      await query(own, "SELECT FROM pg_foreign_server WHERE srvname = 'plegwatch_archive'"),
    ).toHaveLength(1);
  });

  it('is made by several runs at the same time as by one', async () => {
    const own = await emptyFleet(server);
    await Promise.all([1, 2, 3].map(() => federateGroups(own, readers)));
    await Promise.all([1, 2, 3].map(() => federateGroups(own, readers)));
    expect(await nodesOf(own)).toEqual(['lima', 'paris', 'rome']);
  });

  it('no lock that a reader can take holds up a run, but for that on a view, and who has this one is named', async () => {
    const own = await emptyFleet(server);
    await federateGroups(own, readers);
    const connectionString = await server.role(own, 'reader');
    const role = userOf(connectionString);
    const users = { east: await readerOf(east, 'rome'), west: await readerOf(west, 'lima') };
    const run = (of?: string) => federateGroups(own, of === undefined ? readers : users, of, undefined, 300);
    const isHeldUp = (on: string) => ({
      code: 'DATABASE_TIMEOUT',
      message: expect.stringMatching(
        `did not grant a lock: .*: pid \\d+ \\(role ${role}, a reader\\) on ${on}\\.$`,
      ),
    });
    const client = new Client({ connectionString, application_name: 'a reader' });
    await client.connect();
    try {
      await client.query("SELECT pg_advisory_lock(hashtext('plegwatch federate'))");
      await client.query('CREATE TEMP VIEW kept AS SELECT node FROM plegwatch.nodes');
      await client.query(
        'CREATE FUNCTION pg_temp.kept() RETURNS int8 LANGUAGE sql RETURN (SELECT count(*) FROM plegwatch.nodes)',
      );
      await expect(
        client.query('BEGIN; LOCK TABLE plegwatch__federate.run IN ACCESS SHARE MODE'),
      ).rejects.toThrow('permission denied');
      await client.query('ROLLBACK');
      await run();
      await run(role);
      await client.query('BEGIN; LOCK TABLE plegwatch.nodes IN ACCESS SHARE MODE');
      await expect(run()).rejects.toMatchObject(isHeldUp('nodes'));
      await run(role);
      await client.query('ROLLBACK; BEGIN; DROP USER MAPPING FOR CURRENT_USER SERVER plegwatch_east');
      await expect(run(role)).rejects.toMatchObject(isHeldUp('rows'));
    } finally {
      await client.end();
    }
    await run();
    expect(await nodesOf(own)).toEqual(['lima', 'paris', 'rome']);
  });

  it('names the run that it waits for', async () => {
    const own = await emptyFleet(server);
    await federateGroups(own, readers);
    const other = new Client({ connectionString: own, application_name: 'plegwatch federate' });
    await other.connect();
    await other.query('BEGIN; LOCK TABLE plegwatch__federate.run IN SHARE ROW EXCLUSIVE MODE');
    await expect(federateGroups(own, readers, undefined, undefined, 100)).rejects.toMatchObject({
      code: 'DATABASE_TIMEOUT',
      message: expect.stringMatching(/pid \d+ \(role t\d+, plegwatch federate\) on run\./),
    });
    await other.end();
  });

  it('is no database of a controller: commands say so, and migrate changes nothing', async () => {
    const isFleet = { code: 'SETTING_INVALID', message: expect.stringContaining('is a fleet database') };
    await expect(openStore({ databaseUrl: fleet, log: silent })).rejects.toMatchObject(isFleet);
    await expect(migrate({ databaseUrl: fleet, log: silent })).rejects.toMatchObject(isFleet);
    expect(await nodesOf(fleet)).toEqual(['lima', 'paris', 'rome']);
  });

  it('ends a question to a group that accepts connections and hangs by statement_timeout, as its page says', async () => {
    const own = await emptyFleet(server);
    await federateGroups(own, readers);
    const hanging = createServer().listen(0, '127.0.0.1');
    try {
      await once(hanging, 'listening');
      const { port } = Object(hanging.address());
      await query(own, `ALTER SERVER plegwatch_west OPTIONS (SET host '127.0.0.1', SET port '${port}')`);
      const limited = `${own}?options=${encodeURIComponent('-c statement_timeout=500')}`;
      for (const asked of ['SELECT * FROM plegwatch.nodes', 'SELECT * FROM plegwatch.miss_rate()'])
        await expect(query(limited, asked), asked).rejects.toThrow(/statement timeout/);
    } finally {
      hanging.close();
    }
  });

  it('sends conditions along, those with now() if they are in a subquery, as its page says', async () => {
    const sent = async (condition: string) => {
      const text = `EXPLAIN (VERBOSE, COSTS OFF) SELECT node FROM plegwatch.findings WHERE ${condition}`;
      const plan = (await query(fleet, text)).map((row) => String(row['QUERY PLAN']));
      return plan.filter((line) => /Remote SQL: .* WHERE /.test(line)).length;
    };
    expect(await sent("cluster = 'paris' AND kind = 'missed'")).toBe(2);
    expect(await sent("detected_at > (SELECT now() - interval '7 days')")).toBe(2);
    expect(await sent("detected_at > now() - interval '7 days'")).toBe(0);
  });

  it('is made of an empty database with the extensions, and of groups that are migrated and let its users in', async () => {
    const refused = (url: string, groups: Readonly<Record<string, string>>) =>
      federateGroups(url, groups).then(
        () => 'made',
        (error: unknown) => `${Reflect.get(Object(error), 'code')} ${String(error)}`,
      );
    expect(await refused(east, readers)).toMatch(/SETTING_INVALID .* has evidence of its own/);
    expect(await refused(await server.emptyDatabase(), readers)).toMatch(
      /DATABASE_REFUSED .* lacks an extension/,
    );
    const failure = (promise: Promise<void>) => promise.catch((error: unknown) => error);
    expect(await failure(federateGroups(fleet, readers, 'nobody'))).toMatchObject({
      code: 'SETTING_INVALID',
      message: expect.stringContaining('nobody'),
      cure: expect.stringContaining('--reader'),
    });
    expect(await failure(federateGroups(fleet, { north: readers.east }, 'postgres'))).toMatchObject({
      code: 'SETTING_INVALID',
      message: expect.stringContaining('group north'),
    });
    const wrong = await failure(federateGroups(fleet, { east: readers.east.replace(/:[^:@]*@/, ':wrong@') }));
    expect(wrong).toMatchObject({ cure: expect.stringMatching(/in \S+\/east, or grant/) });
    expect(await refused(fleet, {})).toMatch(/SETTING_INVALID .* has no group/);
    expect(await refused(fleet, { 'East Coast': readers.east })).toMatch(
      /SETTING_INVALID .* group East Coast/,
    );
    expect(await refused(fleet, { ...readers, north: await server.emptyDatabase() })).toMatch(
      /DATABASE_NOT_MIGRATED .* group north .* has no schema plegwatch/,
    );
    expect(await refused(fleet, { east: readers.east.replace(/:[^:@]*@/, ':wrong@') })).toMatch(
      /DATABASE_REFUSED/,
    );
    expect(await refused(fleet, { east: readers.east.replace(/:[^:@]*@/, '@') })).toMatch(
      /SETTING_INVALID .* lacks the user, the password/,
    );
    expect(await nodesOf(fleet)).toEqual(['lima', 'paris', 'rome']);
  });
});
