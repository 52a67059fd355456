/*
 * The reads of Postgres for the questions that people ask most, as a reader under row-level security: no table of another day, and no table without
 * an index. Times are in docs/development/measurements.md.
 */
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import listOutboxSql from '../../src/controller/otlp/sql/listOutbox.sql';
import { query, startServer, type TestServer } from '../support/database.ts';
import { documentedSql } from '../support/documentedQuestions.ts';
import { needs } from '../support/needs.ts';
import { writeHistory } from '../support/storedHistory.ts';

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Loops': number;
  readonly 'Actual Rows': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** The last day of the history: yesterday, or the day before when midnight passed meanwhile. */
const NEWEST = '(SELECT max(day) FROM store.container_event)';

/** A partition of a table by day. */
const PARTITION = /^(container_event|container|relist_change|relist_minute)_\d{8}$/;
/** Nodes of both clusters. */
const NODES = 10;

needs('postgres')('plans of the documented queries', () => {
  let server: TestServer;
  let client: Client;
  let reader: string;

  beforeAll(async () => {
    server = await startServer();
    const databaseUrl = await server.database();
    reader = await server.reader(databaseUrl);
    await writeHistory(databaseUrl, { nodes: NODES / 2, days: 4, lives: 250, step: 60 });
    client = new Client({ connectionString: reader });
    await client.connect();
    await client.query('SET max_parallel_workers_per_gather = 0');
  });
  afterAll(async () => {
    await client?.end();
    await server?.stop();
  });

  /** The partitions with rows that a statement read, with the way in which it read them. */
  async function read(text: string, by = client): Promise<{ table: string; how: string; rows: number }[]> {
    const { rows } = await by.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`);
    const found: { table: string; how: string; rows: number }[] = [];
    const visit = (node: PlanNode): void => {
      const table = node['Relation Name'] ?? '';
      const count = node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0));
      if (PARTITION.test(table) && count > 0) found.push({ table, how: node['Node Type'], rows: count });
      for (const child of node.Plans ?? []) visit(child);
    };
    visit(rows[0]['QUERY PLAN'][0].Plan);
    return found;
  }

  /** The days of events and containers of which a statement read a table. A new connection: what is counted is that of a transaction. */
  async function daysRead(text: string): Promise<string[]> {
    const other = new Client({ connectionString: reader });
    await other.connect();
    try {
      await other.query('BEGIN');
      await other.query(text);
      const { rows } = await other.query<{ day: string }>(
        `SELECT DISTINCT right(relname, 8) AS day FROM pg_stat_xact_user_tables
         WHERE relname ~ '^container(_event)?_\\d{8}$' AND seq_scan + coalesce(idx_scan, 0) > 0 ORDER BY 1`,
      );
      return rows.map((row) => row.day);
    } finally {
      await other.end();
    }
  }

  const tables = (found: readonly { table: string }[]) =>
    [...new Set(found.map(({ table }) => table))].sort();
  const day = async (sql: string) =>
    (await client.query(`SELECT to_char(${sql}, 'YYYYMMDD') AS day`)).rows[0].day;
  const someContainer = async () =>
    (
      await client.query(
        "SELECT container_id, day FROM plegwatch.container_events WHERE pod_name = 'job-2-8' LIMIT 1",
      )
    ).rows[0];

  it('a search by container id reads only the tables of the day that has it, by indexes', async () => {
    const { container_id } = await someContainer();
    const of = await day(`${NEWEST} - 1`);
    for (const view of ['container_events', 'relist_changes']) {
      const found = await read(`SELECT * FROM plegwatch.${view} WHERE container_id = '${container_id}'`);
      const table = view === 'container_events' ? 'container_event' : 'relist_change';
      expect(tables(found)).toEqual([`container_${of}`, `${table}_${of}`].sort());
      expect(found.filter(({ how }) => how === 'Seq Scan')).toEqual([]);
      expect(Math.max(...found.map(({ rows }) => rows))).toBeLessThan(20);
    }
  });

  it('everything of one container, events and changes together, is found by indexes', async () => {
    const { container_id } = await someContainer();
    const found = await read(`
      SELECT * FROM (
        SELECT received_at AS at, event_type AS what, container_id FROM plegwatch.container_events
        UNION ALL
        SELECT window_to, new_state, container_id FROM plegwatch.relist_changes
      ) seen WHERE container_id = '${container_id}'`);
    expect(found).not.toEqual([]);
    expect(found.filter(({ how }) => how === 'Seq Scan')).toEqual([]);
    expect(Math.max(...found.map(({ rows }) => rows))).toBeLessThan(20);
  });

  it('a search by the name of a pod reads no events but those of the pod', async () => {
    const of = await day(`${NEWEST} - 1`);
    const found = await read("SELECT * FROM plegwatch.container_events WHERE pod_name = 'job-2-8'");
    expect(tables(found)).toEqual([`container_${of}`, `container_event_${of}`]);
    expect(found.filter(({ how }) => how === 'Seq Scan')).toEqual([]);
  });

  it('the last events of a node on a day are read from that day only', async () => {
    const of = await day(NEWEST);
    const found = await read(
      `SELECT * FROM plegwatch.container_events WHERE cluster = 'east' AND node = 'east-004' AND day = '${of}' ORDER BY received_at DESC LIMIT 50`,
    );
    expect(tables(found).filter((table) => !table.endsWith(of))).toEqual([]);
  });

  it('plegwatch.last_events reads no day before that of the last one that it returns', async () => {
    const newest = await day(NEWEST);
    const before = await day(`${NEWEST} - 1`);
    for (const { n, oldest } of [
      { n: 50, oldest: newest },
      { n: 2500, oldest: before },
    ]) {
      const days = await daysRead(`SELECT FROM plegwatch.last_events('east', 'east-004', ${n})`);
      expect([n, days[0]]).toEqual([n, oldest]);
    }
  });

  it('plegwatch.last_events reads no day on which no agent of the node recorded anything', async () => {
    const owner = server.part.url.replace(/[^/]*$/, 't1');
    await query(
      owner,
      `UPDATE store.epoch SET last_record_at = last_record_at - interval '2 days'
       WHERE node_id = (SELECT node_id FROM store.node WHERE name = 'west-001')`,
    );
    const days = await daysRead("SELECT FROM plegwatch.last_events('west', 'west-001')");
    const last = await day(
      `(SELECT (last_record_at AT TIME ZONE 'UTC')::date FROM store.epoch e JOIN store.node n USING (node_id) WHERE n.name = 'west-001')`,
    );
    expect(days).toEqual([last]);
  });

  it('plegwatch.last_events returns what the view has, the newest first', async () => {
    const rows = async (text: string) => (await client.query(text)).rows;
    for (const n of [1, 50, 2500])
      expect(await rows(`SELECT * FROM plegwatch.last_events('east', 'east-002', ${n})`)).toEqual(
        await rows(
          `SELECT * FROM plegwatch.container_events WHERE cluster = 'east' AND node = 'east-002'
           ORDER BY received_at DESC, seq DESC LIMIT ${n}`,
        ),
      );
    for (const n of [0, -1])
      expect(await rows(`SELECT FROM plegwatch.last_events('east', 'east-002', ${n})`)).toEqual([]);
    expect(await rows("SELECT FROM plegwatch.last_events('east', 'east-999')")).toEqual([]);
  });

  it('a function is not declared more constant than what it calls: the planner would not inline it', async () => {
    const wrong = await query(
      server.part.url.replace(/[^/]*$/, 't1'),
      `SELECT DISTINCT p.oid::regprocedure::text AS function, called.oid::regprocedure::text AS calls
       FROM pg_proc p
       CROSS JOIN LATERAL regexp_matches(p.prosqlbody::text, ':(?:opfuncid|funcid) (\\d+)', 'g') AS found
       JOIN pg_proc called ON called.oid = found[1]::oid
       WHERE p.pronamespace IN ('store'::regnamespace, 'plegwatch'::regnamespace) AND p.provolatile = 'i' AND called.provolatile <> 'i'`,
    );
    expect(wrong).toEqual([]);
  });

  it('short lives look up the minutes just before each of them, and no whole day', async () => {
    const lives = Number((await client.query('SELECT count(*) FROM plegwatch.short_lives')).rows[0].count);
    const minutes = (await read('SELECT * FROM plegwatch.short_lives')).filter(({ table }) =>
      table.startsWith('relist_minute'),
    );
    const rows = minutes.reduce((sum, each) => sum + each.rows, 0);
    expect(lives).toBeGreaterThan(100);
    expect(rows / lives).toBeLessThanOrEqual(15);
  });

  it('readiness is not planned as if there were one Node: workers would read the hours again for each', async () => {
    const { rows } = await client.query('EXPLAIN (FORMAT JSON) SELECT * FROM plegwatch.readiness');
    expect(rows[0]['QUERY PLAN'][0].Plan['Plan Rows']).toBeGreaterThanOrEqual(NODES / 4);
  });

  it('a question about all containers of a day looks none of them up by itself', async () => {
    const found = await read(documentedSql('How often did STOPPED come before'));
    const containers = found.filter(({ table }) => table.startsWith('container_2'));
    expect([...new Set(containers.map(({ how }) => how))]).toEqual(['Seq Scan']);
  });

  it('verdicts on slow lists read the minutes around them, and no whole day of a node', async () => {
    await query(
      server.part.url.replace(/[^/]*$/, 't1'),
      `UPDATE store.relist_minute SET kubelet_last_seen_age_ms = 11000
       WHERE day = ${NEWEST} - 1 AND minute::time BETWEEN '12:00' AND '12:04' AND node_id % 2 = 0`,
    );
    const verdicts = Number(
      (await client.query('SELECT count(*) FROM plegwatch.pleg_verdicts')).rows[0].count,
    );
    const minutes = (await read('SELECT * FROM plegwatch.pleg_verdicts')).filter(
      ({ how }) => how !== 'Seq Scan',
    );
    expect(verdicts).toBeGreaterThan(10);
    expect(minutes.reduce((sum, each) => sum + each.rows, 0) / verdicts).toBeLessThan(250);
  });

  it('a verdict for OpenTelemetry is found by its minute, also of a kubelet that is slow in every minute', async () => {
    const owner = server.part.url.replace(/[^/]*$/, 't1');
    await query(
      owner,
      `UPDATE store.relist_minute SET kubelet_last_seen_age_ms = 11000
       WHERE node_id = (SELECT node_id FROM store.node WHERE name = 'east-003')`,
    );
    const [found] = await query<{ minutes: number; cluster_id: number }>(
      owner,
      `WITH slow AS (
         SELECT m.* FROM store.relist_minute m JOIN store.node n USING (node_id) WHERE n.name = 'east-003' AND m.kubelet_counted_to IS NOT NULL
       ), put AS (
         INSERT INTO store.otlp_outbox (cluster_id, node_id, day, what, at, ended_at)
         SELECT cluster_id, node_id, day, 'pleg_verdict', minute, kubelet_counted_to FROM slow ORDER BY minute DESC OFFSET 100 LIMIT 1
       )
       SELECT count(*)::int4 AS minutes, min(cluster_id) AS cluster_id FROM slow`,
    );
    expect(found?.minutes).toBeGreaterThan(4 * 1000);
    const asked = [found?.cluster_id, 1, 0].reduce<string>(
      (text, value, i) => text.replaceAll(`$${i + 1}`, String(value)),
      listOutboxSql,
    );
    const controller = await server.role(owner, 'controller');
    await query(owner, `SELECT store.grant_controller($1, 'east')`, [new URL(controller).username]);
    const sender = new Client({ connectionString: controller });
    await sender.connect();
    try {
      expect((await sender.query(asked)).rows).toMatchObject([
        { record: { node: 'east-003', kind: 'slow' } },
      ]);
      const minutes = (await read(asked, sender)).filter(({ table }) => table.startsWith('relist_minute'));
      expect(minutes.reduce((sum, each) => sum + each.rows, 0)).toBeLessThan(500);
    } finally {
      await sender.end();
    }
  });

  it('the unwritten time of a killed agent is found by its last minute, without reading the others', async () => {
    await query(
      server.part.url.replace(/[^/]*$/, 't1'),
      `UPDATE store.epoch SET last_seen = last_seen - interval '1 hour', decided_through = last_seen - interval '2 hours'
       WHERE node_id IN (SELECT node_id FROM store.node WHERE name IN ('east-002', 'east-004'))`,
    );
    const { epochs } = (
      await client.query(
        `SELECT count(*)::int4 AS epochs FROM store.epoch_span WHERE decided_through < ended_at AND end_cause NOT IN ('stopped', 'suspended')`,
      )
    ).rows[0];
    const minutes = (await read('SELECT * FROM plegwatch.gaps')).filter(({ table }) =>
      table.startsWith('relist_minute'),
    );
    expect(epochs).toBeGreaterThan(0);
    expect(minutes.filter(({ how }) => how === 'Seq Scan')).toEqual([]);
    expect(minutes.reduce((sum, each) => sum + each.rows, 0)).toBeLessThanOrEqual(5 * epochs);
  });

  it('undeclared gaps of a period are looked for without the minutes of other days', async () => {
    const found = await read(
      `SELECT * FROM (SELECT now() - interval '30 hours' AS since, now() - interval '29 hours' AS until) asked, plegwatch.undeclared_gaps(since, until)`,
    );
    const first = await day("(now() - interval '54 hours') AT TIME ZONE 'UTC'");
    const minutes = tables(found).filter((table) => table.startsWith('relist_minute'));
    expect(minutes).not.toEqual([]);
    expect(minutes.filter((table) => table < `relist_minute_${first}`)).toEqual([]);
  });

  it('minutes in which statuses were asked for are found without reading the others', async () => {
    const checks = Number((await client.query('SELECT count(*) FROM plegwatch.status_checks')).rows[0].count);
    const minutes = (await read('SELECT * FROM plegwatch.status_checks')).filter(({ table }) =>
      table.startsWith('relist_minute'),
    );
    expect(checks).toBeGreaterThan(0);
    expect(minutes.reduce((sum, each) => sum + each.rows, 0)).toBe(checks);
    expect(minutes.filter(({ how }) => how === 'Seq Scan')).toEqual([]);
  });

  it('containers that failed are found without reading the events of others', async () => {
    const { rows } = await client.query(documentedSql('Which containers were OOMKilled'));
    const announced = rows.filter((row) => row.announced).length;
    const events = (await read(documentedSql('Which containers were OOMKilled'))).filter(({ table }) =>
      table.startsWith('container_event'),
    );
    expect(announced).toBeGreaterThan(0);
    expect(events.reduce((sum, each) => sum + each.rows, 0)).toBe(announced);
    expect(events.filter(({ how }) => how === 'Seq Scan')).toEqual([]);
  });

  it.each([
    'Which alerts would have fired',
    'How did latency change with the upgrade',
    'How did latency develop',
    'How does the latency of relists grow',
    'Does the kubelet wait',
    'What did the kubelet discard',
    'Which pods can have lost events',
    'How much work does Evented PLEG save',
    'Does it depend on the pool',
  ])('%s is answered from hours', async (begin) => {
    const minutes = (await read(documentedSql(begin))).filter(({ table }) =>
      table.startsWith('relist_minute'),
    );
    expect(minutes).toEqual([]);
  });

  it('a histogram is added bucket by bucket, whatever its length, and stays within its type', async () => {
    const sum = async (...hists: readonly string[]) =>
      (
        await client.query(
          'SELECT store.hist_sum(h) AS sum FROM unnest($1::text[]) AS t (x), LATERAL (SELECT x::int4[] AS h) u',
          [hists],
        )
      ).rows[0].sum;
    expect(await sum('{1,2}', '{10,20,30}', '{}')).toEqual([11, 22, 30]);
    expect(await sum('{2147483647}', '{5}')).toEqual([2_147_483_647]);
    const long = `{${Array.from({ length: 30 }, (_, i) => i).join()}}`;
    expect(await sum(long, '{7}')).toEqual([7, ...Array.from({ length: 29 }, (_, i) => i + 1)]);
    expect(await sum()).toBeNull();
  });
});
