/*
 * The format of a segment: text, one entry a line, each with a checksum:
 *
 *   crc32 of the JSON, 8 hexadecimal digits · space · JSON · newline
 *
 * A line is a context (the versions that records were observed under) or a record with its seq and the number of its context. Every
 * segment begins with a context, so that it can be read alone. Lines after one with a wrong checksum are not trusted: they may be of a
 * deleted file. Lines after an unreadable sector are, because their file was written beyond it.
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

export function contextLine(context: Context): string {
  return lineOf({ x: context });
}

export function recordLine(
  at: Seq,
  contextNo: number,
  record: EvidenceRecord,
  object: ContainerIdentity | null,
): string {
  return lineOf({ s: at, c: contextNo, r: record, ...(object === null ? {} : { o: object }) });
}

function lineOf(value: SegmentLine): string {
  const json = JSON.stringify(value);
  return `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`;
}

export interface ParsedSegment {
  /** The records before the first corrupt line. */
  readonly entries: SpoolEntry[];
  readonly isWhole: boolean;
  /** Whether a complete line is wrong; half a line at the end is not. */
  readonly isCorrupt: boolean;
  /** The highest seq after the corrupt line, or without a known context: how far the segment once reached. 0 if there is none. */
  readonly highestUntrusted: number;
  /** The length of the trusted text in bytes: where to continue reading later. */
  readonly bytes: number;
}

/** Contexts of an epoch by their numbers. */
export type Contexts = Map<number, Context>;

/**
 * Parses a segment from its beginning, or from any later line, given the contexts that are known; those that it contains are added. A
 * record whose context is unknown is left out.
 */
export function parseSegment(text: string, contexts: Contexts = new Map()): ParsedSegment {
  const entries: SpoolEntry[] = [];
  let from = 0;
  let withoutContext = 0;
  const trusted = () => ({ entries, bytes: Buffer.byteLength(text.slice(0, from)) });
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
    const line = parseLine(text.slice(from, end));
    if (line?.x !== undefined) contexts.set(line.x.no, line.x);
    else if (line?.r === undefined || line.s === undefined || line.c === undefined)
      return {
        ...trusted(),
        isWhole: false,
        isCorrupt: true,
        highestUntrusted: Math.max(withoutContext, highestSeq(text, end + 1)),
      };
    else {
      const context = contexts.get(line.c);
      const { s, r: record, o: object = null } = line;
      if (context === undefined) withoutContext = s;
      else entries.push({ seq: seq(s), context, record, object, bytes: end - from });
    }
    from = end + 1;
  }
  return { ...trusted(), isWhole: from === text.length, isCorrupt: false, highestUntrusted: withoutContext };
}

/** Whether a text is one whole line, without its end. */
export const isLine = (text: string): boolean => parseLine(text) !== null;

/** The seqs of lines that are not trusted show how much there was. */
function highestSeq(text: string, from: number): number {
  return text
    .slice(from)
    .split('\n')
    .reduce((highest, each) => Math.max(highest, parseLine(each)?.s ?? 0), 0);
}

const number = v.pipe(v.number(), v.safeInteger());
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;

/** The JSON of a line. What a context and a record contain needs no other check here: the checksum shows that we wrote it. */
const SegmentLineSchema = v.object({
  x: v.optional(v.custom<Context>(isObject)),
  s: v.optional(number),
  c: v.optional(number),
  r: v.optional(v.custom<EvidenceRecord>(isObject)),
  o: v.optional(v.custom<ContainerIdentity>(isObject)),
});
type SegmentLine = v.InferOutput<typeof SegmentLineSchema>;

function parseLine(text: string): SegmentLine | null {
  const json = text.slice(9);
  if (text[8] !== ' ' || Number.parseInt(text.slice(0, 8), 16) !== crc32(json)) return null;
  const line = parseJson(SegmentLineSchema, json);
  return line.ok ? line.value : null;
}
