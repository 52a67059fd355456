/*
 * Recovery: what earlier lives left in a spool folder, as far as it can be believed, and what is missing from it.
 */
import { join } from 'node:path';
import type { Logger } from '../../platform/log.ts';
import { seq, type Wall, wall } from '../../protocol/units.ts';
import { Epoch, type EpochMeta, type Hole, type Segment } from './epoch.ts';
import { type Files, readWhole, writeDurably } from './files.ts';
import { readSegment } from './segment.ts';

/** How far an epoch went of which no segment is left. */
const REACHED = 'reached.json';

export interface RecoveryOptions {
  readonly dir: string;
  readonly log: Logger;
  readonly files: Files;
}

/** To be written before the last segment of an epoch goes. */
export const keepReached = (files: Files, { dir, written }: Epoch): Promise<void> =>
  writeDurably(files, dir, REACHED, written);

/** What earlier lives left, in the order of their lives. */
export async function recover(options: RecoveryOptions): Promise<Epoch[]> {
  const root = join(options.dir, 'epochs');
  const epochs: Epoch[] = [];
  for (const name of (await options.files.list(root)).sort()) {
    const epoch = await recoverEpoch(join(root, name), options);
    if (epoch !== null) epochs.push(epoch);
  }
  return epochs;
}

async function recoverEpoch(dir: string, options: RecoveryOptions): Promise<Epoch | null> {
  const meta = (await readWhole(options.files, join(dir, 'meta.json'))) as EpochMeta | null;
  if (meta === null) {
    await setAside(dir, options);
    return null;
  }
  const lost = ((await readWhole(options.files, join(dir, 'lost.json'))) as Hole[] | null) ?? [];
  const { segments, holes } = await recoverSegments(dir, options);
  const untold = holes.flatMap((hole) => without(hole, lost));
  const epoch = new Epoch(options.files, {
    meta,
    dir,
    segments,
    lost: [...lost, ...untold].sort((a, b) => a.from - b.from),
  });
  const reached = await readWhole(options.files, join(dir, REACHED));
  if (typeof reached === 'number') epoch.written = seq(Math.max(epoch.written, reached));
  return epoch;
}

/** An epoch that says nothing of itself died before its first record; if it did not, it is left to people. */
async function setAside(dir: string, { files, log }: RecoveryOptions): Promise<void> {
  if ((await files.list(dir)).some((name) => name.endsWith('.seg'))) {
    log.error({ dir }, 'an epoch has records and no readable meta.json, it is left alone');
    return;
  }
  await files.remove(dir);
}

/** The parts of a hole that are not in holes that were declared already. */
function without(hole: Hole, declared: readonly Hole[]): Hole[] {
  return declared.reduce<Hole[]>(
    (parts, { from, to }) =>
      parts.flatMap((part) =>
        [
          { ...part, to: Math.min(part.to, from - 1) },
          { ...part, from: Math.max(part.from, to + 1) },
        ].filter((each) => each.from <= each.to),
      ),
    [hole],
  );
}

async function recoverSegments(
  dir: string,
  { files, log }: RecoveryOptions,
): Promise<{ segments: Segment[]; holes: Hole[] }> {
  const segments: Segment[] = [];
  const holes: Hole[] = [];
  // Segments may overlap: what a failed write left behind is written again in the next one.
  let reached = 0;
  const ends: number[] = [];
  for (const file of (await files.list(dir)).filter((name) => name.endsWith('.seg')).sort()) {
    const path = join(dir, file);
    const { entries, whole, beyond } = readSegment(await files.readText(path));
    const { size, mtimeMs } = await files.stat(path);
    if (!whole) log.warn({ file, entries: entries.length }, 'a segment ends in what cannot be believed');
    const first = entries[0]?.seq;
    const last = entries.at(-1)?.seq;
    if (first !== undefined && last !== undefined) {
      if (segments.length > 0 && first > reached + 1) {
        holes.push({ from: reached + 1, to: first - 1, cause: 'spool_corrupt' });
      }
      segments.push({ file, first, last, bytes: size, modified: mtimeMs });
      reached = Math.max(reached, last);
    }
    ends.push(beyond);
  }
  const end = Math.max(0, ...ends);
  if (end > reached) holes.push({ from: reached + 1, to: end, cause: 'spool_corrupt' });
  return { segments, holes };
}

/** The last sign of life that is there, and of which life it was. */
export async function readAlive(files: Files, dir: string): Promise<{ at: Wall; life: number } | null> {
  const alive = Object(await readWhole(files, join(dir, 'alive')));
  const at: unknown = Reflect.get(alive, 'wall');
  const life: unknown = Reflect.get(alive, 'life');
  if (!Number.isSafeInteger(at) || !Number.isSafeInteger(life)) return null;
  return { at: wall(Number(at)), life: Number(life) };
}
