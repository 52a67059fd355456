/*
 * Mutations: what becomes of a well-formed protobuf message in the hands of somebody who means ill, or of a broken memory.
 *
 * A mutation changes the message itself, or one that is inside it, whose length is then told anew: so that the damage
 * lies deep in what is otherwise well formed. Of a repeated field that is not a list the last one counts, so what is put
 * behind a message takes the place of what was in it.
 */
import type { Random } from '../../devtools/simulator/random.ts';

type Mutation = (bytes: Buffer, random: Random) => Buffer;

const VARINT = 0;
const BYTES = 2;
const GROUP = 3;
const HIGHEST_FIELD = 24;
const MEBIBYTE = 1024 * 1024;
/** What numbers are tried: bounds of what 32 and 64 bits hold, with and without a sign. */
const NUMBERS = [
  0n,
  1n,
  255n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 53n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 1n,
];

/** What is done often. */
const COMMON: Readonly<Record<string, Mutation>> = {
  'a bit is another': (bytes, random) => changed(bytes, random, (byte) => byte ^ (1 << below(random, 8))),
  'several bytes are others': (bytes, random) =>
    Array.from({ length: 8 }).reduce<Buffer>(
      (all) => changed(all, random, () => below(random, 256)),
      Buffer.from(bytes),
    ),
  'it is cut short': (bytes, random) => bytes.subarray(0, below(random, bytes.length)),
  'its beginning is missing': (bytes, random) => bytes.subarray(below(random, bytes.length)),
  'it is empty': () => Buffer.alloc(0),
  'there is something in the middle': (bytes, random) => {
    const at = below(random, bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), noise(random, 40), bytes.subarray(at)]);
  },
  'it is noise': (_, random) => noise(random, 200),
  'a field comes twice': (bytes, random) => {
    const field = pick(random, fieldsOf(bytes));
    return field === undefined ? bytes : Buffer.concat([bytes, bytes.subarray(field.start, field.end)]);
  },
  'its fields come in another order': (bytes, random) =>
    Buffer.concat(random.shuffle(fieldsOf(bytes)).map(({ start, end }) => bytes.subarray(start, end))),
  'a wire type is another': (bytes, random) => {
    const field = pick(random, fieldsOf(bytes));
    if (field === undefined) return bytes;
    const copy = Buffer.from(bytes);
    copy.writeUInt8((copy.readUInt8(field.start) & ~7) | below(random, 8), field.start);
    return copy;
  },
  'a number is a bound': (bytes, random) =>
    Buffer.concat([bytes, tag(random, VARINT), varint(pick(random, NUMBERS) ?? 0n)]),
  'a number never ends': (bytes, random) =>
    Buffer.concat([bytes, tag(random, VARINT), Buffer.alloc(below(random, 30), 0xff)]),
  'a length is longer than all there is': (bytes, random) =>
    Buffer.concat([bytes, tag(random, BYTES), varint(pick(random, NUMBERS) ?? 0n), noise(random, 10)]),
  'a text is no text': (bytes, random) => append(bytes, random, Buffer.from([0xc3, 0x28, 0xed, 0xa0, 0x80])),
  'a text has a NUL': (bytes, random) => append(bytes, random, Buffer.from('a\0b')),
  'an item is of no length': (bytes, random) => append(bytes, random, Buffer.alloc(0)),
  'a field is nobody knows which': (bytes) =>
    Buffer.concat([bytes, Buffer.from([0xf8, 0xff, 0xff, 0xff, 0x0f, 1])]),
};

/** What costs a lot. */
const LARGE: Readonly<Record<string, Mutation>> = {
  'a text, an id perhaps, is of a mebibyte': (bytes, random) =>
    append(bytes, random, Buffer.alloc(MEBIBYTE, 'x')),
  'groups are in groups in groups': (bytes, random) =>
    Buffer.concat([bytes, Buffer.alloc(below(random, 100_000), tag(random, GROUP))]),
  'items are many and empty': (bytes, random) =>
    Buffer.concat([bytes, Buffer.alloc(2 * below(random, 100_000), Buffer.from([0x0a, 0]))]),
};
const LARGE_ONES = 0.01;

