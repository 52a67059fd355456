import { expect, test } from 'vitest';
import { millis, mono } from '../protocol/units.ts';
import { remembered } from './remembered.ts';

function counting() {
  const clock = { now: mono(0) };
  const answers = remembered<number>({
    keptFor: () => millis(60_000),
    max: 16,
    kindOf: (n) => (n % 2 === 0 ? 'even' : 'odd'),
    now: () => clock.now,
  });
  let made = 0;
  return { clock, ...answers, ask: (key: string) => answers.ask(key, async () => ++made) };
}

test('clients that ask for the same at the same time, or soon, have the same answer', async () => {
  const { clock, ask } = counting();
  expect(await Promise.all([ask('a'), ask('a'), ask('b')])).toEqual([1, 1, 2]);
  clock.now = mono(59_999_999);
  expect(await ask('a')).toBe(1);
  clock.now = mono(60_000_000);
  expect(await ask('a')).toBe(3);
});

test('an answer holds from when it was asked for', async () => {
  const clock = { now: mono(0) };
  const { ask } = remembered<string>({ keptFor: () => millis(1), max: 1, now: () => clock.now });
  const late = async () => {
    clock.now = mono(1_000);
    return 'late';
  };
  expect(await ask('a', late)).toBe('late');
  expect(await ask('a', async () => 'new')).toBe('new');
});

test('an error is not remembered', async () => {
  const { ask } = remembered<number>({ keptFor: () => millis(60_000), max: 16 });
  await expect(ask('a', () => Promise.reject(new Error('away')))).rejects.toThrow('away');
  expect(await ask('a', async () => 1)).toBe(1);
});

test('only the latest answers of each kind are kept', async () => {
  const { ask, last } = counting();
  for (let i = 1; i <= 34; i += 1) await ask(`${i}`);
  expect(await ask('3')).toBe(3);
  expect([last('1'), last('2'), last('3')]).toEqual([undefined, undefined, 3]);
});

test('the last answer is known after it no longer holds', async () => {
  const { clock, ask, last } = counting();
  await ask('a');
  clock.now = mono(60_000_000);
  expect([last('a'), last('b')]).toEqual([1, undefined]);
});

test('an answer that took long to make can be kept for longer, so that many readers cost no more than one', async () => {
  const clock = { now: mono(0) };
  const { ask } = remembered<string>({
    ...{ keptFor: (_, took) => millis((20 * took) / 1000), max: 1, now: () => clock.now },
  });
  await ask('a', async () => {
    clock.now = mono(1_000);
    return 'slow';
  });
  clock.now = mono(19_999);
  expect(await ask('a', async () => 'new')).toBe('slow');
  clock.now = mono(20_000);
  expect(await ask('a', async () => 'new')).toBe('new');
});
