/*
 * Reads a stretch of a segment around the sectors that the disk cannot read and the lines that are corrupt: only the records in these are
 * missing.
 */
import { basename } from 'node:path';
import { isUnreadable, type SpoolFile, type SpoolFiles } from './files.ts';
import { type Contexts, type ParsedSegment, parseSegment } from './segmentFormat.ts';

/** The smallest unit that disks and file systems read. */
const SECTOR_BYTES = 4096;
/** Each failure can take seconds: after so many, the remainder of a segment counts as unreadable. */
const MAX_UNREADABLE_SECTORS = 16;
const ATTEMPTS = 2;

export interface ReadStretch extends ParsedSegment {
  /** Whether there is a sector that the disk cannot read. */
  readonly isUnreadable: boolean;
}

interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Reads the lines of a stretch that begins with a line. */
export async function readSegment(
  files: SpoolFiles,
  path: string,
  stretch: Stretch,
  contexts: Contexts,
): Promise<ReadStretch> {
  const { bytes, isWhole } = await readStretch(files, path, stretch);
  return { ...parseSegment(basename(path), bytes, contexts, stretch.from), isUnreadable: !isWhole };
}

interface ReadBytes {
  readonly bytes: Buffer;
  readonly isWhole: boolean;
}

async function readStretch(files: SpoolFiles, path: string, { from, to }: Stretch): Promise<ReadBytes> {
  const file = await unlessUnreadable(() => files.open(path, 'r'));
  if (file === null) return { bytes: Buffer.alloc(0), isWhole: false };
  try {
    const whole = await readBytes(file, from, to);
    if (whole !== null) return { bytes: whole, isWhole: true };
    return { bytes: await readAround(file, { from, to }), isWhole: false };
  } finally {
    await file.close();
  }
}

/** Reads sector by sector. Those that cannot be read are newlines, which end the line before them and begin the one after. */
async function readAround(file: SpoolFile, { from, to }: Stretch): Promise<Buffer> {
  const bytes = Buffer.alloc(to - from, '\n');
  let unreadable = 0;
  for (let at = from; at < to && unreadable < MAX_UNREADABLE_SECTORS; ) {
    const end = Math.min(to, at - (at % SECTOR_BYTES) + SECTOR_BYTES);
    const sector = await readAttempts(file, at, end);
    if (sector === null) unreadable += 1;
    else sector.copy(bytes, at - from);
    at = end;
  }
  return bytes;
}

async function readAttempts(file: SpoolFile, from: number, to: number): Promise<Buffer | null> {
  for (let i = 1; i < ATTEMPTS; i += 1) {
    const bytes = await readBytes(file, from, to);
    if (bytes !== null) return bytes;
  }
  return readBytes(file, from, to);
}

/** Null if the disk cannot read them. */
const readBytes = (file: SpoolFile, from: number, to: number): Promise<Buffer | null> =>
  unlessUnreadable(async () => {
    const buffer = Buffer.alloc(to - from);
    const { bytesRead } = await file.read(buffer, 0, to - from, from);
    return buffer.subarray(0, bytesRead);
  });

async function unlessUnreadable<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (isUnreadable(error)) return null;
    throw error;
  }
}
