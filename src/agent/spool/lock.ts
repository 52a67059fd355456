/*
 * The lock of a spool folder: one agent per node, across containers.
 *
 * The kernel releases it when its holder dies, however it dies. Node has no call for such a lock, but comes with SQLite: a
 * database in exclusive mode holds an fcntl lock on its file. The database stays empty.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, PlegwatchError } from '../../platform/errors.ts';

const RETRY_MS = 500;
const SQLITE_BUSY = 5;

export interface SpoolLock {
  release(): void;
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
    database = new DatabaseSync(file);
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    const held = database;
    return { release: () => held.close() };
  } catch (error) {
    database?.close();
    if (error instanceof Error && Reflect.get(error, 'errcode') === SQLITE_BUSY) return null;
    throw new PlegwatchError(
      'SPOOL_UNUSABLE',
      `The spool folder cannot be locked: ${messageOf(error)}.`,
      'Point --spool-dir (PLEGWATCH_SPOOL_DIR) at a folder on a local disk that the agent may write to.',
      { cause: error },
    );
  }
}
