/*
 * Random damage to well-formed protobuf messages, as an attacker or broken memory may cause it.
 *
 * A mutation changes the message itself or a message inside it; the lengths around it are corrected, so that the damage lies
 * deep in an otherwise well-formed message. If a field that is not a list occurs twice, the last one counts: appended bytes
 * replace a field.
 */
import type { Random } from '../../devtools/simulator/random.ts';

type Mutation = (bytes: Buffer, random: Random) => Buffer;

const VARINT = 0;
const BYTES = 2;
const GROUP = 3;
const MAX_FIELD = 24;
const MEBIBYTE = 1024 * 1024;
/** Bounds of signed and unsigned 32-bit and 64-bit numbers. */
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

/** Chosen often. */
const COMMON: Readonly<Record<string, Mutation>> = {
  'flip a bit': (bytes, random) => changed(bytes, random, (byte) => byte ^ (1 << below(random, 8))),
  'change several bytes': (bytes, random) =>
    Array.from({ length: 8 }).reduce<Buffer>(
      (all) => changed(all, random, () => below(random, 256)),
      Buffer.from(bytes),
    ),
  'cut the end': (bytes, random) => bytes.subarray(0, below(random, bytes.length)),
  'cut the beginning': (bytes, random) => bytes.subarray(below(random, bytes.length)),
  'empty it': () => Buffer.alloc(0),
  'insert noise': (bytes, random) => {
    const at = below(random, bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), noise(random, 40), bytes.subarray(at)]);
  },
  'replace it by noise': (_, random) => noise(random, 200),
  'repeat a field': (bytes, random) => {
    const field = pick(random, fieldsOf(bytes));
    return field === undefined ? bytes : Buffer.concat([bytes, bytes.subarray(field.start, field.end)]);
  },
  'reorder the fields': (bytes, random) =>
    Buffer.concat(random.shuffle(fieldsOf(bytes)).map(({ start, end }) => bytes.subarray(start, end))),
  'change a wire type': (bytes, random) => {
    const field = pick(random, fieldsOf(bytes));
    if (field === undefined) return bytes;
    const copy = Buffer.from(bytes);
    copy.writeUInt8((copy.readUInt8(field.start) & ~7) | below(random, 8), field.start);
    return copy;
  },
  'append a bound': (bytes, random) =>
    Buffer.concat([bytes, tag(random, VARINT), varint(pick(random, NUMBERS) ?? 0n)]),
  'append an endless number': (bytes, random) =>
    Buffer.concat([bytes, tag(random, VARINT), Buffer.alloc(below(random, 30), 0xff)]),
  'append a length beyond the end': (bytes, random) =>
    Buffer.concat([bytes, tag(random, BYTES), varint(pick(random, NUMBERS) ?? 0n), noise(random, 10)]),
  'append invalid UTF-8': (bytes, random) =>
    append(bytes, random, Buffer.from([0xc3, 0x28, 0xed, 0xa0, 0x80])),
  'append a NUL': (bytes, random) => append(bytes, random, Buffer.from('a\0b')),
  'append an empty item': (bytes, random) => append(bytes, random, Buffer.alloc(0)),
  'append an unknown field': (bytes) =>
    Buffer.concat([bytes, Buffer.from([0xf8, 0xff, 0xff, 0xff, 0x0f, 1])]),
};

/** Expensive, so chosen rarely. */
const LARGE: Readonly<Record<string, Mutation>> = {
  'append a text of one mebibyte': (bytes, random) => append(bytes, random, Buffer.alloc(MEBIBYTE, 'x')),
  'nest groups': (bytes, random) =>
    Buffer.concat([bytes, Buffer.alloc(below(random, 100_000), tag(random, GROUP))]),
  'append many empty items': (bytes, random) =>
    Buffer.concat([bytes, Buffer.alloc(2 * below(random, 100_000), Buffer.from([0x0a, 0]))]),
};
const LARGE_SHARE = 0.01;

export interface Mutated {
  readonly bytes: Buffer;
  /** The names of the mutations. */
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
  const [name, mutation] = pick(random, Object.entries(random.chance(LARGE_SHARE) ? LARGE : COMMON)) ?? [
    '',
    unchanged,
  ];
  const once = { bytes: mutation(bytes, random), how: name };
  if (!random.chance(0.2)) return once;
  const twice = mutate(once.bytes, random);
  return { bytes: twice.bytes, how: `${name}, and ${twice.how}` };
}

const unchanged: Mutation = (bytes) => bytes;

/** Random bytes, fewer than `bound`. */
const noise = (random: Random, bound: number): Buffer =>
  Buffer.from(Array.from({ length: below(random, bound) }, () => below(random, 256)));

const below = (random: Random, bound: number): number => Math.floor(random.between(0, bound));

const pick = <T>(random: Random, all: readonly T[]): T | undefined => all[below(random, all.length)];

function changed(bytes: Buffer, random: Random, change: (byte: number) => number): Buffer {
  const copy = Buffer.from(bytes);
  const at = below(random, copy.length);
  if (copy.length > 0) copy.writeUInt8(change(copy.readUInt8(at)) & 255, at);
  return copy;
}

const tag = (random: Random, wire: number): Buffer => Buffer.from([((1 + below(random, 15)) << 3) | wire]);

/** Appends a field with these bytes; its number is 1 half of the time, else random. */
function append(bytes: Buffer, random: Random, body: Buffer): Buffer {
  const number = random.chance(0.5) ? 1 : 1 + below(random, MAX_FIELD);
  return Buffer.concat([bytes, varint(BigInt((number << 3) | BYTES)), varint(BigInt(body.length)), body]);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let remaining = value;
  for (; remaining > 127n; remaining >>= 7n) bytes.push(Number(remaining & 127n) | 128);
  return Buffer.from([...bytes, Number(remaining)]);
}

interface Field {
  readonly wire: number;
  /** The offsets at which the tag begins and ends, and the content begins and ends. */
  readonly start: number;
  readonly tagEnd: number;
  readonly body: number;
  readonly end: number;
}

/** The fields of a message up to the first malformed one. */
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
