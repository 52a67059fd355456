/*
 * Loaded into an agent before its program: makes its disk fail as a file says. Segments have sectors that cannot be read, are read
 * from another place, cannot be synced, or are slow to write.
 *
 *   node --import 'file:///…/support/failingDisk.ts?as=/path/of/the/file' …
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import promises, { type FileHandle } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';

const HERE = new URL(import.meta.url);
export const SECTOR_BYTES = 4096;

export interface DiskFailures {
  readonly failsToSync: boolean;
  /** How long a write or a sync takes at least. */
  readonly delayMs: number;
  readonly unreadable: readonly { readonly path: string; readonly sector: number }[];
  /** Another sector of the file is read in place of one. */
  readonly misread: readonly { readonly path: string; readonly sector: number; readonly other: number }[];
}

/** Node's arguments for a program whose disk `failDisk` can make fail. */
export function failingDiskArgs(file: string): string[] {
  const module = new URL(HERE.pathname, 'file:');
  module.searchParams.set('as', file);
  return ['--import', module.href];
}

export function diskFailures(file: string): DiskFailures {
  return existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as DiskFailures)
    : { failsToSync: false, delayMs: 0, unreadable: [], misread: [] };
}

/** Takes effect at the next call. */
export function failDisk(file: string, failures: DiskFailures): void {
  writeFileSync(`${file}.new`, JSON.stringify(failures));
  renameSync(`${file}.new`, file);
}

const file = HERE.searchParams.get('as');
if (file !== null) {
  const { open } = promises;
  promises.open = async (path, ...more) => {
    const handle = await open(path, ...more);
    return String(path).endsWith('.seg') ? failing(handle, String(path), file) : handle;
  };
  syncBuiltinESMExports();
}

function failing(handle: FileHandle, path: string, as: string): FileHandle {
  const read = handle.read.bind(handle) as (...args: unknown[]) => Promise<unknown>;
  const write = handle.write.bind(handle) as (...args: unknown[]) => Promise<unknown>;
  const datasync = handle.datasync.bind(handle);
  const failingRead = async (into: Buffer, offset: number, length: number, at: number) => {
    const isHere = (each: { readonly path: string; readonly sector: number }) =>
      each.path === path && each.sector * SECTOR_BYTES < at + length && (each.sector + 1) * SECTOR_BYTES > at;
    const { unreadable, misread } = diskFailures(as);
    if (unreadable.some(isHere)) throw failure();
    const result = await read(into, offset, length, at);
    for (const { sector, other } of misread.filter(isHere)) {
      const start = sector * SECTOR_BYTES;
      const [from, to] = [Math.max(at, start), Math.min(at + length, start + SECTOR_BYTES)];
      await read(into, offset + from - at, to - from, other * SECTOR_BYTES + from - start);
    }
    return result;
  };
  return Object.assign(handle, {
    read: failingRead,
    write: async (...args: unknown[]) => {
      const { delayMs } = diskFailures(as);
      if (delayMs > 0) await delay(delayMs);
      return write(...args);
    },
    datasync: async () => {
      const { failsToSync, delayMs } = diskFailures(as);
      if (delayMs > 0) await delay(delayMs);
      if (failsToSync) throw failure();
      return datasync();
    },
  });
}

const failure = (): Error => Object.assign(new Error('EIO: the disk fails'), { code: 'EIO' });
