/*
 * Recovery: reads the epochs that earlier incarnations left in a spool folder, and declares lost what is missing from them.
 */
import { join } from 'node:path';
import * as v from 'valibot';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { int4 } from '../../protocol/validation.ts';
import type { Heartbeat } from './agentHeartbeat.ts';
import { Epoch, type EpochContent, EpochMetaSchema } from './epoch.ts';
import {
  errorCode,
  isUnreadable,
  readJson,
  type SpoolFiles,
  type SpoolFolder,
  writeDurably,
} from './files.ts';
import { type LostRange, LostRangeSchema, LostRanges } from './lostRanges.ts';
import { type ReadStretch, readSegment } from './readSegment.ts';
import { firstSeqOf, SEGMENT_BYTES, type Segment } from './segment.ts';
import type { Contexts } from './segmentFormat.ts';

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
    (await readJson(options, join(dir, 'lost.json'), v.array(LostRangeSchema))) ?? [],
  );
  const savedSeq = (await readJson(options, join(dir, REACHED_FILE), int4)) ?? 0;
  const beat = heartbeat?.incarnation === meta.incarnation ? heartbeat.lastSeq : 0;
  const known = Math.max(savedSeq, beat);
  const { segments, contexts, missing, lastEvent, hasStopped } = await recoverSegments(dir, options, known);
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

/** `known`: the epoch reached at least this seq. */
async function recoverSegments(
  dir: string,
  { files, log }: SpoolFolder,
  known: number,
): Promise<RecoveredSegments> {
  const segments: Segment[] = [];
  const missing: LostRange[] = [];
  const contexts: Contexts = new Map();
  // Segments may overlap: records of a failed write are written again to the next segment.
  let reached = 0;
  let end = 0;
  let lastEvent = 0;
  let hasStopped = false;
  const names = (await files.list(dir)).filter((name) => name.endsWith('.seg')).sort();
  for (const [i, file] of names.entries()) {
    const path = join(dir, file);
    const { size, mtimeMs } = await sizeOf(path, files);
    const read = await readSegment(files, path, { from: 0, to: size }, contexts);
    const { entries, highestUntrusted } = read;
    logDamage(log, file, read);
    const next = names[i + 1];
    const { first, last } = boundsOf(file, read, next === undefined ? known : firstSeqOf(next) - 1);
    const event = entries.findLast(({ record }) => record.type === 'container_event');
    lastEvent = Math.max(lastEvent, event?.record.t ?? 0);
    hasStopped ||= entries.some(
      ({ record }) => record.type === 'gap' && record.scope === 'agent' && record.to === null,
    );
    if (first <= last) {
      if (segments.length > 0 && first > reached + 1) {
        missing.push({ from: reached + 1, to: first - 1, cause: 'spool_corrupt' });
      }
      segments.push({ file, first, last, bytes: size, modifiedMs: mtimeMs });
      reached = Math.max(reached, last);
    }
    end = Math.max(end, highestUntrusted);
  }
  // Records that were synced, and then lost: the disk lied.
  if (segments.length > 0) end = Math.max(end, known);
  if (end > reached) missing.push({ from: reached + 1, to: end, cause: 'spool_corrupt' });
  return { segments, contexts, missing, lastEvent, hasStopped };
}

function logDamage(log: Logger, file: string, { entries, isWhole, isDamaged }: ReadStretch): void {
  if (isDamaged) log.error({ file, entries: entries.length }, 'spool segment has unreadable sectors');
  else if (!isWhole) log.warn({ file, entries: entries.length }, 'spool segment has a corrupt tail');
}

/**
 * The first and the last seq in a segment; none if the last is lower. Of a damaged segment its name, the next segment and what is known
 * of the epoch give what it contained: its reader finds what of that is unreadable, and declares it.
 */
function boundsOf(
  file: string,
  { entries, isDamaged, highestUntrusted }: ReadStretch,
  reachesTo: number,
): { first: number; last: number } {
  const first = entries[0]?.seq ?? firstSeqOf(file);
  const last = entries.at(-1)?.seq ?? first - 1;
  return isDamaged
    ? { first: firstSeqOf(file), last: Math.max(last, highestUntrusted, reachesTo) }
    : { first, last };
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
