/*
 * A new epoch: its incarnation, its name, and the folder that is named after both. The next one begins when it is full: long before a seq, an
 * offset or the number of a context reaches what an envelope and its columns can hold.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { readClocks } from '../../platform/clock.ts';
import { type Micros, type Mono, millis } from '../../protocol/units.ts';
import { Epoch, type EpochMeta } from './epoch.ts';
import { type SpoolFiles, syncFolder, writeDurably } from './files.ts';

/**
 * An incarnation is at least the number of seconds since this time, so that it is higher than those of a spool that was
 * lost, and of one that ran from memory while this spool could not be used.
 */
const INCARNATIONS_SINCE_S = Date.UTC(2026, 0, 1) / 1000;
/** A clock that gives more is ignored: the envelope's field could not count much further. */
const MAX_INCARNATION_BY_CLOCK = 2 ** 30;

export interface NewEpochOptions {
  readonly dir: string;
  readonly cluster: string;
  readonly node: string;
  readonly machine: string;
  readonly bootId: string;
  readonly files: SpoolFiles;
}

/** `start` is the time that the offsets of the epoch's records count from. */
export interface NewEpoch {
  readonly epoch: Epoch;
  readonly start: Mono;
}

/** Creates an epoch after the earlier ones, and after the incarnation of the last heartbeat, whose epoch may be gone. */
export async function createEpoch(
  options: NewEpochOptions,
  earlier: readonly Epoch[],
  lastIncarnation: number,
): Promise<NewEpoch> {
  const last = earlier.at(-1)?.meta;
  const { mono: start, wall: startedWall } = readClocks();
  const previous = Math.max(last?.incarnation ?? 0, lastIncarnation);
  const byClock = Math.floor(startedWall / 1e6) - INCARNATIONS_SINCE_S;
  const meta: EpochMeta = {
    epoch: randomUUID(),
    incarnation: Math.max(previous + 1, byClock <= MAX_INCARNATION_BY_CLOCK ? byClock : 1),
    prev: last?.epoch ?? null,
    cluster: options.cluster,
    node: options.node,
    bootId: options.bootId,
    machine: options.machine,
    startedWall,
    startedMono: start,
  };
  const dir = join(options.dir, 'epochs', `${String(meta.incarnation).padStart(10, '0')}-${meta.epoch}`);
  await options.files.makeFolder(dir);
  await writeDurably(options.files, dir, 'meta.json', meta);
  // Without its own name on the disk, a folder is lost with everything that was synced in it.
  await syncFolder(options.files, join(options.dir, 'epochs'));
  return { epoch: new Epoch(options.files, { meta, dir }), start };
}

/** Half of the seqs of an int4. */
export const MAX_EPOCH_RECORDS = 2 ** 30;
/** A record's offset may be 400 days. */
export const MAX_EPOCH_AGE: Micros = millis(90 * 86_400_000);
/** Half of the contexts of an envelope. */
export const MAX_EPOCH_CONTEXTS = 500_000;

export interface EpochExtent {
  readonly records: number;
  readonly contexts: number;
  readonly age: Micros;
}

export const isEpochFull = (
  { records, contexts, age }: EpochExtent,
  maxAge: Micros = MAX_EPOCH_AGE,
): boolean => records >= MAX_EPOCH_RECORDS || contexts >= MAX_EPOCH_CONTEXTS || age >= maxAge;
