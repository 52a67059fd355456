/*
 * Files of the spool: small ones that are there as a whole or not at all, and writes that are complete or fail.
 *
 * What the spool asks of a file system is a port, so that a test can own one that loses power at every step.
 */
import { mkdir, open, readdir, readFile, rename, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';

/** A file that is open. A handle of Node is one. */
export interface OpenFile {
  write(text: string): Promise<{ readonly bytesWritten: number }>;
  read(into: Buffer, offset: number, length: number, at: number): Promise<{ readonly bytesRead: number }>;
  datasync(): Promise<void>;
  /** Of a folder: the names in it are there after a power cut. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** What the spool asks of a file system; each as in `node:fs/promises`, with its error codes. */
export interface Files {
  open(path: string, flags: 'r' | 'w' | 'ax'): Promise<OpenFile>;
  readText(path: string): Promise<string>;
  makeFolder(path: string): Promise<void>;
  list(path: string): Promise<string[]>;
  rename(from: string, to: string): Promise<void>;
  /** A file, or a folder with all that is in it; nothing where it is not there. */
  remove(path: string): Promise<void>;
  stat(path: string): Promise<{ readonly size: number; readonly mtimeMs: number }>;
  /** How full the file system of a folder is, from 0 to 1, as `df` tells it: what is kept for root counts as full. */
  full(path: string): Promise<number>;
}

/** The file system of this machine. */
export const MACHINE_FILES: Files = {
  open,
  readText: (path) => readFile(path, 'utf8'),
  makeFolder: async (path) => void (await mkdir(path, { recursive: true })),
  list: (path) => readdir(path),
  rename,
  remove: (path) => rm(path, { recursive: true, force: true }),
  stat,
  async full(path) {
    const { blocks, bfree, bavail } = await statfs(path);
    const used = blocks - bfree;
    return used === 0 ? 0 : used / (used + bavail);
  },
};

/** A small file as a whole, or null where it is not there or only half there. */
export async function readWhole(files: Files, file: string): Promise<unknown> {
  try {
    return JSON.parse(await files.readText(file));
  } catch (error) {
    if (error instanceof SyntaxError || Reflect.get(Object(error), 'code') === 'ENOENT') return null;
    throw error;
  }
}

/** Writes a small file so that it is there as a whole or not at all. */
export async function writeWhole(files: Files, path: string, value: unknown): Promise<void> {
  await writeNew(files, path, value, async () => undefined);
}

/** The same, and it is there after a power cut too: what follows may rely on it. */
export async function writeDurably(files: Files, dir: string, name: string, value: unknown): Promise<void> {
  await writeNew(files, join(dir, name), value, (file) => file.datasync());
  await syncFolder(files, dir);
}

async function writeNew(
  files: Files,
  path: string,
  value: unknown,
  written: (file: OpenFile) => Promise<void>,
): Promise<void> {
  const file = await files.open(`${path}.new`, 'w');
  try {
    await writeAll(file, JSON.stringify(value));
    await written(file);
  } finally {
    await file.close();
  }
  await files.rename(`${path}.new`, path);
}

/** A new file is found again after a power cut only when its folder was synced too. */
export async function syncFolder(files: Files, dir: string): Promise<void> {
  const folder = await files.open(dir, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Writes all of a text, or throws. Returns its length in bytes. */
export async function writeAll(file: OpenFile, text: string): Promise<number> {
  const { bytesWritten } = await file.write(text);
  if (bytesWritten < Buffer.byteLength(text)) throw new Error('the disk took only a part of a write');
  return bytesWritten;
}
