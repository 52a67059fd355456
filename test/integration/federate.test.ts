/*
 * The fleet database: several groups of clusters, each with a database of its own, read as one. test/integration/questions.test.ts asks it every
 * documented question about many nodes.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { emptyFleet, federateGroups } from '../support/fleetDatabase.ts';
import { needs } from '../support/needs.ts';
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
