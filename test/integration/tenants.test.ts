/*
 * Two clusters on one database, each with a role for its controller and one for its readers. The checked objects are enumerated from the catalog of
 * Postgres, so that a new table, view or function is checked too.
 */
import type { Query } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SqlRunner } from '../../src/store/runner.ts';
import { command, type Statement } from '../../src/store/statement.ts';
import { mayWriteCluster } from '../../src/store/statements.ts';
import type { Store } from '../../src/store/store.ts';
import { openStore } from '../../src/store/store.ts';
import { agentIncarnation } from '../support/batches.ts';
import { commitTo } from '../support/committed.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { evidence, NODE_INFO, NODE_KEY, NOT_READY, STATE, UNHEALTHY } from '../support/evidence.ts';
import { needs } from '../support/needs.ts';
import { event } from '../support/records.ts';

/** Tables that say nothing of a cluster. Nobody but the owner writes them. */
const COMMON = ['setting', 'maintenance', 'migration'];
/** A role reads its own rows of this one, and nobody but the owner writes it. */
const ACCESS = 'access';
/** How to call what reads tables. A function that is added here is called by a role of another cluster. */
const CALLS: Readonly<Record<string, string>> = {
  'plegwatch.undeclared_gaps': 'plegwatch.undeclared_gaps()',
  'plegwatch.miss_rate': 'plegwatch.miss_rate()',
  'store.coverage': "store.coverage('-infinity', 'infinity')",
  'plegwatch.evidence_completeness': 'plegwatch.evidence_completeness()',
  'plegwatch.timeline': "plegwatch.timeline('one', 'node-a', '-infinity')",
  'plegwatch.last_events': "plegwatch.last_events('one', 'node-a')",
  'store.known_of_batch':
    'store.epoch e JOIN store.node n ON n.node_id = e.node_id CROSS JOIN LATERAL store.known_of_batch(e, n, 1, 1, 1)',
  'store.boots_at_once': 'store.node n CROSS JOIN LATERAL store.boots_at_once(n.node_id)',
  'store.own_clusters': "store.cluster WHERE cluster_id = ANY (store.own_clusters(false)) AND name = 'one'",
};

/** The statements of other parts of the controller, and of maintenance. */
const OF_OTHER_PARTS = [
  `INSERT INTO store.rejected (cluster_id, hash, at, last_at, queue, reason, error, claimed_node, bytes, head)
   SELECT cluster_id, 'x', now(), now(), 0, 'not_a_batch', '', '', 1, 'x' FROM store.cluster`,
  'INSERT INTO store.ingest SELECT cluster_id, now(), now() FROM store.cluster',
  'INSERT INTO store.leader SELECT cluster_id, 1 FROM store.cluster',
  // An agent of another boot, which runs as long as the first one.
  `INSERT INTO store.epoch (node_id, cluster_id, epoch, incarnation, claimed_incarnation, node_uid, boot_id, started_mono, started_at,
                            ack_generation, last_seq, last_seen, last_new_at)
   SELECT node_id, cluster_id, gen_random_uuid(), 0, 0, '', 'another', 0, started_at, 0, 0, now(), now() FROM store.epoch LIMIT 1`,
  `UPDATE store.epoch SET first_stored_at = now() - interval '1 hour', last_seen = now() + interval '1 hour', last_batch_at = now(), clock_moved_us = 0`,
  `INSERT INTO store.signed_head (node_id, epoch, seq, from_seq, cluster_id, record_us, head, hints)
   SELECT node_id, epoch, 1, 1, cluster_id, 0, '', '' FROM store.epoch`,
  `INSERT INTO store.node_signer (node_id, cluster_id, public_key, signature) SELECT node_id, cluster_id, '', '' FROM store.node`,
  `INSERT INTO store.otlp_outbox (cluster_id, node_id, day, what) SELECT cluster_id, node_id, now()::date, 'finding' FROM store.node`,
  'INSERT INTO store.report (node_id, cluster_id) SELECT node_id, cluster_id FROM store.node',
  `INSERT INTO store.report_condition (node_id, cluster_id, type, status, reason, message, since)
   SELECT node_id, cluster_id, 'EvidenceComplete', 'True', '', '', now() FROM store.node`,
  `INSERT INTO store.status_lag (node_id, cluster_id, at, event_type, lag_min_ms)
   SELECT node_id, cluster_id, now(), 'STARTED', 1 FROM store.node`,
  `INSERT INTO store.status_lag_watch (node_id, cluster_id, finding_id, kind, event_type, container_id, pod_uid, pod_namespace,
                                       pod_name, container_name, attempt, latest_at, expires_at, due_at)
   SELECT node_id, cluster_id, gen_random_uuid(), 'overdue', '', '', '', '', '', '', 0, now(), now(), now() FROM store.node`,
];

