/*
 * How much is read at a time.
 */
import { expect, test } from 'vitest';
import type { SqlRunner } from '../../store/runner.ts';
import { createReader } from './reader.ts';

const patient = new AbortController().signal;

/** A store whose statements end when the test says so. */
function slowStore() {
  const running: (() => void)[] = [];
  let statements = 0;
  const sql: SqlRunner = {
    async run() {
      statements += 1;
      await new Promise<void>((resolve) => running.push(resolve));
      return { rows: [], count: 0 };
    },
  };
  return {
    store: { transaction: <T>(work: (sql: SqlRunner) => Promise<T>) => work(sql) },
    running,
    statements: () => statements,
    async finish() {
      for (; running.length > 0; await turn()) for (const end of running.splice(0)) end();
    },
  };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('one connection is left to see whether Postgres answers', async () => {
  const { store, running, finish } = slowStore();
  const reader = createReader(store, undefined, 4);
  const answers = Array.from({ length: 5 }, (_, n) => reader(patient).read(async () => n));
  await turn();
  expect(running).toHaveLength(3);
  await finish();
  expect(await Promise.all(answers)).toEqual([0, 1, 2, 3, 4]);
});

test('the only connection is used', async () => {
  const { store, running, finish } = slowStore();
  const answer = createReader(store, undefined, 1)(patient).read(async () => 'read');
  await turn();
  expect(running).toHaveLength(1);
  await finish();
  expect(await answer).toBe('read');
});

test('who goes away gets no further statement, and keeps nobody waiting', async () => {
  const { store, statements, finish } = slowStore();
  const reader = createReader(store, undefined, 2);
  const gone = new AbortController();
  const twice = async (sql: SqlRunner) => {
    await sql.run({ text: 'first' });
    await sql.run({ text: 'second' });
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
  expect(statements()).toBe(1);
  await finish();
  expect(await Promise.all(ends)).toEqual([gone.signal.reason, gone.signal.reason]);
  expect(await next).toBe('read');
  // What the first one had begun, and the transaction of the last one.
  expect(statements()).toBe(2);
});
