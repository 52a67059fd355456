import { beforeEach, expect, test } from 'vitest';
import { millis, mono, shift } from '../protocol/units.ts';
import { ThrottledLog } from './throttledLog.ts';

const MINUTE = millis(60_000);

let now = mono(0);
let lines: [string, object][];
const write = (fields: object, message: string) => void lines.push([message, fields]);
const throttled = (linesPerMinute?: number) =>
  new ThrottledLog(
    { warn: write, error: write },
    { now: () => now, ...(linesPerMinute === undefined ? {} : { linesPerMinute }) },
  );

beforeEach(() => {
  now = mono(0);
  lines = [];
});

test('a message is written five times a minute, and the first line of the next minute has how many were suppressed', () => {
  const log = throttled();
  for (let i = 0; i < 1_000; i++) log.warn({ reason: 'not_json', i }, 'rejected');
  expect(lines).toHaveLength(5);
  now = shift(now, MINUTE);
  log.warn({ reason: 'not_json' }, 'rejected');
  log.warn({ reason: 'not_json' }, 'rejected');
  expect(lines.slice(5)).toEqual([
    ['rejected', { reason: 'not_json', suppressed: 995 }],
    ['rejected', { reason: 'not_json' }],
  ]);
});

test('one message, reason, cause or call never suppresses another', () => {
  const log = throttled();
  for (let i = 0; i < 100; i++) log.warn({ reason: 'not_json' }, 'rejected');
  lines = [];
  log.warn({ reason: 'other_cluster' }, 'rejected');
  log.warn({ cause: 'unreadable' }, 'rejected');
  log.warn({ call: 'Version' }, 'rejected');
  log.error({ error: 'x' }, 'failed');
  expect(lines.map(([message]) => message)).toEqual(['rejected', 'rejected', 'rejected', 'failed']);
});

test('a flush writes the last suppressed line of each kind once', () => {
  const log = throttled(1);
  for (let i = 1; i <= 1_000; i++) log.warn({ i }, 'malformed');
  log.warn({}, 'another');
  log.flush();
  log.flush();
  expect(lines).toEqual([
    ['malformed', { i: 1 }],
    ['another', {}],
    ['malformed', { i: 1_000, suppressed: 998 }],
  ]);
});

test('a flush of what is due waits until the minute of a kind has passed', () => {
  const log = throttled(1);
  log.warn({}, 'malformed');
  log.warn({}, 'malformed');
  now = shift(now, millis(59_999));
  log.flushDue();
  expect(lines).toHaveLength(1);
  now = shift(now, millis(1));
  log.flushDue();
  expect(lines).toHaveLength(2);
  log.warn({}, 'malformed');
  expect(lines).toHaveLength(2);
});

test('suppressed lines are added up by what they count', () => {
  const log = throttled(1);
  log.warn({ items: 1 }, 'malformed', 1);
  log.warn({ items: 7 }, 'malformed', 7);
  log.warn({ items: 5 }, 'malformed', 5);
  log.flush();
  expect(lines.at(-1)).toEqual(['malformed', { items: 5, suppressed: 7 }]);
});
