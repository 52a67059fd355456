/*
 * The past: epochs whose last record was acknowledged and deleted. That they were, and how far they went, is kept in a small
 * file: a store that is restored from a backup older than that has to hear what it lost, and nobody else could tell.
 *
 * They are asked about when an agent starts, when a store is found to know less than before, and once an hour. Bounded by
 * number and by age.
 */
import { join } from 'node:path';
import { Epoch, type EpochMeta, type Retired } from './epoch.ts';
import { type Files, readWhole, writeDurably } from './files.ts';

const NAME = 'past.json';
/** The most epochs that are remembered; one is a line of 400 bytes. */
export const MOST_PAST = 32;
/** For so long: no backup that is older is of use to anybody. */
export const PAST_FOR_MS = 30 * 86_400_000;

interface Line extends Retired {
  readonly meta: EpochMeta;
  readonly last: number;
}

/** The epochs of the past that are remembered, in the order of their lives; those that are still there as folders are not. */
export async function readPast(files: Files, dir: string, there: readonly Epoch[]): Promise<Epoch[]> {
  const read = await readWhole(files, join(dir, NAME));
  // Its shape is ours: it is there as a whole or not at all.
  const lines = Array.isArray(read) ? (read as Line[]) : [];
  return lines
    .filter(({ meta }) => !there.some((epoch) => epoch.meta.epoch === meta.epoch))
    .map(({ meta, last, at, context }) => {
      const epoch = new Epoch(files, { meta, dir: '', segments: [], lost: [] });
      epoch.retire({ at, context }, last);
      return epoch;
    });
}

async function writePast(files: Files, dir: string, epochs: readonly Epoch[]): Promise<void> {
  const lines = epochs.flatMap(({ meta, written, retired }): Line[] =>
    retired === null ? [] : [{ meta, last: written, ...retired }],
  );
  await writeDurably(files, dir, NAME, lines);
}

/** An epoch goes into the past, and its folder goes. An epoch without a record is forgotten at once. */
export async function retire(files: Files, dir: string, epochs: Epoch[], epoch: Epoch): Promise<void> {
  if (epoch.written === 0) {
    forget(epochs, epoch);
  } else {
    const [entry] = await epoch.read(epoch.floor, 1, 1);
    epoch.retire({ at: Date.now(), context: entry?.context ?? null });
    await writePast(files, dir, epochs);
    epoch.segments.length = 0;
    epoch.forgetCache();
  }
  await files.remove(epoch.dir);
}

/** Forgets what is too much, or too old. */
export async function forgetOldest(files: Files, dir: string, epochs: Epoch[]): Promise<void> {
  const past = epochs.filter(({ retired }) => retired !== null);
  const horizon = Date.now() - PAST_FOR_MS;
  const gone = past.filter(({ retired }, i) => i < past.length - MOST_PAST || (retired?.at ?? 0) < horizon);
  if (gone.length === 0) return;
  for (const epoch of gone) forget(epochs, epoch);
  await writePast(files, dir, epochs);
}

function forget(epochs: Epoch[], epoch: Epoch): void {
  const at = epochs.indexOf(epoch);
  if (at !== -1) epochs.splice(at, 1);
}
