/*
 * Recovery: reads the epochs that earlier incarnations left in a spool folder, and declares lost what is missing from them.
 */
import { join } from 'node:path';
import * as v from 'valibot';
import { errorCode, messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { int4 } from '../../protocol/validation.ts';
import type { Heartbeat } from './agentHeartbeat.ts';
import { Epoch, type EpochContent, EpochMetaSchema } from './epoch.ts';
import { isUnreadable, readJson, type SpoolFiles, type SpoolFolder, writeDurably } from './files.ts';
import { LOST_FILE } from './losses.ts';
import { type LostRange, LostRangeSchema, LostRanges } from './lostRanges.ts';
import { MAX_EPOCH_RECORDS } from './newEpoch.ts';
import { type ReadStretch, readSegment } from './readSegment.ts';
import { firstSeqOf, SEGMENT_BYTES, SEGMENT_NAME, type Segment } from './segment.ts';
import type { Contexts, SpoolEntry } from './segmentFormat.ts';

/** Contains the last seq of an epoch that has no segments left. */
const REACHED_FILE = 'reached.json';

/** Saves how far an epoch went. Must be called before its last segment is deleted. */
export const saveReached = (files: SpoolFiles, { dir, lastSeq }: Epoch): Promise<void> =>
  writeDurably(files, dir, REACHED_FILE, lastSeq);

/** The epochs in the folder, ordered by incarnation. */
export async function recoverEpochs(
  options: SpoolFolder,
  heartbeat: Pick<Heartbeat, 'incarnation' | 'lastSeq'> | null,
): Promise<Epoch[]> {
  const root = join(options.dir, 'epochs');
  const epochs: Epoch[] = [];
  for (const name of (await options.files.list(root)).sort()) {
    const epoch = await recoverEpoch(join(root, name), options, heartbeat);
    if (epoch !== null) epochs.push(epoch);
  }
  return epochs;
}

async function recoverEpoch(
  dir: string,
  options: SpoolFolder,
  heartbeat: Pick<Heartbeat, 'incarnation' | 'lastSeq'> | null,
): Promise<Epoch | null> {
  const { files, log } = options;
  const meta = await readJson(options, join(dir, 'meta.json'), EpochMetaSchema);
  if (meta === null) {
    await removeUnstarted(dir, options);
    return null;
  }
  const declared = new LostRanges(
    (await readJson(options, join(dir, LOST_FILE), v.array(LostRangeSchema))) ?? [],
  );
  const savedSeq = (await readJson(options, join(dir, REACHED_FILE), int4)) ?? 0;
  const beat = heartbeat?.incarnation === meta.incarnation ? heartbeat.lastSeq : 0;
  const names = (await files.list(dir)).filter(isSegmentName).sort();
  // Also an empty segment says how many records were before it.
  const known = Math.max(savedSeq, beat, firstSeqOf(names.at(-1) ?? '1') - 1);
  const recovered = await recoverSegments(dir, options, { names, known });
  const { segments, contexts, missing, lastEvent, hasStopped } = recovered;
  const lost = [...declared.declared, ...missing.flatMap((range) => declared.without(range))];
  const epoch = new Epoch(files, {
    meta,
    dir,
    segments,
    contexts,
    lost: lost.sort((a, b) => a.from - b.from),
    // Without a segment, records up to there are acknowledged, or were in memory and are gone: what the store lacks is lost.
    lastSeq: known,
    lastEvent,
    hasStopped,
  });
  // A later heartbeat is of another epoch, and sectors may become unreadable.
  if (epoch.lastSeq > savedSeq)
    await saveReached(files, epoch).catch((error: unknown) =>
      log.warn({ dir, error: messageOf(error) }, 'last seq of an epoch not saved'),
    );
  return epoch;
}

/** Other files may have such a name, with a number that no record has. */
const isSegmentName = (name: string): boolean =>
  SEGMENT_NAME.test(name) && firstSeqOf(name) <= MAX_EPOCH_RECORDS;

/** An epoch without meta.json died before its first record. If it has records all the same, it is left for people to look at. */
async function removeUnstarted(dir: string, { files, log }: SpoolFolder): Promise<void> {
  const names = await files.list(dir).catch((error: unknown) => {
    if (errorCode(error) === 'ENOTDIR') return null;
    throw error;
  });
  if (names === null) {
    log.warn({ file: dir }, 'file among the epochs ignored');
    return;
  }
  if (names.some((name) => name.endsWith('.seg'))) {
    log.error({ dir }, 'epoch has records but no readable meta.json, ignored');
    return;
  }
  await files.remove(dir);
}

interface RecoveredSegments extends Required<Pick<EpochContent, 'contexts' | 'lastEvent' | 'hasStopped'>> {
  readonly segments: Segment[];
  readonly missing: LostRange[];
}

interface SegmentFiles {
  readonly names: readonly string[];
  /** The epoch reached at least this seq. */
  readonly known: number;
}

async function recoverSegments(
  dir: string,
  { files, log }: SpoolFolder,
  { names, known }: SegmentFiles,
): Promise<RecoveredSegments> {
  const segments: Segment[] = [];
  const found: Seqs[] = [];
  const contexts: Contexts = new Map();
  let end = 0;
  let lastEvent = 0;
  let hasStopped = false;
  for (const [i, file] of names.entries()) {
    const path = join(dir, file);
    const { size, mtimeMs } = await sizeOf(path, files);
    const read = await readTwice(() => readSegment(files, path, { from: 0, to: size }, contexts));
    const { entries, isUnreadable } = read;
    logDamage(log, file, read);
    const first = firstSeqOf(file);
    // One that was written again may still be there beside the other, which begins at the same record.
    const next = names.slice(i + 1).find((each) => firstSeqOf(each) > first);
    const reachesTo = next === undefined ? known : firstSeqOf(next) - 1;
    const last = Math.max(lastOf(first, read, size), isUnreadable ? reachesTo : 0);
    const event = entries.findLast(({ record }) => record.type === 'container_event');
    lastEvent = Math.max(lastEvent, event?.record.t ?? 0);
    hasStopped ||= entries.some(
      ({ record }) => record.type === 'gap' && record.scope === 'agent' && record.to === null,
    );
    if (first <= last) {
      const bytes = isUnreadable ? size : read.end;
      const isEndUnknown = endsUnread(read, next);
      segments.push({ file, first, last, bytes, modifiedMs: mtimeMs, isEndUnknown });
    }
    found.push(...(isUnreadable ? [{ from: first, to: last }] : seqsOf(entries)));
    end = Math.max(end, last);
  }
  // Records that were synced, and then lost: the disk lied.
  if (segments.length > 0) end = Math.max(end, known);
  const missing = holesIn(found, { from: firstSeqOf(names[0] ?? '1'), to: end });
  return {
    segments,
    contexts,
    missing: missing.map((hole) => ({ ...hole, cause: 'spool_corrupt' })),
    lastEvent,
    hasStopped,
  };
}

/** Reads what is corrupt a second time: a disk may return another block once, and behind its last line nobody would miss a record. */
async function readTwice(read: () => Promise<ReadStretch>): Promise<ReadStretch> {
  const first = await read();
  if (!first.isCorrupt) return first;
  const second = await read();
  return second.entries.length > first.entries.length ? second : first;
}

function logDamage(log: Logger, file: string, { entries, isUnreadable, isCorrupt }: ReadStretch): void {
  if (isUnreadable) log.error({ file, entries: entries.length }, 'spool segment has unreadable sectors');
  else if (isCorrupt) log.warn({ file, entries: entries.length }, 'spool segment has corrupt lines');
}

/**
 * The last seq that a segment is known to have contained; lower than the first if there is none. Text behind the last line that is right was at least
 * the next record. If it cannot be read as a whole, the next segment and the state of the epoch say more: its reader finds which part is unreadable,
 * and declares it.
 */
const lastOf = (first: number, { last, end }: ReadStretch, size: number): number =>
  Math.max(first - 1, last) + (end < size ? 1 : 0);

/** Whether nothing says where a segment ends: neither it, nor the one after it. */
const endsUnread = ({ isUnreadable }: ReadStretch, next: string | undefined): boolean =>
  isUnreadable && next === undefined;

type Seqs = Pick<LostRange, 'from' | 'to'>;

/** The seqs of entries in rising order. */
function seqsOf(entries: readonly SpoolEntry[]): Seqs[] {
  const found: { from: number; to: number }[] = [];
  for (const { seq } of entries) {
    const before = found.at(-1);
    if (before?.to === seq - 1) before.to = seq;
    else found.push({ from: seq, to: seq });
  }
  return found;
}

/** The parts of a range that are in none of these. They may overlap: records of a failed write are written again to the next segment. */
function holesIn(found: readonly Seqs[], { from, to }: Seqs): Seqs[] {
  const holes: Seqs[] = [];
  let next = from;
  for (const each of found.toSorted((a, b) => a.from - b.from)) {
    if (each.from > next) holes.push({ from: next, to: each.from - 1 });
    next = Math.max(next, each.to + 1);
  }
  return next <= to ? [...holes, { from: next, to }] : holes;
}

/** An inode may be unreadable too: its segment then counts as one of a full size, no part of which can be read. */
async function sizeOf(path: string, files: SpoolFiles): Promise<{ size: number; mtimeMs: number }> {
  try {
    return await files.stat(path);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return { size: SEGMENT_BYTES, mtimeMs: Date.now() };
  }
}
