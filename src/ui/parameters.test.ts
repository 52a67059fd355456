import { expect, test } from 'vitest';
import { idIn, nameIn, parametersOf, periodIn, requiredName, searchIn } from './parameters.ts';

const refused = expect.objectContaining({ code: 'BAD_PARAMETER' });
const parse = (text: string) =>
  parametersOf(new URLSearchParams(text), ['node', 'id', 'q', 'from', 'to', 'last']);
const HOUR_MS = 3_600_000;
const NOW = new Date('2026-11-22T05:00:00Z');

test.each(['nod=a', 'node=a&node=b', '__proto__=1'])('the query %s is refused, not ignored', (text) => {
  expect(() => parse(text)).toThrow(refused);
});

test.each([
  ['node=', () => nameIn(parse('node='), 'node')],
  ['a name that no Node can have', () => nameIn(parse(`node=${'a'.repeat(254)}`), 'node')],
  ['a NUL, which Postgres does not take', () => nameIn(parse('node=a%00b'), 'node')],
  ['no node', () => requiredName(parse(''), 'node')],
  ['an id that is no UUID', () => idIn(parse("id=1' OR true--"), 'id')],
  ['a search for one letter', () => searchIn(parse('q=%20a%20'), 'q')],
  ['from=yesterday', () => periodIn(parse('from=yesterday'), HOUR_MS, 7, NOW)],
  ['the year 0', () => periodIn(parse('to=0000-12-31T00:00:00Z'), HOUR_MS, 7, NOW)],
  ['a day that does not exist', () => periodIn(parse('from=2026-13-01T00:00:00Z'), HOUR_MS, 7, NOW)],
  [
    'from after to',
    () => periodIn(parse('from=2026-11-22T04:00:00Z&to=2026-11-22T03:00:00Z'), HOUR_MS, 7, NOW),
  ],
  ['eight days', () => periodIn(parse('from=2026-11-01T00:00:00Z&to=2026-11-09T00:00:00Z'), HOUR_MS, 7, NOW)],
  ['a length that is no number', () => periodIn(parse('last=1e3'), HOUR_MS, 7, NOW)],
  ['a length longer than a week', () => periodIn(parse('last=604801'), HOUR_MS, 7, NOW)],
  ['a length and an end', () => periodIn(parse('last=60&to=2026-11-22T04:00:00Z'), HOUR_MS, 7, NOW)],
])('%s is refused', (_what, read) => {
  expect(read).toThrow(refused);
});

test('a period has a default for each end that is not given', () => {
  const { from, to } = periodIn(parse('to=2026-11-22T03:12:00.5Z'), HOUR_MS, 7, NOW);
  expect([from.toISOString(), to.toISOString()]).toEqual([
    '2026-11-22T02:12:00.500Z',
    '2026-11-22T03:12:00.500Z',
  ]);
  const usual = { from: new Date('2026-11-22T04:00:00Z'), to: NOW };
  expect(periodIn(parse(''), HOUR_MS, 7, NOW)).toEqual(usual);
  expect(periodIn(parse('last=60'), HOUR_MS, 7, NOW)).toEqual({
    ...usual,
    from: new Date('2026-11-22T04:59:00Z'),
  });
});
