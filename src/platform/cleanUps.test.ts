import { expect, test } from 'vitest';
import { runCleanUps } from './cleanUps.ts';

test('all clean-ups run, the latest first, also those after one that fails', async () => {
  const done: string[] = [];
  const errors: object[] = [];
  const log = { error: (fields: object) => void errors.push(fields) };
  const cleanUps = [
    async () => void done.push('store'),
    () => Promise.reject(new Error('away')),
    () => {
      throw new Error('closed');
    },
    () => void done.push('http'),
  ];
  await runCleanUps(cleanUps, log);
  expect(done).toEqual(['http', 'store']);
  expect(errors).toEqual([{ error: 'closed' }, { error: 'away' }]);
});
