/*
 * Reads a stretch of a segment around the sectors that the disk cannot read: only the records in these are missing.
 */
import { isUnreadable, type SpoolFile, type SpoolFiles } from './files.ts';
import { type Contexts, isLine, parseSegment, type SpoolEntry } from './segmentFormat.ts';

/** What disks and file systems read at least. */
const SECTOR_BYTES = 4096;
/** Each failure can take seconds: after so many, the remainder of a segment counts as unreadable. */
const MAX_UNREADABLE_SECTORS = 16;
const ATTEMPTS = 2;

export interface ReadStretch {
  readonly entries: SpoolEntry[];
  readonly isWhole: boolean;
  readonly highestUntrusted: number;
  /** Where to continue reading later. */
  readonly end: number;
  readonly isDamaged: boolean;
}

interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** A part between unreadable sectors. */
interface ReadablePart {
  readonly at: number;
  readonly bytes: Buffer;
}

/** Reads the lines of a stretch that begins with a line. */
export async function readSegment(
  files: SpoolFiles,
  path: string,
  stretch: Stretch,
  contexts: Contexts,
): Promise<ReadStretch> {
  const { parts, isDamaged } = await readParts(files, path, stretch);
  const entries: SpoolEntry[] = [];
  let highestUntrusted = 0;
  let isCorrupt = false;
  let end = stretch.from;
  for (const part of parts) {
    const { at, bytes } = part.at === stretch.from ? part : fromFirstLine(part);
    const parsed = parseSegment(bytes.toString('utf8'), contexts);
    const highest = parsed.entries.at(-1)?.seq ?? 0;
    if (isCorrupt) highestUntrusted = Math.max(highestUntrusted, highest);
    else for (const entry of parsed.entries) entries.push(entry);
    highestUntrusted = Math.max(highestUntrusted, parsed.highestUntrusted);
    isCorrupt ||= parsed.isCorrupt;
    end = at + parsed.bytes;
    if (!isDamaged) return { ...parsed, end, isDamaged };
  }
  return { entries, isWhole: false, highestUntrusted, end: Math.max(end, stretch.to), isDamaged };
}

/** After an unreadable sector comes half a line, unless it happens to begin with a whole one. */
function fromFirstLine({ at, bytes }: ReadablePart): ReadablePart {
  const end = bytes.indexOf('\n');
  if (end !== -1 && isLine(bytes.toString('utf8', 0, end))) return { at, bytes };
  const from = end === -1 ? bytes.length : end + 1;
  return { at: at + from, bytes: bytes.subarray(from) };
}

interface ReadParts {
  readonly parts: readonly ReadablePart[];
  readonly isDamaged: boolean;
}

async function readParts(files: SpoolFiles, path: string, { from, to }: Stretch): Promise<ReadParts> {
  const file = await unlessUnreadable(() => files.open(path, 'r'));
  if (file === null) return { parts: [], isDamaged: true };
  try {
    const whole = await readBytes(file, from, to);
    if (whole !== null) return { parts: [{ at: from, bytes: whole }], isDamaged: false };
    return { parts: await readAround(file, { from, to }), isDamaged: true };
  } finally {
    await file.close();
  }
}

/** Reads sector by sector, and leaves out those that cannot be read. */
async function readAround(file: SpoolFile, { from, to }: Stretch): Promise<ReadablePart[]> {
  const parts: { at: number; sectors: Buffer[] }[] = [];
  let unreadable = 0;
  let isAfterUnreadable = true;
  for (let at = from; at < to && unreadable < MAX_UNREADABLE_SECTORS; ) {
    const end = Math.min(to, at - (at % SECTOR_BYTES) + SECTOR_BYTES);
    const sector = await readAttempts(file, at, end);
    if (sector === null) unreadable += 1;
    else if (isAfterUnreadable) parts.push({ at, sectors: [sector] });
    else parts.at(-1)?.sectors.push(sector);
    isAfterUnreadable = sector === null;
    at = end;
  }
  return parts.map(({ at, sectors }) => ({ at, bytes: Buffer.concat(sectors) }));
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
