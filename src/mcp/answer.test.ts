import { expect, test } from 'vitest';
import { boundedAnswer } from './answer.ts';

const answer = (about: Record<string, unknown>, rows: readonly unknown[], isCut = false) =>
  boundedAnswer({ about, rows, isCut }, 'one node');

test('an answer that fits is whole, and is not called truncated', () => {
  const rows = [{ pod: 'shop/cart-7', at: null, count: 2, tags: ['a'] }];
  expect(answer({ node: 'a' }, rows)).toMatchObject({ about: { node: 'a' }, rows, truncated: null });
});

test('a value that is too large is left out, and costs the others no room', () => {
  const proof = Array.from({ length: 100 }, () => 'x'.repeat(500));
  const { about, rows, truncated } = answer({ proof, node: 'a' }, [{ line: 1 }]);
  expect(about).toEqual({ proof: null, node: 'a' });
  expect(rows).toEqual([{ line: 1 }]);
  expect(truncated).toMatchObject({ more_rows: false, values_cut: 1, cure: 'Ask for less: one node.' });
});

test('texts, lists, rows and bytes have limits, and names of fields are texts too', () => {
  const long = answer({}, [{ ['k'.repeat(2_000)]: 1, text: 'x'.repeat(2_000), list: Array(200).fill(0) }]);
  const row = { ['k'.repeat(1_000)]: 1, text: 'x'.repeat(1_000), list: Array(100).fill(0) };
  expect(long['rows']).toEqual([row]);
  expect(long['truncated']).toMatchObject({ more_rows: false, values_cut: 3 });
  expect(answer({}, Array(201).fill(0))['rows']).toEqual(Array(200).fill(0));
  // Each has two bytes of quotes.
  const texts = Array(100).fill('x'.repeat(1_000));
  expect(answer({}, texts)).toMatchObject({ rows: texts.slice(0, 40), truncated: { more_rows: true } });
  expect(answer({}, [], true)).toMatchObject({ truncated: { more_rows: true } });
});

test('a value that is nested deeper than a stack is cut, and the others are shown', () => {
  let proof: unknown = 1;
  for (let level = 0; level < 8_000; level += 1) proof = [proof];
  const { about, truncated } = answer({ proof, node: 'a' }, []);
  expect(about).toMatchObject({ proof: expect.any(Array), node: 'a' });
  expect(JSON.stringify(about)).toContain('[[null]]');
  expect(truncated).toMatchObject({ values_cut: 1, limits: expect.stringContaining('levels') });
});

test('characters that hide or turn text are escapes, in values and names of fields', () => {
  // Variation selectors carry any bytes behind a character that is shown.
  const { about } = answer({ '\u200b': '\u202e\u{e0041}\n', a: '\ufe01\u{e0100}\u3164' }, []);
  expect(about).toEqual({
    '\u200b': '\\u202e\\udb40\\udc41\\u000a',
    a: '\\ufe01\\udb40\\udd00\\u3164',
  });
});
