/*
 * Keys that are enrolled while the keys are being read.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newSigningKey, publicKeyText } from '../../protocol/signature.ts';
import { type Execute, runnerOf } from '../../store/runner.ts';
import { MAX_WAITING, NodeKeys } from './nodeKeys.ts';

/** As Postgres sends it: that no signatures are required, the node, its key, and for how many milliseconds that is valid. */
const ENROLLED = [null, 'node-1', Buffer.from(publicKeyText(newSigningKey()), 'base64url'), 60_000];

beforeEach(() => void vi.useFakeTimers({ toFake: ['hrtime', 'setTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** A store whose answers are those of when it was asked, and come when the test says so. */
class SlowStore {
  readonly rows: unknown[] = [];
  readonly sql = runnerOf(() => this.#execute());
  readonly #waiting: { readonly answer: () => void; readonly fail: (error: Error) => void }[] = [];

  get asked(): number {
    return this.#waiting.length;
  }

  #execute(): ReturnType<Execute> {
    const rows = [...this.rows];
    return new Promise((resolve, reject) => {
      this.#waiting.push({ answer: () => resolve({ rows, rowCount: rows.length }), fail: reject });
    });
  }

  async answer(): Promise<void> {
    while (this.asked === 0) await vi.advanceTimersByTimeAsync(1);
    this.#waiting.shift()?.answer();
  }

  async fail(): Promise<void> {
    while (this.asked === 0) await vi.advanceTimersByTimeAsync(1);
    this.#waiting.shift()?.fail(new Error('ECONNRESET'));
  }
}

test('a key that was enrolled after a slow read had begun is found', async () => {
  const store = new SlowStore();
  const keys = new NodeKeys(store.sql, 1);
  const others = keys.of('another');
  store.rows.push(ENROLLED);
  const found = keys.renewedOf('node-1');
  vi.advanceTimersByTime(300);
  await store.answer();
  await others;
  await store.answer();
  expect(await found).toHaveLength(1);
});

test('a key that another controller enrolled just after a read is found', async () => {
  const store = new SlowStore();
  const keys = new NodeKeys(store.sql, 1);
  const others = keys.of('another');
  await store.answer();
  await others;
  store.rows.push(ENROLLED);
  vi.advanceTimersByTime(10);
  const found = keys.renewedOf('node-1');
  await vi.advanceTimersByTimeAsync(200);
  expect(store.asked).toBe(0);
  await vi.advanceTimersByTimeAsync(50);
  await store.answer();
  expect(await found).toHaveLength(1);
});

test('however many forged batches there are, only a few wait for the next read', async () => {
  const store = new SlowStore();
  const keys = new NodeKeys(store.sql, 1);
  const others = keys.of('another');
  await store.answer();
  await others;
  let waiting = 100;
  const all = Array.from({ length: waiting }, (_, n) =>
    keys.renewedOf(`forged-${n}`).then(() => {
      waiting -= 1;
    }),
  );
  await vi.advanceTimersByTimeAsync(1);
  expect(waiting).toBe(MAX_WAITING);
  await vi.advanceTimersByTimeAsync(250);
  await store.answer();
  await Promise.all(all);
  expect(store.asked).toBe(0);
});

test('a key is enrolled although a read fails that had begun before', async () => {
  const store = new SlowStore();
  const keys = new NodeKeys(store.sql, 1);
  const others = keys.of('another');
  store.rows.push(ENROLLED);
  const enrolled = keys.enrolled();
  await store.fail();
  await expect(others).rejects.toThrow('ECONNRESET');
  await store.answer();
  await enrolled;
  expect(await keys.of('node-1')).toHaveLength(1);
});
