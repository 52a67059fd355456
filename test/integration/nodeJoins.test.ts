/*
 * The rows of a node answer for the node alone: keys, references and joins of tables that have rows of nodes go by node_id. It keeps statements from
 * reading the rows of other nodes.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startServer, type TestServer } from '../support/database.ts';
import { DOCUMENTED_SQL } from '../support/documentedQuestions.ts';
import { needs } from '../support/needs.ts';
import { type JoinCatalog, readJoinCatalog, strayJoins } from '../support/nodeJoins.ts';
import { treesOf } from '../support/queryTrees.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
/** The tables of nodes, but for those that others look up by an id of their own. */
const OF_NODES = `SELECT a.attrelid AS oid, a.attnum FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relnamespace = 'store'::regnamespace AND c.relkind IN ('r', 'p') AND a.attname = 'node_id' AND c.relname NOT IN ('node', 'context')`;

needs('postgres')('a table with rows of nodes', () => {
  let server: TestServer;
  let client: Client;
  let catalog: JoinCatalog;

  beforeAll(async () => {
    server = await startServer();
    client = new Client({ connectionString: await server.database() });
    await client.connect();
    catalog = await readJoinCatalog(client);
  });
  afterAll(async () => {
    await client?.end();
    await server?.stop();
  });

  const strays = async (sql: string) =>
    (await treesOf(client, sql)).flatMap((tree) => strayJoins(catalog, tree));

  it('has node_id in each of its unique keys', async () => {
    const { rows } = await client.query(
      `SELECT i.indexrelid::regclass::text AS key, t.attnum = ANY (i.indkey::int2[]) AS has_node
         FROM (${OF_NODES}) t JOIN pg_index i ON i.indrelid = t.oid WHERE i.indisunique`,
    );
    expect(rows.length).toBeGreaterThan(15);
    expect(rows.filter((row) => !row.has_node)).toEqual([]);
  });

  it('refers to nothing but its node, and nothing refers to it', async () => {
    const { rows } = await client.query(
      `SELECT conrelid::regclass::text AS from, confrelid::regclass::text AS to FROM pg_constraint
        WHERE contype = 'f' AND conparentid = 0
          AND (conrelid IN (SELECT oid FROM (${OF_NODES}) t) AND confrelid <> 'store.node'::regclass
            OR confrelid IN (SELECT oid FROM (${OF_NODES}) t))`,
    );
    expect(rows).toEqual([]);
  });

  it('is partitioned at most once, by ranges, and has no rule, and no trigger but those that add minutes to hours and records to an outbox', async () => {
    const { rows } = await client.query(
      `SELECT t.oid::regclass::text AS table FROM (${OF_NODES}) t
        WHERE EXISTS (SELECT FROM pg_partitioned_table p JOIN pg_class c ON c.oid = p.partrelid
                       WHERE p.partrelid = t.oid AND (p.partstrat <> 'r' OR c.relispartition))
           OR EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = t.oid AND NOT g.tgisinternal AND g.tgname NOT IN ('add_to_hours', 'add_to_outbox'))
           OR EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = t.oid)`,
    );
    expect(rows).toEqual([]);
  });

  it('is joined by node_id in every statement of the program', async () => {
    const files = globSync('src/**/sql/*.sql', { cwd: ROOT });
    expect(files.length).toBeGreaterThan(50);
    const found: Record<string, string[]> = {};
    for (const file of files) {
      const sql = withoutCursor(readFileSync(join(ROOT, file), 'utf8'));
      const stray = sql === null ? [] : await strays(sql);
      if (stray.length > 0) found[file] = stray;
    }
    expect(found).toEqual({});
  });

  it('is joined by node_id in every query of docs/how-to/questions.md', async () => {
    expect(DOCUMENTED_SQL.length).toBeGreaterThan(10);
    const found: Record<string, string[]> = {};
    for (const sql of DOCUMENTED_SQL) {
      const stray = await strays(sql);
      if (stray.length > 0) found[sql] = stray;
    }
    expect(found).toEqual({});
  });

  it('is seen joined by anything else, also in a view, a lateral subquery and an EXISTS', async () => {
    const event = 'SELECT count(*) FROM store.container_event e';
    expect(await strays(`${event} JOIN store.gap g ON g.cluster_id = e.cluster_id`)).toEqual([
      'container_event, gap',
    ]);
    expect(
      await strays(`${event} WHERE EXISTS (SELECT FROM store.epoch o WHERE o.cluster_id = e.cluster_id)`),
    ).toEqual(['container_event, epoch']);
    expect(
      await strays(
        `${event} CROSS JOIN LATERAL (SELECT FROM store.gap g WHERE g.from_at < e.received_at LIMIT 1) g`,
      ),
    ).toEqual(['container_event, gap']);
    expect(await strays(`${event} JOIN store.gap g ON g.node_id = e.node_id OR g.cluster_id = 1`)).toEqual([
      'container_event, gap',
    ]);
    expect(
      await strays(`${event} JOIN store.node n USING (node_id) JOIN store.gap g ON g.node_id = n.node_id`),
    ).toEqual([]);
  });
});

/** Null for what is no query. */
function withoutCursor(text: string): string | null {
  const sql = text.replace(/^--.*$/gm, '').replace(/^\s*DECLARE\s.*?\sFOR\s/s, '');
  return /^\s*(?:WITH|SELECT|INSERT|UPDATE|DELETE)\b/.test(sql) ? sql : null;
}
