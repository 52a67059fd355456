/*
 * Segments: the files of a spool. A segment is text, one entry a line, each with a checksum of its own:
 *
 *   crc32 of the JSON, 8 hexadecimal digits · space · JSON · newline
 *
 * A line is a context (the versions that what follows was seen under) or a record with its seq. Every segment begins with
 * a context, so that it can be read alone. What stands behind a line that does not fit its checksum is not believed.
 */
import { crc32 } from 'node:zlib';
import type { Context } from '../../protocol/batch.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../protocol/record.ts';
import { type Seq, seq } from '../../protocol/units.ts';

/** A segment that is this long is closed. */
export const SEGMENT_BYTES = 1024 * 1024;

/** A record as it lies in the spool. */
export interface Entry {
  readonly seq: Seq;
  readonly context: Context;
  readonly record: EvidenceRecord;
  readonly object: ContainerIdentity | null;
  /** Length of its line, a measure of what it will take in a batch. */
  readonly bytes: number;
}

export function contextLine(context: Context): string {
  return line({ x: context });
}

export function recordLine(at: Seq, record: EvidenceRecord, object: ContainerIdentity | null): string {
  return line({ s: at, r: record, ...(object === null ? {} : { o: object }) });
}

function line(value: unknown): string {
  const json = JSON.stringify(value);
  return `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`;
}

export interface SegmentText {
  /** What stands before the first line that cannot be believed. */
  readonly entries: Entry[];
  /** Whether there was no such line. */
  readonly whole: boolean;
  /** The highest seq behind that line: as far as the segment once reached. 0 where nothing is told. */
  readonly beyond: number;
  /** How much of the text that was, in bytes, and the context that holds behind it: to read on from there later. */
  readonly bytes: number;
  readonly context: Context | null;
}

/** Reads a segment from its beginning, or on from where an earlier reading ended with this context. */
export function readSegment(text: string, before: Context | null = null): SegmentText {
  const entries: Entry[] = [];
  let context = before;
  let from = 0;
  const upTo = () => ({ entries, bytes: Buffer.byteLength(text.slice(0, from)), context });
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
    const value = parseLine(text.slice(from, end));
    if (value?.x !== undefined) context = value.x;
    else if (value?.r === undefined || value.s === undefined || context === null)
      return { ...upTo(), whole: false, beyond: highestSeq(text, end + 1) };
    else
      entries.push({
        seq: seq(value.s),
        context,
        record: value.r,
        object: value.o ?? null,
        bytes: end - from,
      });
    from = end + 1;
  }
  return { ...upTo(), whole: from === text.length, beyond: 0 };
}

/** Lines behind a broken one are not believed, for their context may be lost; they still tell how much was there. */
function highestSeq(text: string, from: number): number {
  return text
    .slice(from)
    .split('\n')
    .reduce((highest, each) => Math.max(highest, parseLine(each)?.s ?? 0), 0);
}

/** What a line says. Its shape is ours: the checksum has vouched for it. */
type Line = {
  readonly x?: Context;
  readonly s?: number;
  readonly r?: EvidenceRecord;
  readonly o?: ContainerIdentity;
};

function parseLine(text: string): Line | null {
  const json = text.slice(9);
  if (text[8] !== ' ' || Number.parseInt(text.slice(0, 8), 16) !== crc32(json)) return null;
  return JSON.parse(json) as Line;
}