const RELATIONS = `
  SELECT n.nspname || '.' || c.relname AS name, c.relname AS short, c.relkind AS kind,
         EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'cluster_id') AS of_cluster,
         c.relrowsecurity AND c.relforcerowsecurity AS protected, coalesce('security_invoker=true' = ANY (c.reloptions), false) AS invoker
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname IN ('store', 'plegwatch') AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition ORDER BY 1`;

/** A query of the query builder. */
const isQuery = (built: object): built is { toSQL(): Query } => 'toSQL' in built;

interface Relation extends Record<string, unknown> {
  readonly name: string;
  readonly short: string;
  readonly kind: string;
  readonly of_cluster: boolean;
  readonly protected: boolean;
  readonly invoker: boolean;
}

needs('postgres')('two clusters on one database', () => {
  let server: TestServer;
  let owner: string;
  let relations: Relation[];
  const url = { controllerOne: '', controllerTwo: '', readerOne: '', readerTwo: '', readerAll: '' };
  /** The statements of the first cluster's controller, with their values. */
  const ran: { statement: Statement<never>; values: readonly unknown[] }[] = [];
  let clusterOne: number;

  beforeAll(async () => {
    server = await startServer();
    owner = await server.database();
    for (const key of Object.keys(url) as (keyof typeof url)[])
      url[key] = await server.role(owner, key.toLowerCase());
    const grant = (kind: string, of: string, cluster: string | null) =>
      query(owner, `SELECT store.grant_${kind}($1, $2)`, [new URL(of).username, cluster]);
    await grant('controller', url.controllerOne, 'one');
    await grant('controller', url.controllerTwo, 'two');
    await grant('reader', url.readerOne, 'one');
    await grant('reader', url.readerTwo, 'two');
    await grant('reader', url.readerAll, null);
    relations = await query<Relation>(owner, RELATIONS);
    const store = await openStore({ databaseUrl: url.controllerOne, log: silent });
    clusterOne = await store.ensureCluster('one');
    // It is killed long after its last row of minutes.
    const first = agentIncarnation('node-a', 1, 400_000);
    const next = agentIncarnation('node-a', 2, 30_000);
    const lost = [{ from: 1, to: 2, cause: 'spool_full' }];
    await commitTo(recording(store), clusterOne, [
      first.batch(3, evidence(), { lost }),
      first.batch(1, [event(1), event(2)]),
      // An event of the container whose end was missed, of that type.
      next.batch(1, [event(3), event(1, { eventType: 2 }), STATE], { prev: first.epoch }),
    ]);
    await store.close();
    for (const text of [UNHEALTHY, NODE_INFO, NOT_READY, NODE_KEY, ...OF_OTHER_PARTS])
      await query(url.controllerOne, text);
  });
  afterAll(() => server?.stop());

  function recording(store: Store): Store {
    const recorded = (runner: SqlRunner): SqlRunner => ({
      run<R>(statement: Statement<R>, values: readonly unknown[] = []) {
        ran.push({ statement: command(statement.text), values });
        return runner.run(statement, values);
      },
      query: (build) =>
        runner.query((db) => {
          const built = build(db);
          if (isQuery(built)) {
            const { sql, params } = built.toSQL();
            ran.push({ statement: command(sql), values: params });
          }
          return built;
        }),
    });
    return { ...store, transaction: (work) => store.transaction((runner) => work(recorded(runner))) };
  }

  const counted = async (as: string, what: string) =>
    Number((await query<{ n: string }>(as, `SELECT count(*) AS n FROM ${what}`))[0]?.n);
  const tables = () => relations.filter(({ kind, short }) => 'rp'.includes(kind) && !COMMON.includes(short));

  it('every table has a cluster_id and the policies that go with it, or says nothing of a cluster', () => {
    const open = tables().filter(
      (table) => !table.of_cluster || !(table.protected || table.short === ACCESS),
    );
    expect(
      open.map(({ name }) => name),
      'Give the table a cluster_id (store.protect_clusters() then adds the policies). If no row of it is of a cluster, name it in COMMON.',
    ).toEqual([]);
  });

  it('every view reads with the rights of whoever reads it', () => {
    const views = relations.filter(({ kind }) => !'rp'.includes(kind));
    expect(views.length).toBeGreaterThan(10);
    expect(
      views.filter(({ invoker }) => !invoker).map(({ name }) => name),
      'Add WITH (security_invoker = true) to the view.',
    ).toEqual([]);
  });

  it('a function that runs as its owner has a fixed search path and is not for everybody', async () => {
    const functions = await query<{ name: string; fixed: boolean; everybody: boolean }>(
      owner,
      `SELECT p.oid::regprocedure::text AS name, coalesce(array_to_string(p.proconfig, ',') LIKE 'search_path=pg_catalog, pg_temp%', false) AS fixed,
              p.proacl IS NULL OR EXISTS (SELECT FROM aclexplode(p.proacl) a WHERE a.grantee = 0) AS everybody
       FROM pg_proc p WHERE p.prosecdef AND p.pronamespace IN ('store'::regnamespace, 'plegwatch'::regnamespace)`,
    );
    expect(functions.length).toBeGreaterThan(0);
    expect(functions.filter(({ fixed, everybody }) => !fixed || everybody)).toEqual([]);
    await expect(query(url.readerTwo, 'SELECT store.make_partitions(1)')).rejects.toThrow('denied');
  });

  it('a reader sees in every table and view the rows of its cluster, and none of another one', async () => {
    for (const { name, short } of relations) {
      if (COMMON.includes(short)) continue;
      const rows = await counted(url.readerAll, name);
      const own = await counted(url.readerOne, name);
      const foreign = await counted(url.readerTwo, name);
      // Each role has a row of its own in these, or its cluster has.
      if ([ACCESS, 'cluster'].includes(short)) expect([name, own, foreign]).toEqual([name, 1, 1]);
      else expect([name, own, foreign]).toEqual([name, rows, 0]);
      expect([name, await counted(url.controllerTwo, name)]).toEqual([name, foreign]);
    }
  });

  it('the data of this test reaches every table and view', async () => {
    const empty: string[] = [];
    for (const { name } of relations) if ((await counted(url.readerOne, name)) === 0) empty.push(name);
    expect(empty, 'Store something that is shown there.').toEqual([]);
  });

  it('every function that reads tables shows a role only rows of its cluster', async () => {
    const functions = await query<{ name: string }>(
      url.readerTwo,
      `SELECT DISTINCT n.nspname || '.' || p.proname AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
       WHERE n.nspname IN ('store', 'plegwatch') AND p.provolatile <> 'i' AND has_function_privilege(p.oid, 'EXECUTE')
         -- Postgres knows what a parsed body reads: the clock, for example, and no table.
         AND (p.prosqlbody IS NULL OR EXISTS (
           SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.refclassid = 'pg_class'::regclass))`,
    );
    const unknown = functions.filter(({ name }) => CALLS[name] === undefined);
    expect(
      unknown,
      'Add a call to CALLS, give a function that reads no table a parsed body (RETURN …), or revoke it from PUBLIC.',
    ).toEqual([]);
    for (const call of Object.values(CALLS)) {
      expect([call, await counted(url.readerOne, call)]).not.toEqual([call, 0]);
      expect([call, await counted(url.readerTwo, call)]).toEqual([call, 0]);
    }
  });

  it('the controller of another cluster can neither add, change nor delete a row of the first one', async () => {
    for (const { name } of tables()) {
      const [row] = await query<{ row: Record<string, unknown> }>(
        owner,
        `SELECT to_jsonb(t) AS row FROM ${name} t LIMIT 1`,
      );
      const values = row?.row ?? {};
      const insert = (changed: Record<string, unknown>) =>
        query(
          url.controllerTwo,
          `INSERT INTO ${name} OVERRIDING SYSTEM VALUE SELECT * FROM jsonb_populate_record(NULL::${name}, $1)`,
          [JSON.stringify({ ...values, ...changed })],
        );
      await expect(insert({ cluster_id: clusterOne }), name).rejects.toThrow(
        /row-level security|permission denied/,
      );
      // A row of its own cluster for the node of another one.
      if ('node_id' in values && name !== 'store.node') {
        await expect(insert({ cluster_id: clusterOne + 1 }), name).rejects.toThrow(
          /row-level security|permission denied/,
        );
      }
    }
  });

  it('a controller adds to hours by the minutes that it stores, and cannot change them otherwise', async () => {
    const hours = 'UPDATE store.relist_hour SET errors = 0';
    await expect(query(url.controllerOne, hours)).rejects.toThrow('permission denied');
    await expect(
      query(url.controllerOne, 'INSERT INTO store.relist_hour SELECT * FROM store.relist_hour'),
    ).rejects.toThrow('permission denied');
    expect(await counted(url.controllerOne, 'store.relist_hour')).toBeGreaterThan(0);
  });

  it('every statement with which a batch is stored does nothing to another cluster', async () => {
    const state = async () => JSON.stringify(await Promise.all(tables().map(({ name }) => digest(name))));
    const digest = (name: string) =>
      query(owner, `SELECT count(*), md5(string_agg(t::text, '' ORDER BY t::text)) FROM ${name} t`);
    const before = await state();
    const writes = ran.filter(({ statement }) => /\b(INSERT|UPDATE|DELETE)\b/.test(statement.text));
    expect(new Set(writes.map(({ statement }) => statement.text)).size).toBeGreaterThan(15);
    const store = await openStore({ databaseUrl: url.controllerTwo, log: silent });
    for (const { statement, values } of writes) {
      const { count } = await store
        .run(statement, values)
        .catch((error: Error) => ({ count: /row-level security/.test(error.message) ? 0 : error.message }));
      expect([statement.text, count]).toEqual([statement.text, 0]);
    }
    await store.close();
    expect(await state()).toEqual(before);
  });

  it('an epoch of the same id in another cluster is stored there, and reveals nothing', async () => {
    const store = await openStore({ databaseUrl: url.controllerTwo, log: silent });
    const [first] = await query<{ epoch: string }>(owner, 'SELECT epoch FROM store.epoch LIMIT 1');
    const copy = agentIncarnation('node-a', 1, 1_000).batch(1, [event(1)], { epoch: first?.epoch ?? '' });
    await commitTo(store, await store.ensureCluster('two'), [copy]);
    await store.close();
    expect(await counted(url.readerTwo, 'plegwatch.container_events')).toBe(1);
    const seen = await query(url.readerAll, 'SELECT DISTINCT cluster FROM plegwatch.epochs ORDER BY 1');
    expect(seen).toEqual([{ cluster: 'one' }, { cluster: 'two' }]);
  });

  it('a partition that is named itself shows a role nothing, whatever rights it is given', async () => {
    const [partition] = await query<{ name: string }>(
      owner,
      "SELECT 'store.' || relname AS name FROM pg_class WHERE relispartition AND relname LIKE 'container\\_event\\_2%' LIMIT 1",
    );
    const name = partition?.name ?? '';
    await expect(query(url.readerTwo, `SELECT FROM ${name}`)).rejects.toThrow('denied');
    await query(owner, `GRANT SELECT ON ${name} TO ${new URL(url.readerTwo).username}`);
    expect(await query(url.readerTwo, `SELECT FROM ${name}`)).toEqual([]);
  });

  it('a controller for a cluster that its role may not write is refused with the statement that grants it', async () => {
    const store = await openStore({ databaseUrl: url.controllerTwo, log: silent });
    for (const cluster of ['one', 'three'])
      await expect(store.ensureCluster(cluster)).rejects.toMatchObject({
        code: 'DATABASE_REFUSED',
        cure: expect.stringContaining(
          `store.grant_controller('${new URL(url.controllerTwo).username}', '${cluster}')`,
        ),
      });
    await store.close();
  });

  it('a controller whose role was renamed is refused with the statement that grants it, and doctor sees that it may not write', async () => {
    const role = new URL(await server.role(owner, 'controller'));
    await query(owner, "SELECT store.grant_controller($1, 'one')", [role.username]);
    await query(server.part.url, `ALTER ROLE ${role.username} RENAME TO renamed`);
    role.username = 'renamed';
    const store = await openStore({ databaseUrl: role.href, log: silent });
    await expect(store.ensureCluster('one')).rejects.toMatchObject({
      code: 'DATABASE_REFUSED',
      cure: expect.stringContaining("store.grant_controller('renamed', 'one')"),
    });
    expect((await store.run(mayWriteCluster, ['one'])).rows).toEqual([{ role: 'renamed', may: false }]);
    await store.close();
  });

  describe('grants', () => {
    it('members of a role have its clusters', async () => {
      const member = await server.role(owner, 'member');
      await query(server.part.url, `GRANT ${new URL(url.readerOne).username} TO ${new URL(member).username}`);
      expect(await counted(member, 'plegwatch.nodes')).toBe(await counted(url.readerOne, 'plegwatch.nodes'));
    });

    it('a role may read every cluster and write one', async () => {
      const role = await server.role(owner, 'both');
      const { username } = new URL(role);
      await query(owner, "SELECT store.grant_controller($1, 'two'), store.grant_reader($1)", [username]);
      expect(await counted(role, 'store.epoch')).toBe(await counted(owner, 'store.epoch'));
      await expect(query(role, "INSERT INTO store.cluster (name) VALUES ('x')")).rejects.toThrow('row-level');
      await query(role, 'UPDATE store.epoch SET lost = lost WHERE cluster_id = $1', [clusterOne]);
      const updated = await query(
        role,
        'UPDATE store.epoch SET lost = lost WHERE cluster_id = $1 RETURNING 1',
        [clusterOne],
      );
      expect(updated).toEqual([]);
    });

    it('a role that was renamed is refused, and reads again when it is granted again', async () => {
      const role = new URL(await server.role(owner, 'before'));
      await query(owner, "SELECT store.grant_reader($1, 'one')", [role.username]);
      expect(await counted(role.href, 'plegwatch.nodes')).toBe(1);
      await query(server.part.url, `ALTER ROLE ${role.username} RENAME TO afterwards`);
      role.username = 'afterwards';
      for (const asked of ['plegwatch.nodes', 'plegwatch.miss_rate()', 'store.cluster'])
        await expect(counted(role.href, asked)).rejects.toThrow(/role afterwards may read no cluster/);
      await query(owner, "SELECT store.grant_reader('afterwards', 'one')");
      expect(await counted(role.href, 'plegwatch.nodes')).toBe(1);
    });

    it('revoked rights are gone: those on one cluster, and in the end all', async () => {
      const role = await server.role(owner, 'revoked');
      const { username } = new URL(role);
      const one = "SELECT store.grant_controller($1, 'one'), store.grant_reader($1, 'two')";
      await query(owner, one, [username]);
      expect(await counted(role, 'store.cluster')).toBe(2);
      await query(owner, "SELECT store.revoke_access($1, 'one')", [username]);
      expect(await counted(role, 'store.cluster')).toBe(1);
      await expect(query(role, 'SELECT store.make_partitions(1)')).rejects.toThrow('denied');
      await query(owner, 'SELECT store.revoke_access($1)', [username]);
      await expect(query(role, 'SELECT FROM store.cluster')).rejects.toThrow('denied');
      await query(server.part.url, `DROP ROLE ${username}`);
    });

    it('nobody but the owner can grant or revoke', async () => {
      for (const call of ["grant_reader('x')", "grant_controller('x', 'one')", "revoke_access('x')"])
        await expect(query(url.controllerTwo, `SELECT store.${call}`)).rejects.toThrow('denied');
      await expect(
        query(url.controllerTwo, 'INSERT INTO store.access VALUES (current_user, NULL, true)'),
      ).rejects.toThrow('denied');
    });
  });
});
