/*
 * The reserve: a file that only takes up space. On a full disk it is deleted, so that losses can still be saved; it is
 * written again when there is space.
 */
import { join } from 'node:path';
import { errorCode, type SpoolFiles, writeAll } from './files.ts';

const NAME = 'reserve';
const BYTES = 64 * 1024;

/** Writes the reserve if it is missing or incomplete. On a full disk there is none. */
export async function writeReserve(files: SpoolFiles, dir: string): Promise<void> {
  const path = join(dir, NAME);
  try {
    if ((await sizeOf(files, path)) >= BYTES) return;
    const file = await files.open(path, 'w');
    try {
      await writeAll(file, '\0'.repeat(BYTES));
      await file.datasync();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errorCode(error) !== 'ENOSPC') throw error;
    await files.remove(path);
  }
}

/** Runs a write. On a full disk it deletes the reserve and tries once more. */
export async function withReserve(files: SpoolFiles, dir: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (errorCode(error) !== 'ENOSPC') throw error;
    await files.remove(join(dir, NAME));
    await write();
  }
}

async function sizeOf(files: SpoolFiles, path: string): Promise<number> {
  try {
    return (await files.stat(path)).size;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return 0;
    throw error;
  }
}