const NAMES = Object.entries(COMMON);
const LARGE_NAMES = Object.entries(LARGE);

export interface Mutated {
  readonly bytes: Buffer;
  /** What was done to it. */
  readonly how: string;
}

/** One or more mutations of a message, at any depth. */
export function mutate(bytes: Buffer, random: Random): Mutated {
  const inner = random.chance(0.6)
    ? pick(
        random,
        fieldsOf(bytes).filter(({ wire, body, end }) => wire === BYTES && end > body),
      )
    : undefined;
  if (inner !== undefined) {
    const { bytes: body, how } = mutate(bytes.subarray(inner.body, inner.end), random);
    const head = bytes.subarray(inner.start, inner.tagEnd);
    const parts = [bytes.subarray(0, inner.start), head, varint(BigInt(body.length)), body];
    return { bytes: Buffer.concat([...parts, bytes.subarray(inner.end)]), how };
  }
  const [name, mutation] = pick(random, random.chance(LARGE_ONES) ? LARGE_NAMES : NAMES) ?? ['', asItIs];
  const once = { bytes: mutation(bytes, random), how: name };
  if (!random.chance(0.2)) return once;
  const twice = mutate(once.bytes, random);
  return { bytes: twice.bytes, how: `${name}, and ${twice.how}` };
}

const asItIs: Mutation = (bytes) => bytes;

/** Bytes of any value, up to so many. */
const noise = (random: Random, most: number): Buffer =>
  Buffer.from(Array.from({ length: below(random, most) }, () => below(random, 256)));

const below = (random: Random, bound: number): number => Math.floor(random.between(0, bound));

const pick = <T>(random: Random, all: readonly T[]): T | undefined => all[below(random, all.length)];

function changed(bytes: Buffer, random: Random, change: (byte: number) => number): Buffer {
  const copy = Buffer.from(bytes);
  const at = below(random, copy.length);
  if (copy.length > 0) copy.writeUInt8(change(copy.readUInt8(at)) & 255, at);
  return copy;
}

const tag = (random: Random, wire: number): Buffer => Buffer.from([((1 + below(random, 15)) << 3) | wire]);

/** Puts a field of these bytes behind all others; its number is any, the first ones most often. */
function append(bytes: Buffer, random: Random, body: Buffer): Buffer {
  const number = random.chance(0.5) ? 1 : 1 + below(random, HIGHEST_FIELD);
  return Buffer.concat([bytes, varint(BigInt((number << 3) | BYTES)), varint(BigInt(body.length)), body]);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}

interface Field {
  readonly wire: number;
  /** Where its tag begins, its tag ends, what is in it begins, and all of it ends. */
  readonly start: number;
  readonly tagEnd: number;
  readonly body: number;
  readonly end: number;
}

/** The fields of a message as far as it is one. */
function fieldsOf(bytes: Buffer): readonly Field[] {
  const fields: Field[] = [];
  for (let at = 0; at < bytes.length; ) {
    const field = fieldAt(bytes, at);
    if (field === null || field.end > bytes.length) break;
    fields.push(field);
    at = field.end;
  }
  return fields;
}

function fieldAt(bytes: Buffer, start: number): Field | null {
  const tagEnd = start + varintLength(bytes, start);
  const wire = bytes.readUInt8(start) & 7;
  if (wire === VARINT)
    return { wire, start, tagEnd, body: tagEnd, end: tagEnd + varintLength(bytes, tagEnd) };
  if (wire !== BYTES) return null;
  const body = tagEnd + varintLength(bytes, tagEnd);
  const length = bytes.subarray(tagEnd, body).reduce((sum, byte, i) => sum + (byte & 127) * 2 ** (7 * i), 0);
  return { wire, start, tagEnd, body, end: body + length };
}

function varintLength(bytes: Buffer, at: number): number {
  const last = bytes.subarray(at).findIndex((byte) => byte < 128);
  return last === -1 ? Number.POSITIVE_INFINITY : last + 1;
}
