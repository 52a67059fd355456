import { expect, test } from 'vitest';
import { type Mono, mono } from '../../protocol/units.ts';
import { UnackedAge } from './unackedAge.ts';

const at = (seconds: number): Mono => mono(seconds * 1e6);
const acked = (ackedSeq: number) => ({ ackedSeq, earlier: false });

test('nothing unacknowledged has no age', () => {
  const age = new UnackedAge(at(0));
  expect(age.seconds(acked(0), at(50))).toBe(0);
  age.written(10, at(60));
  expect(age.seconds(acked(10), at(500))).toBe(0);
});

test('the age is that of the first record that is not acknowledged, however many were written since', () => {
  const age = new UnackedAge(at(0));
  for (let second = 1; second <= 100; second++) age.written(second * 5, at(second));
  expect(age.seconds(acked(0), at(100))).toBe(99);
  expect(age.seconds(acked(250), at(100))).toBe(49);
  expect(age.seconds(acked(499), at(100))).toBe(0);
});

test('a record that follows a pause is not as old as the one before the pause', () => {
  const age = new UnackedAge(at(0));
  age.written(10, at(1));
  age.written(15, at(500));
  expect(age.seconds(acked(12), at(510))).toBe(10);
});

test('records of earlier epochs have waited at least since the start of this agent', () => {
  const age = new UnackedAge(at(1_000));
  age.written(3, at(1_005));
  expect(age.seconds({ ackedSeq: 3, earlier: true }, at(1_060))).toBe(60);
});

test('the age of a long backlog stays known to within a hundredth', () => {
  const age = new UnackedAge(at(0));
  const day = 86_400;
  for (let second = 1; second <= day; second++) age.written(second, at(second));
  const half = age.seconds(acked(day / 2), at(day));
  expect(half / (day / 2)).toBeGreaterThan(0.99);
  expect(half / (day / 2)).toBeLessThan(1.01);
  // Once the backlog is gone it is exact again.
  expect(age.seconds(acked(day), at(day + 5))).toBe(0);
  age.written(day + 1, at(day + 10));
  expect(age.seconds(acked(day), at(day + 12))).toBe(2);
});
