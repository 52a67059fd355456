import { expect, test } from 'vitest';
import { csvLine } from './csv.ts';

test('a field is quoted where it has a comma, a quote or a line break, null is empty, and an empty text is ""', () => {
  expect(csvLine(['a b', 'a,b', 'a"b', 'a\nb', null, '', 1, true])).toBe(
    'a b,"a,b","a""b","a\nb",,"",1,true\n',
  );
});

test('no text begins with what a spreadsheet runs as a formula, and numbers stay as they are', () => {
  const texts = ['=1', '+a', '-a', '@a', '\t=1', '\r=1'];
  for (const text of texts) expect(csvLine([text]).replace(/^"/, '')).toMatch(/^(\s|\\u000d)?'/);
  expect(csvLine(['-1.5', '+1e3', -1, '1-2', 'a=b'])).toBe('-1.5,+1e3,-1,1-2,a=b\n');
});

test('no cell is a formula in a spreadsheet whose separator is a semicolon or a tab either', () => {
  const hostile = ['a;=1+1;b', 'a;"=1+1"', 'a; =1+1', 'a\t@x', 'a,\n=1+1', ';-a'];
  const line = csvLine(['x', ...hostile]);
  for (const cell of line.split(/[;\t\n]/)) expect(cell).not.toMatch(/^["\s]*[=+\-@]/);
  expect(csvLine(['a; b', 'a;1'])).toBe('a; b,a;1\n');
});

test('a text of a million line breaks is written', () => {
  expect(csvLine([`a${'\n'.repeat(1_000_000)}b`])).toHaveLength(1_000_005);
});

test('a character that a terminal obeys or that turns text is an escape, and every text can be had again from its escapes', () => {
  const texts = [
    '\u001b[2J',
    'a\u0007\u009b',
    '\u202eexe\u2066.\u2069',
    'a\rb',
    '\u2028',
    'a\\u001b',
    '\\\\u202e\u202e',
    '\ud800',
  ];
  const had = (field: string) =>
    field.replaceAll(/\\u([0-9a-f]{4})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
  for (const text of texts) {
    const line = csvLine([text]).slice(0, -1);
    expect(line).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
    expect(had(line)).toBe(text);
  }
  expect(csvLine(['\u001b[2J', 'a\u202eb', 'a\\u001b', 'ü\tß\n'])).toBe(
    '\\u001b[2J,a\\u202eb,a\\u005cu001b,"ü\tß\n"\n',
  );
});
