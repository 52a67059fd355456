/*
 * The lock of a spool folder: one agent per node, across containers.
 *
 * The kernel releases it when its holder dies, however it dies. Node has no call for such a lock, but comes with SQLite: a
 * database in exclusive mode holds an fcntl lock on its file. The database stays empty.
 *
 * The lock is on the file, not on its name: if someone deletes the file or replaces the folder, another agent can lock the next one.
 * The holder notices, changes nothing any more that both have in common, and starts again.
 */
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../platform/errors.ts';
import { type SpoolFiles, spoolUnusable } from './files.ts';

const RETRY_MS = 500;
const SQLITE_BUSY = 5;

export interface SpoolLock {
  /** Whether the file that is locked still has its name. */
  isHeld(): boolean;
  release(): void;
}

/** Files whose names change only while the lock is held: two agents must not write one list of losses, or delete each other's records. */
export function whileHeld(files: SpoolFiles, lock: SpoolLock): SpoolFiles {
  const checked = <T>(work: () => Promise<T>): Promise<T> =>
    lock.isHeld() ? work() : Promise.reject(spoolUnusable('the lock of the spool is gone'));
  return {
    open: (path, flags) => files.open(path, flags),
    readText: (path) => files.readText(path),
    makeFolder: (path) => files.makeFolder(path),
    list: (path) => files.list(path),
    rename: (from, to) => checked(() => files.rename(from, to)),
    remove: (path) => checked(() => files.remove(path)),
    stat: (path) => files.stat(path),
    usage: (path) => files.usage(path),
  };
}

/**
 * Takes the lock. While another agent holds it (a rolling update, a second release), it calls `onWait` once and waits.
 * Throws SPOOL_UNUSABLE if the folder cannot be locked, or the signal's reason when it is aborted.
 */
export async function lockSpool(dir: string, onWait: () => void, signal: AbortSignal): Promise<SpoolLock> {
  for (let tries = 0; ; tries += 1) {
    const lock = tryLock(join(dir, 'lock'));
    if (lock !== null) return lock;
    if (tries === 0) onWait();
    await sleep(RETRY_MS, undefined, { signal });
  }
}

function tryLock(file: string): SpoolLock | null {
  let database: DatabaseSync | undefined;
  try {
    if (lstatSync(file, { throwIfNoEntry: false })?.isFile() === false)
      throw new Error('an object with its name is no file');
    database = new DatabaseSync(file);
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    const held = database;
    const locked = idOf(file);
    return { isHeld: () => isStill(file, locked), release: () => held.close() };
  } catch (error) {
    database?.close();
    if (error instanceof Error && Reflect.get(error, 'errcode') === SQLITE_BUSY) return null;
    throw spoolUnusable(`The spool folder cannot be locked: ${messageOf(error)}.`, { cause: error });
  }
}

/** A disk that cannot say which file it is does not free the lock. */
function isStill(file: string, locked: string | null): boolean {
  try {
    return idOf(file) === locked;
  } catch {
    return true;
  }
}

/** Which file has a name; the number of a file that is open is not used again. Null if there is none. */
function idOf(file: string): string | null {
  const found = lstatSync(file, { throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev} ${found.ino}`;
}
