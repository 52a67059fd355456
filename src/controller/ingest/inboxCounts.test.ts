import { expect, test } from 'vitest';
import { InboxCounts } from './inboxCounts.ts';

test('inboxes are counted while the count of another one is awaited, which is not asked for again, or fails', async () => {
  const counts = new InboxCounts(50);
  const asked: number[] = [];
  const known: [number, number][] = [];
  const hung = Promise.withResolvers<number>();
  const answers = [() => hung.promise, async () => 3, () => Promise.reject(new Error('down')), async () => 4];
  const count = () =>
    counts.count(
      4,
      (queue) => {
        asked.push(queue);
        return answers[queue]?.() ?? Promise.reject(new Error('no such queue'));
      },
      (queue, inputs) => known.push([queue, inputs]),
    );
  expect([await count(), await count()]).toEqual([7, 7]);
  expect(asked).toEqual([0, 1, 2, 3, 1, 2, 3]);
  hung.resolve(5);
  expect(await count()).toBe(7);
  expect(known).toContainEqual([0, 5]);
  expect(await count()).toBe(12);
});
