import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { printable, printableLines } from './printable.ts';

const hostile = [
  ['an escape sequence', '\u001b[2J\u001b]0;title\u0007', '\\u001b[2J\\u001b]0;title\\u0007'],
  ['an 8-bit escape sequence', '\u009b31m', '\\u009b31m'],
  [
    'a line end, which would forge a line',
    'a\r\nb\u2028c\u2029d\u0085',
    'a\\u000d\\u000ab\\u2028c\\u2029d\\u0085',
  ],
  ['what reorders text', 'a\u202eb\u2066c\u200f', 'a\\u202eb\\u2066c\\u200f'],
  ['what cannot be seen', 'a\u200bb\u00adc\u{e0041}', 'a\\u200bb\\u00adc\\udb40\\udc41'],
  ['what hides bytes in a character', 'a\ufe00\u{e0100}\u034f\u3164', 'a\\ufe00\\udb40\\udd00\\u034f\\u3164'],
  ['half a character', 'a\ud800', 'a\\ud800'],
] as const;

test.each(hostile)('%s is printed as escapes', (_what, text, printed) => {
  expect(printable(text)).toBe(printed);
});

test('letters and symbols of every script are printed as they are', () => {
  const text = 'containerd 2.1.9 – größer, 没有, فشل, 🚀…';
  expect(printable(text)).toBe(text);
});

test('JSON with hostile texts is printed as the same JSON', () => {
  const value = hostile.map(([, text]) => text);
  expect(JSON.parse(printableLines(JSON.stringify(value, null, 2)))).toEqual(value);
});

test('a log line with hostile texts is one line of the same JSON, without anything that a terminal obeys', async () => {
  const text = hostile.map(([, each]) => each).join('');
  const program = `import { createLogger } from './src/platform/log.ts';
    createLogger('info', 'test').info({ version: ${JSON.stringify(text)} }, 'started');`;
  const { stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  expect(stderr).not.toMatch(/(?!\n)[\p{C}\p{Zl}\p{Zp}]/u);
  expect(JSON.parse(stderr).version).toBe(text);
});
