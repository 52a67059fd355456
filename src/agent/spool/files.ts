/*
 * Files of the spool: small ones that are there as a whole or not at all, and writes that are complete or fail.
 */
import { type FileHandle, open, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A small file as a whole, or null where it is not there or only half there. */
export async function readWhole(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError || Reflect.get(Object(error), 'code') === 'ENOENT') return null;
    throw error;
  }
}

/** Writes a small file so that it is there as a whole or not at all. */
export async function writeWhole(file: string, value: unknown): Promise<void> {
  await writeFile(`${file}.new`, JSON.stringify(value));
  await rename(`${file}.new`, file);
}

/** The same, and it is there after a power cut too: what follows may rely on it. */
export async function writeDurably(dir: string, name: string, value: unknown): Promise<void> {
  const file = await open(join(dir, `${name}.new`), 'w');
  try {
    await file.writeFile(JSON.stringify(value));
    await file.datasync();
  } finally {
    await file.close();
  }
  await rename(join(dir, `${name}.new`), join(dir, name));
  await syncFolder(dir);
}

/** A new file is found again after a power cut only when its folder was synced too. */
export async function syncFolder(dir: string): Promise<void> {
  const folder = await open(dir, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Writes all of a text, or throws. Returns its length in bytes. */
export async function writeAll(handle: FileHandle, text: string): Promise<number> {
  const { bytesWritten } = await handle.write(text);
  if (bytesWritten < Buffer.byteLength(text)) throw new Error('the disk took only a part of a write');
  return bytesWritten;
}
