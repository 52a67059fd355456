import { expect, test } from 'vitest';
import { newest, ordered } from './ordered.ts';

const row = (name: string, at: string | null = null) => ({ name, at });
const names = (rows: readonly { readonly name: string }[]) => rows.map(({ name }) => name);
const byName = ({ name }: { readonly name: string }) => name;

test('names are sorted by their bytes, as Postgres sorts them', () => {
  // In UTF-16 the first one would come after the second.
  const parts = [
    [row('\uff5e'), row('Z')],
    [row('\u{1f600}'), row('a'), row('B')],
  ];
  expect(names(ordered(parts, byName))).toEqual(['B', 'Z', 'a', '\uff5e', '\u{1f600}']);
});

test('the newest come first, those without a time last, and the next key decides among equals', () => {
  const [late, early] = ['2026-11-28T03:00:00.5Z', '2026-11-28T03:00:00Z'];
  const parts = [
    [row('b', late), row('d', null)],
    [row('a', late), row('c', early)],
  ];
  expect(
    names(
      ordered(
        parts,
        newest((each) => each.at),
        byName,
      ),
    ),
  ).toEqual(['a', 'b', 'c', 'd']);
});

test('times that differ by a microsecond are told apart', () => {
  const [later, early] = ['2026-11-28T03:00:00.00001Z', '2026-11-28T03:00:00.000009Z'];
  const at = newest((each: { readonly at: string | null }) => each.at);
  expect(names(ordered([[row('a', early)], [row('b', later)]], at, byName))).toEqual(['b', 'a']);
});

test('the rows of one part stay in their order', () => {
  expect(names(ordered([[row('b'), row('a')]], byName))).toEqual(['b', 'a']);
});
