import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { messageOf, redact } from './errors.ts';

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');

/** The text under a heading of docs/reference/errors.md. */
const section = (title: string): string =>
  (read('../../docs/reference/errors.md').split(`## ${title}\n`)[1] ?? '').split('\n## ')[0] ?? '';

describe('docs/reference/errors.md', () => {
  const [page = ''] = read('../../docs/reference/errors.md').split('## Lists that fail');
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  const codes = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1]);

  test('errors.md lists exactly the declared codes, in their order', () => {
    const union = /export type ErrorCode =([^;]+);/.exec(read('./errors.ts'))?.[1] ?? '';
    const declared = codes(union, /'([A-Z_]+)'/g);
    expect(declared.length).toBeGreaterThan(10);
    expect(codes(rows.join('\n'), /^\| `([A-Z_]+)` /gm)).toEqual(declared);
  });

  test('errors.md has the cause and the cure of each code', () => {
    for (const row of rows) {
      const cells = row.split(' | ').map((cell) => cell.replaceAll('|', '').trim());
      expect(cells).toHaveLength(3);
      for (const cell of cells.slice(1)) expect(cell).toMatch(/^[A-Z`].+\.$/);
    }
  });
});

test.each([
  'OVER_OUR_LIMIT',
  'OVER_RUNTIME_LIMIT',
  'RESOURCE_EXHAUSTED',
  'DEADLINE_EXCEEDED',
  'UNIMPLEMENTED',
  'UNAVAILABLE',
  'TOO_MANY_ITEMS',
  'TOO_MANY_BYTES',
  'MALFORMED',
  'UNEXPECTED',
])('errors.md explains a list that fails with %s', (code) => {
  expect(section('Lists that fail')).toContain(`\`${code}\``);
});

test.each([
  'OK',
  'UNAVAILABLE',
  'UNIMPLEMENTED',
  'RUNTIME_REPLACED',
  'POLICY',
  'READER_ENDED',
  'MALFORMED',
  'INTERNAL',
  'AGENT_STOPPED',
])('errors.md explains a stream that ends with %s', (code) => {
  expect(section('Streams that end')).toContain(`\`${code}\``);
});

test.each([
  ['redis://:sesame@host:6379/0', 'redis://:***@host:6379/0'],
  ['postgres://user:sesame@host/db', 'postgres://user:***@host/db'],
  ['redis://:ses@me@host', 'redis://:***@host'],
  ['redis://:ses/ame@host', 'redis://:***@host'],
  ['postgres://host/db?user=u&password=sesame&ssl=1', 'postgres://host/db?user=u&password=***&ssl=1'],
  ['at https://host:6443 and redis://:sesame@host', 'at https://host:6443 and redis://:***@host'],
])('a message never contains the password of %s', (raw, shown) => {
  expect(redact(raw)).toBe(shown);
  expect(messageOf(new Error(`cannot reach ${raw}`))).toBe(`cannot reach ${shown}`);
});

test('the message of an aggregate error has all its errors, on one line', () => {
  const both = new AggregateError([new Error('first\n  line'), new Error('second')], '');
  expect(messageOf(both)).toBe('first line; second');
});
