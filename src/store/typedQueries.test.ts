/*
 * Typed queries: what a selection makes of the values of a row.
 */
import { eq, sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { typed } from './expressions.ts';
import { int8, timestamptz } from './schema/columns.ts';
import { cluster, node, setting } from './schema/tables.ts';
import { nullable } from './statement.ts';
import { type Queries, typedQueries } from './typedQueries.ts';

const REFUSED = expect.objectContaining({ code: 'DATABASE_VALUE' });
const databaseWith = (...rows: unknown[]): Queries => typedQueries(async () => rows);

const nodesOf = (db: Queries) =>
  db
    .select({
      count: typed(int8, sql`count(*)`),
      node: { name: node.name, first: node.first_seen, last: node.last_seen },
      at: typed(nullable(timestamptz), sql`max(${node.last_seen})`),
      cluster: cluster.name,
    })
    .from(node)
    .leftJoin(cluster, eq(cluster.cluster_id, node.cluster_id));

test('a row becomes an object with the nested ones of its selection, each value read by its type', async () => {
  const seen = '2026-11-24 09:00:00.5+00';
  const read = '2026-11-24T09:00:00.500000Z';
  expect(
    await nodesOf(databaseWith(['12', 'n1', seen, null, null, 'c1'], ['0', 'n2', null, seen, seen, 'c2'])),
  ).toEqual([
    { count: 12, node: { name: 'n1', first: read, last: null }, at: null, cluster: 'c1' },
    { count: 0, node: { name: 'n2', first: null, last: read }, at: read, cluster: 'c2' },
  ]);
});

test('a query without a list of fields returns every column by its name', async () => {
  const rows = await databaseWith(['queues', 8]).select().from(setting);
  expect(rows).toEqual([{ key: 'queues', value: 8 }]);
});

test('a command without returned fields answers no rows', async () => {
  expect(await databaseWith().update(cluster).set({ name: 'c1' })).toEqual([]);
});

test('a column that an outer join leaves null is null', async () => {
  expect(await nodesOf(databaseWith(['1', 'n1', null, null, null, null]))).toMatchObject([{ cluster: null }]);
});

test.each([
  ['a value that its type does not have', ['many', 'n1', null, null, null, 'c1']],
  ['a value that its type does not have, in a nested object,', ['1', 'n1', 'today', null, null, 'c1']],
  ['null in a nested object for a column that is never null', ['1', null, null, null, null, 'c1']],
  ['a row that is too short', ['1', 'n1', null, null, null]],
])('%s is refused', async (_, row) => {
  await expect(nodesOf(databaseWith(row))).rejects.toThrow(REFUSED);
});

test('an expression without a type is refused', async () => {
  const query = databaseWith([1]).select({ one: sql`1` }).from(cluster);
  await expect(query).rejects.toThrow(/typed/);
});

test('an error of the connection is thrown as it is', async () => {
  const gone = new Error('connection terminated');
  const db = typedQueries(() => Promise.reject(gone));
  await expect(db.select().from(cluster)).rejects.toBe(gone);
});
