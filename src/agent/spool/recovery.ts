/*
 * Recovery: reads the epochs that earlier incarnations left in a spool folder, and declares lost what is missing from them.
 */
import { join } from 'node:path';
import type { Logger } from '../../platform/log.ts';
import { Epoch, type EpochContent, type EpochMeta, type LostRange } from './epoch.ts';
import { readJson, type SpoolFiles, writeDurably } from './files.ts';
import type { Segment } from './segment.ts';
import { parseSegment } from './segmentFormat.ts';

/** Contains the last seq of an epoch that has no segments left. */
const REACHED_FILE = 'reached.json';

export interface RecoveryOptions {
  readonly dir: string;
  readonly log: Logger;
  readonly files: SpoolFiles;
}

/** Saves how far an epoch went. Must be called before its last segment is deleted. */
export const saveReached = (files: SpoolFiles, { dir, lastSeq }: Epoch): Promise<void> =>
  writeDurably(files, dir, REACHED_FILE, lastSeq);

/** The epochs in the folder, ordered by incarnation. */
export async function recoverEpochs(options: RecoveryOptions): Promise<Epoch[]> {
  const root = join(options.dir, 'epochs');
  const epochs: Epoch[] = [];
  for (const name of (await options.files.list(root)).sort()) {
    const epoch = await recoverEpoch(join(root, name), options);
    if (epoch !== null) epochs.push(epoch);
  }
  return epochs;
}

async function recoverEpoch(dir: string, options: RecoveryOptions): Promise<Epoch | null> {
  const { files } = options;
  const meta = (await readJson(files, join(dir, 'meta.json'))) as EpochMeta | null;
  if (meta === null) {
    await removeUnstarted(dir, options);
    return null;
  }
  const declared = ((await readJson(files, join(dir, 'lost.json'))) as LostRange[] | null) ?? [];
  const { segments, missing, lastEvent, hasStopped } = await recoverSegments(dir, options);
  const lost = [...declared, ...missing.flatMap((range) => without(range, declared))];
  const reached = await readJson(files, join(dir, REACHED_FILE));
  return new Epoch(files, {
    meta,
    dir,
    segments,
    lost: lost.sort((a, b) => a.from - b.from),
    lastSeq: typeof reached === 'number' ? reached : 0,
    lastEvent,
    hasStopped,
  });
}

/** An epoch without meta.json died before its first record. If it has records all the same, it is left for people to look at. */
async function removeUnstarted(dir: string, { files, log }: RecoveryOptions): Promise<void> {
  if ((await files.list(dir)).some((name) => name.endsWith('.seg'))) {
    log.error({ dir }, 'epoch has records but no readable meta.json, ignored');
    return;
  }
  await files.remove(dir);
}

/** The parts of a range that are not declared lost yet. */
function without(range: LostRange, declared: readonly LostRange[]): LostRange[] {
  return declared.reduce<LostRange[]>(
    (parts, { from, to }) =>
      parts.flatMap((part) =>
        [
          { ...part, to: Math.min(part.to, from - 1) },
          { ...part, from: Math.max(part.from, to + 1) },
        ].filter((each) => each.from <= each.to),
      ),
    [range],
  );
}

async function recoverSegments(
  dir: string,
  { files, log }: RecoveryOptions,
): Promise<
  Required<Pick<EpochContent, 'lastEvent' | 'hasStopped'>> & { segments: Segment[]; missing: LostRange[] }
> {
  const segments: Segment[] = [];
  const missing: LostRange[] = [];
  // Segments may overlap: records of a failed write are written again to the next segment.
  let reached = 0;
  let end = 0;
  let lastEvent = 0;
  let hasStopped = false;
  for (const file of (await files.list(dir)).filter((name) => name.endsWith('.seg')).sort()) {
    const path = join(dir, file);
    const { entries, isWhole, highestUntrusted } = parseSegment(await files.readText(path));
    const { size, mtimeMs } = await files.stat(path);
    if (!isWhole) log.warn({ file, entries: entries.length }, 'spool segment has a corrupt tail');
    const first = entries[0]?.seq;
    const last = entries.at(-1)?.seq;
    const event = entries.findLast(({ record }) => record.type === 'container_event');
    lastEvent = Math.max(lastEvent, event?.record.t ?? 0);
    hasStopped ||= entries.some(
      ({ record }) => record.type === 'gap' && record.scope === 'agent' && record.to === null,
    );
    if (first !== undefined && last !== undefined) {
      if (segments.length > 0 && first > reached + 1) {
        missing.push({ from: reached + 1, to: first - 1, cause: 'spool_corrupt' });
      }
      segments.push({ file, first, last, bytes: size, modifiedMs: mtimeMs });
      reached = Math.max(reached, last);
    }
    end = Math.max(end, highestUntrusted);
  }
  if (end > reached) missing.push({ from: reached + 1, to: end, cause: 'spool_corrupt' });
  return { segments, missing, lastEvent, hasStopped };
}
