import { expect, test } from 'vitest';
import { ago, linesOf, msOf, share, visible } from './text.ts';

test('a time keeps its microseconds', () => {
  expect(msOf('2026-11-22T00:00:00.123456Z') - Date.parse('2026-11-22T00:00:00Z')).toBeCloseTo(123.456, 3);
  expect(msOf('2026-11-22T00:00:00Z')).toBe(Date.parse('2026-11-22T00:00:00Z'));
});

test('a share that is not whole is never shown as 100 %', () => {
  expect([1, 0.99999, 0.9994, 0.5].map(share)).toEqual(['100 %', '99.99 %', '99.94 %', '50.0 %']);
});

test('a character that is invisible or turns the text around it is shown as an escape', () => {
  expect(visible('a\u202eb\u0000c\u2028d')).toBe('a\\u{202e}b\\u{0}c\\u{2028}d');
  expect(visible('наука 科学 <b>')).toBe('наука 科学 <b>');
});

test('a time in the future, by a clock that is ahead, is now', () => {
  expect([ago(-5000), ago(999), ago(61_000)]).toEqual(['now', 'now', '1 min 1 s ago']);
});

test('a text in lines is broken between words, and cut after the last line', () => {
  expect(linesOf('one two three four five', 9, 3)).toEqual(['one two', 'three', 'four five']);
  expect(linesOf('one two three four five', 9, 2)).toEqual(['one two', 'three fo…']);
  expect(linesOf('x'.repeat(30), 9, 2)).toEqual(['xxxxxxxx…']);
  expect(linesOf('one two', 6.4, 2)).toEqual(['one', 'two']);
});
