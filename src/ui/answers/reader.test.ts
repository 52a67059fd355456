/*
 * How much is read at a time.
 */
import { expect, test } from 'vitest';
import { runnerOf, type SqlRunner } from '../../store/runner.ts';
import { cluster } from '../../store/schema/tables.ts';
import { command } from '../../store/statement.ts';
import { createReader } from './reader.ts';

const patient = new AbortController().signal;

/** A store whose statements end when the test says so. */
function slowStore() {
  const running: (() => void)[] = [];
  const ran: string[] = [];
  const sql = runnerOf(async ({ text }) => {
    ran.push(text);
    await new Promise<void>((resolve) => running.push(resolve));
    return { rows: [], rowCount: 0 };
  });
  return {
    store: {
      transaction: <T>(work: (sql: SqlRunner) => Promise<T>) => work(sql),
      parts: async () => [],
    },
    running,
    ran,
    async finish() {
      for (; running.length > 0; await turn()) for (const end of running.splice(0)) end();
    },
  };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('as many read at once as there are connections, and the others wait their turn', async () => {
  const { store, running, finish } = slowStore();
  const reader = createReader(store, undefined, 4);
  const ended: number[] = [];
  const answers = Array.from({ length: 6 }, (_, n) => reader(patient).read(async () => ended.push(n)));
  await turn();
  expect(running).toHaveLength(4);
  await finish();
  await Promise.all(answers);
  expect(ended).toEqual([0, 1, 2, 3, 4, 5]);
});

test.each<[string, (sql: SqlRunner) => Promise<unknown>]>([
  ['statement', (sql) => sql.run(command('SELECT'))],
  ['typed query', (sql) => sql.query((db) => db.select().from(cluster))],
])('a client that goes away gets no further %s, and keeps nobody waiting', async (_, send) => {
  const { store, ran, finish } = slowStore();
  const reader = createReader(store, undefined, 1);
  const gone = new AbortController();
  const twice = async (sql: SqlRunner) => {
    await send(sql);
    await send(sql);
  };
  const ends = [1, 2].map(() =>
    reader(gone.signal)
      .read(twice)
      .catch((error: unknown) => error),
  );
  const next = reader(patient).read(async () => 'read');
  await turn();
  gone.abort();
  await turn();
  expect(ran).toHaveLength(1);
  await finish();
  expect(await Promise.all(ends)).toEqual([gone.signal.reason, gone.signal.reason]);
  expect(await next).toBe('read');
  // The read that the first one had begun, and the transaction of the last one.
  expect(ran).toHaveLength(2);
});
