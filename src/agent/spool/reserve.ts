/*
 * The reserve: a file without a purpose but its size. On a disk that is full it is given up, so that what was lost can still
 * be written down; it is laid in again when there is room.
 */
import { join } from 'node:path';
import { type Files, writeAll } from './files.ts';

const NAME = 'reserve';
const BYTES = 64 * 1024;

/** Lays the reserve in where it is not there whole. On a full disk there is none. */
export async function layReserve(files: Files, dir: string): Promise<void> {
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
    if (codeOf(error) !== 'ENOSPC') throw error;
    await files.remove(path);
  }
}

/** Does what has to be written; on a full disk once more, in the room of the reserve. */
export async function withReserve(files: Files, dir: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (codeOf(error) !== 'ENOSPC') throw error;
    await files.remove(join(dir, NAME));
    await write();
  }
}

async function sizeOf(files: Files, path: string): Promise<number> {
  try {
    return (await files.stat(path)).size;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 0;
    throw error;
  }
}

const codeOf = (error: unknown): unknown => Reflect.get(Object(error), 'code');
