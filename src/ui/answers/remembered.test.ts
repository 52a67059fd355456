import { expect, test } from 'vitest';
import { millis, mono } from '../../protocol/units.ts';
import { remembered } from './remembered.ts';

function counting() {
  const clock = { now: mono(0) };
  const ask = remembered<number>(millis(60_000), () => clock.now);
  let made = 0;
  return { clock, ask: (key: string) => ask(key, async () => ++made) };
}

test('who asks for the same at the same time, or soon, has the same answer', async () => {
  const { clock, ask } = counting();
  expect(await Promise.all([ask('a'), ask('a'), ask('b')])).toEqual([1, 1, 2]);
  clock.now = mono(59_999_999);
  expect(await ask('a')).toBe(1);
  clock.now = mono(60_000_000);
  expect(await ask('a')).toBe(3);
});

test('an error is not remembered', async () => {
  const ask = remembered<number>(millis(60_000));
  await expect(ask('a', () => Promise.reject(new Error('away')))).rejects.toThrow('away');
  expect(await ask('a', async () => 1)).toBe(1);
});

test('only the latest answers are kept', async () => {
  const { ask } = counting();
  for (let i = 0; i < 17; i += 1) await ask(`${i}`);
  expect(await ask('16')).toBe(17);
  expect(await ask('0')).toBe(18);
});
