import { expect, test } from 'vitest';
import { ReplyMeter } from './replyMeter.ts';

const LIMIT = 10_000;
const TOO_LONG = 'a reply is longer than 10000 bytes';
const UNREADABLE = 'its answer is no reply';

const read = (...pieces: readonly string[]): string | null => {
  const meter = new ReplyMeter(LIMIT);
  return pieces.reduce<string | null>((fault, piece) => fault ?? meter.read(Buffer.from(piece)), null);
};

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const REPLIES = [
  '+OK\r\n',
  '-ERR no\r\n',
  ':-12\r\n',
  ',1.5e10\r\n',
  '_\r\n',
  '#t\r\n',
  '$-1\r\n',
  '$0\r\n\r\n',
  bulk('a\r\n$9999999999\r\nb'),
  '=7\r\ntxt:abc\r\n',
  '!5\r\nERR x\r\n',
  '*-1\r\n',
  '*0\r\n',
  `*2\r\n*2\r\n:1\r\n${bulk('ü')}*0\r\n`,
  `%1\r\n${bulk('proto')}:3\r\n`,
  '~1\r\n#f\r\n',
  `>2\r\n${bulk('message')}${bulk('x')}`,
];

test('replies that are each short may be any number, and may arrive in pieces of any length', () => {
  const stream = Buffer.from(REPLIES.join('').repeat(200));
  expect(stream.length).toBeGreaterThan(2 * LIMIT);
  for (let length = 12; length <= 200; length += 1) {
    const meter = new ReplyMeter(LIMIT);
    const faults = new Set<string | null>();
    for (let at = 0; at < stream.length; at += length)
      faults.add(meter.read(stream.subarray(at, at + length)));
    expect(faults).toEqual(new Set([null]));
  }
  for (const reply of REPLIES) expect(read(...reply)).toBeNull();
});

test('a string is refused when its length is announced, before any of it has come', () => {
  for (const type of ['$', '=', '!']) {
    expect(read(`${type}9000\r\n`)).toBeNull();
    expect(read(`${type}503316480\r\n`)).toBe(TOO_LONG);
  }
});

test('strings in one reply count together, and those of another do not', () => {
  const half = bulk('x'.repeat(4_500));
  expect(read(half, half, half)).toBeNull();
  expect(read('*3\r\n', half, half)).toBeNull();
  expect(read('*3\r\n', half, half, half)).toBe(TOO_LONG);
});

test('an array is refused when its length is announced, and arrays in arrays count together', () => {
  expect(read('*140\r\n')).toBeNull();
  expect(read('*33554431\r\n')).toBe(TOO_LONG);
  expect(read('%16777215\r\n')).toBe(TOO_LONG);
  expect(read('*100\r\n*100\r\n')).toBe(TOO_LONG);
});

test('a line without an end is refused at the limit', () => {
  expect(read('+', 'x'.repeat(9_000))).toBeNull();
  expect(read('+', 'x'.repeat(9_000), 'x'.repeat(1_000))).toBe(TOO_LONG);
});

test('a reply in tiny pieces is refused for their number', () => {
  expect(read('$9000\r\n', ...'x'.repeat(100))).toBe(TOO_LONG);
});

test.each([
  ['text of another protocol', 'HTTP/1.1 200 OK\r\n'],
  ['an empty line', '\r\n'],
  ['a number of any length', `(${'9'.repeat(100)}`],
  ['a length that is no number', '$x\r\n'],
  ['a length below zero', '*-2\r\n'],
  ['a length with more digits than are looked at', '$00000000000000000001\r\n'],
  ['a null of another length than the decoder skips', '_x\r\n'],
  ['a boolean of another length than the decoder skips', '#true\r\n'],
  ['a text shorter than its format', '=3\r\ntxt\r\n'],
  ['arrays nested deeper than those of Redis', '*1\r\n'.repeat(17)],
])('%s is refused', (_, bytes) => {
  expect(read(bytes)).toBe(UNREADABLE);
});
