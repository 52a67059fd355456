import { beforeEach, expect, it } from 'vitest';
import { SAID_AT_MOST, type SparingLog, sparing } from './throttledLog.ts';

let now = 0;
let lines: [string, object][];
let log: SparingLog;

beforeEach(() => {
  now = 0;
  lines = [];
  const write = (fields: object, message: string) => void lines.push([message, fields]);
  log = sparing({ warn: write, error: write }, () => now);
});

it('says the same only so often a minute, and tells in the next minute how much was left out', () => {
  for (let i = 0; i < 1_000; i++) log.warn({ reason: 'not_json', i }, 'rejected');
  expect(lines).toHaveLength(SAID_AT_MOST);
  now = 60_000;
  log.warn({ reason: 'not_json' }, 'rejected');
  log.warn({ reason: 'not_json' }, 'rejected');
  expect(lines.slice(SAID_AT_MOST)).toEqual([
    ['rejected', { reason: 'not_json', unsaid: 1_000 - SAID_AT_MOST }],
    ['rejected', { reason: 'not_json' }],
  ]);
});

it('never keeps one message, reason or cause silent for another', () => {
  for (let i = 0; i < 100; i++) log.warn({ reason: 'not_json' }, 'rejected');
  lines = [];
  log.warn({ reason: 'other_cluster' }, 'rejected');
  log.warn({ cause: 'unreadable' }, 'a gap');
  log.error({ problem: 'x' }, 'a fault');
  expect(lines.map(([message]) => message)).toEqual(['rejected', 'a gap', 'a fault']);
});
