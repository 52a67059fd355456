/*
 * The format of a segment: text, one entry a line, each with a checksum:
 *
 *   newline · checksum, 8 hexadecimal digits · space · JSON · newline
 *
 * A line is a context (the versions that records were observed under) or a record with its seq and the number of its context. Every
 * segment begins with a context, so that it can be read alone; each context is written twice, because no record is read without its own.
 *
 * The checksum is the crc32 of the JSON, which begins with the name of the segment and the line's place in it: only a line that was written
 * at this place is read, and none that the disk returns from another place or another segment, or that is left of a deleted file.
 * So lines after one with a wrong checksum are read too. No JSON contains a newline, and each line has one at both ends:
 * a flipped bit costs one line, also where it makes a newline or removes one.
 */
import { crc32 } from 'node:zlib';
import * as v from 'valibot';
import type { Context } from '../../protocol/batch.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../protocol/record.ts';
import { type Seq, seq } from '../../protocol/units.ts';
import { parseJson } from '../../protocol/validation.ts';

export interface SpoolEntry {
  readonly seq: Seq;
  readonly context: Context;
  readonly record: EvidenceRecord;
  readonly object: ContainerIdentity | null;
  /** The length of its line: an estimate of its size in a batch. */
  readonly bytes: number;
}

export const contextJson = (context: Context): string => jsonOf({ x: context });

export const recordJson = (
  at: Seq,
  contextNo: number,
  record: EvidenceRecord,
  object: ContainerIdentity | null,
): string => jsonOf({ s: at, c: contextNo, r: record, ...(object === null ? {} : { o: object }) });

const jsonOf = (line: SegmentLine): string => JSON.stringify(line);

const CHECKSUM_LENGTH = 8;
/** The length of a line without its JSON. */
export const LINE_OVERHEAD = CHECKSUM_LENGTH + 3;
const NEWLINE = 10;
const SPACE = 32;

/** A line of the segment with this name that begins at this byte. */
export const lineAt = (file: string, at: number, json: string): string =>
  `\n${checksumOf(crc32(file), at + 1, json)
    .toString(16)
    .padStart(CHECKSUM_LENGTH, '0')} ${json}\n`;

/** `name`: the crc32 of the segment's name. `at`: the byte after the newline. */
const checksumOf = (name: number, at: number, json: string | Buffer): number =>
  crc32(json, (name ^ at) >>> 0);

export interface ParsedSegment {
  readonly entries: readonly SpoolEntry[];
  /** The highest seq of all records, those without a known context included; 0 if there is none. */
  readonly last: number;
  /** Where the last line ends that is right; 0 if there is none. */
  readonly end: number;
  /** Whether anything else than lines that are right is there. */
  readonly isCorrupt: boolean;
}

/** Contexts of an epoch by their numbers. */
export type Contexts = Map<number, Context>;

/**
 * Parses the bytes of a segment from its beginning, or from any later line at the byte `from`, given the contexts that are known; those that it contains are
 * added. A record whose context is unknown is left out.
 */
export function parseSegment(
  file: string,
  bytes: Buffer,
  contexts: Contexts = new Map(),
  from = 0,
): ParsedSegment {
  const name = crc32(file);
  const entries: SpoolEntry[] = [];
  let last = 0;
  let end = 0;
  let isCorrupt = false;
  for (let start = 0, next = 0; start < bytes.length; start = next + 1) {
    next = bytes.indexOf(NEWLINE, start);
    if (next === -1) next = bytes.length;
    if (next === start) continue;
    const line = parseLine(name, from + start, bytes.subarray(start, next));
    if (line === null) {
      isCorrupt = true;
      continue;
    }
    end = from + Math.min(next + 1, bytes.length);
    if ('x' in line) {
      contexts.set(line.x.no, line.x);
      continue;
    }
    const { s, c, r: record, o: object = null } = line;
    const context = contexts.get(c);
    last = Math.max(last, s);
    if (context !== undefined)
      entries.push({ seq: seq(s), context, record, object, bytes: next - start + 2 });
  }
  return { entries, last, end, isCorrupt };
}

const number = v.pipe(v.number(), v.safeInteger());
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;

/** The JSON of a line. The contents of a context and a record need no other check here: the checksum shows that we wrote them. */
const SegmentLineSchema = v.union([
  v.object({
    s: number,
    c: number,
    r: v.custom<EvidenceRecord>(isObject),
    o: v.optional(v.custom<ContainerIdentity>(isObject)),
  }),
  v.object({ x: v.custom<Context>(isObject) }),
]);
type SegmentLine = v.InferOutput<typeof SegmentLineSchema>;

function parseLine(name: number, at: number, bytes: Buffer): SegmentLine | null {
  const json = bytes.subarray(CHECKSUM_LENGTH + 1);
  const checksum = Number.parseInt(bytes.toString('latin1', 0, CHECKSUM_LENGTH), 16);
  if (bytes[CHECKSUM_LENGTH] !== SPACE || checksum !== checksumOf(name, at, json)) return null;
  const line = parseJson(SegmentLineSchema, json.toString('utf8'));
  return line.ok ? line.value : null;
}
