import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { ConnectionLimit } from './connectionLimit.ts';

test('a connection with several answers under way is closed for another one only after the last has ended', () => {
  const limit = new ConnectionLimit(1);
  const [pipelined, early, late] = [new Socket(), new Socket(), new Socket()];
  limit.opened(pipelined);
  const [firstEnds, secondEnds] = [limit.workBegan(pipelined), limit.workBegan(pipelined)];
  firstEnds();
  limit.opened(early);
  expect([pipelined.destroyed, early.destroyed]).toEqual([false, true]);
  secondEnds();
  limit.opened(late);
  expect([pipelined.destroyed, late.destroyed]).toEqual([true, false]);
});

test('work for a connection that was closed meanwhile keeps no place', () => {
  const limit = new ConnectionLimit(1);
  const [closed, next, last] = [new Socket(), new Socket(), new Socket()];
  limit.opened(closed);
  limit.opened(next);
  limit.workBegan(closed);
  limit.opened(last);
  expect([closed.destroyed, next.destroyed, last.destroyed]).toEqual([true, true, false]);
});
