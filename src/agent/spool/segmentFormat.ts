/*
 * The format of a segment: text, one entry a line, each with a checksum:
 *
 *   crc32 of the JSON, 8 hexadecimal digits · space · JSON · newline
 *
 * A line is a context (the versions that the records after it were observed under) or a record with its seq. Every segment
 * begins with a context, so that it can be read alone. Lines after one with a wrong checksum are not trusted.
 */
import { crc32 } from 'node:zlib';
import type { Context } from '../../protocol/batch.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../protocol/record.ts';
import { type Seq, seq } from '../../protocol/units.ts';

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

export function recordLine(at: Seq, record: EvidenceRecord, object: ContainerIdentity | null): string {
  return lineOf({ s: at, r: record, ...(object === null ? {} : { o: object }) });
}

function lineOf(value: SegmentLine): string {
  const json = JSON.stringify(value);
  return `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`;
}

export interface ParsedSegment {
  /** The records before the first corrupt line. */
  readonly entries: SpoolEntry[];
  readonly isWhole: boolean;
  /** The highest seq after the corrupt line: how far the segment once reached. 0 if there is none. */
  readonly highestUntrusted: number;
  /** The length of the trusted text in bytes, and the context at its end: where to continue reading later. */
  readonly bytes: number;
  readonly context: Context | null;
}

/** Parses a segment from its beginning, or from where an earlier call stopped, given the context there. */
export function parseSegment(text: string, before: Context | null = null): ParsedSegment {
  const entries: SpoolEntry[] = [];
  let context = before;
  let from = 0;
  const trusted = () => ({ entries, bytes: Buffer.byteLength(text.slice(0, from)), context });
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
    const line = parseLine(text.slice(from, end));
    if (line?.x !== undefined) context = line.x;
    else if (line?.r === undefined || line.s === undefined || context === null)
      return { ...trusted(), isWhole: false, highestUntrusted: highestSeq(text, end + 1) };
    else
      entries.push({
        seq: seq(line.s),
        context,
        record: line.r,
        object: line.o ?? null,
        bytes: end - from,
      });
    from = end + 1;
  }
  return { ...trusted(), isWhole: from === text.length, highestUntrusted: 0 };
}

/** Lines after a corrupt one are not trusted, as their context may be lost; their seqs show how much there was. */
function highestSeq(text: string, from: number): number {
  return text
    .slice(from)
    .split('\n')
    .reduce((highest, each) => Math.max(highest, parseLine(each)?.s ?? 0), 0);
}

/** The JSON of a line. It needs no validation: the checksum shows that we wrote it. */
type SegmentLine = {
  readonly x?: Context;
  readonly s?: number;
  readonly r?: EvidenceRecord;
  readonly o?: ContainerIdentity;
};

function parseLine(text: string): SegmentLine | null {
  const json = text.slice(9);
  if (text[8] !== ' ' || Number.parseInt(text.slice(0, 8), 16) !== crc32(json)) return null;
  return JSON.parse(json) as SegmentLine;
}
