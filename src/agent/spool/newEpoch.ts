/*
 * The beginning of a life: its number, its epoch, and the folder that is named after both.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { monoNow, wallNow } from '../../platform/clock.ts';
import type { Mono } from '../../protocol/units.ts';
import { Epoch, type EpochMeta } from './epoch.ts';
import { type Files, syncFolder, writeDurably } from './files.ts';

/**
 * A life is at least the seconds since this moment, so that it comes after those of a spool that was lost, and after one
 * that ran from memory while this spool could not be used.
 */
const LIVES_SINCE_S = Date.UTC(2026, 0, 1) / 1000;
/** A clock that says more is not believed: an envelope could not carry much more. */
const LAST_CLOCKED_LIFE = 2 ** 30;

export interface BeginningOptions {
  readonly dir: string;
  readonly cluster: string;
  readonly node: string;
  readonly machine: string;
  readonly files: Files;
}

/** Begins a life after those of the past; `lastLife` is of the last one that gave a sign, also where its epoch is gone. */
export async function begin(
  options: BeginningOptions,
  past: readonly Epoch[],
  lastLife: number,
): Promise<{ epoch: Epoch; start: Mono }> {
  const last = past.at(-1)?.meta;
  const start = monoNow();
  const startedWall = wallNow();
  const previous = Math.max(last?.life ?? 0, lastLife);
  const clocked = Math.floor(startedWall / 1e6) - LIVES_SINCE_S;
  const meta: EpochMeta = {
    epoch: randomUUID(),
    life: Math.max(previous + 1, clocked <= LAST_CLOCKED_LIFE ? clocked : 1),
    prev: last?.epoch ?? null,
    cluster: options.cluster,
    node: options.node,
    bootId: await bootId(),
    machine: options.machine,
    startedWall,
  };
  const dir = join(options.dir, 'epochs', `${String(meta.life).padStart(10, '0')}-${meta.epoch}`);
  await options.files.makeFolder(dir);
  await writeDurably(options.files, dir, 'meta.json', meta);
  // What is synced in a folder is lost with it, where its own name is not on the disk.
  await syncFolder(options.files, join(options.dir, 'epochs'));
  return { epoch: new Epoch(options.files, { meta, dir, segments: [], lost: [] }), start };
}

async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}
