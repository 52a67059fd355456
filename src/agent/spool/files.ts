/*
 * The files of the spool. The file system is a port, so that tests can use a disk that fills up or loses power at any step.
 */
import { mkdir, open, readdir, readFile, rename, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type * as v from 'valibot';
import { messageOf, PlegwatchError } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { parse } from '../../protocol/validation.ts';

/** An open file or folder; a file handle of Node is one. */
export interface SpoolFile {
  write(text: string): Promise<{ readonly bytesWritten: number }>;
  read(into: Buffer, offset: number, length: number, at: number): Promise<{ readonly bytesRead: number }>;
  datasync(): Promise<void>;
  /** On a folder: makes the names in it survive a power cut. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** A file system. The calls behave like those of `node:fs/promises`, error codes included. */
export interface SpoolFiles {
  open(path: string, flags: 'r' | 'w' | 'ax'): Promise<SpoolFile>;
  readText(path: string): Promise<string>;
  makeFolder(path: string): Promise<void>;
  list(path: string): Promise<string[]>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file, or a folder with its content. Does nothing if there is none. */
  remove(path: string): Promise<void>;
  stat(path: string): Promise<{ readonly size: number; readonly mtimeMs: number }>;
  /** The used share of the file system of a folder, from 0 to 1, as in `df`: blocks reserved for root count as used. */
  usage(path: string): Promise<number>;
}

export const LOCAL_FILES: SpoolFiles = {
  open,
  readText: (path) => readFile(path, 'utf8'),
  makeFolder: async (path) => void (await mkdir(path, { recursive: true })),
  list: (path) => readdir(path),
  rename,
  remove: (path) => rm(path, { recursive: true, force: true }),
  stat,
  async usage(path) {
    const { blocks, bfree, bavail } = await statfs(path);
    const used = blocks - bfree;
    return used === 0 ? 0 : used / (used + bavail);
  },
};

export const errorCode = (error: unknown): unknown => Reflect.get(Object(error), 'code');

/** `why`: what is wrong with the folder, the disk or the lock. */
export const spoolUnusable = (why: string, options?: ErrorOptions): PlegwatchError =>
  new PlegwatchError(
    'SPOOL_UNUSABLE',
    why,
    'Point --spool-dir (PLEGWATCH_SPOOL_DIR) at a folder on a local disk that has space and that the agent may write to.',
    options,
  );

/** The disk or the file system cannot read its own data; libuv has no name for EBADMSG (74) and EUCLEAN (117). */
const UNREADABLE: readonly unknown[] = [
  'EIO',
  'ENODATA',
  'EBADMSG',
  'Unknown system error -74',
  'Unknown system error -117',
];

/** Whether an error means that data cannot be read, now and probably for ever. */
export const isUnreadable = (error: unknown): boolean => UNREADABLE.includes(errorCode(error));

/** The folder of a spool, the file system that it is in, and the log that says what cannot be read or written there. */
export interface SpoolFolder {
  readonly dir: string;
  readonly files: SpoolFiles;
  readonly log: Logger;
}

/**
 * Reads a JSON file. Null if it does not exist, is incomplete, cannot be read or does not fit the schema: no file is worth more than the
 * agent's start.
 */
export async function readJson<S extends v.GenericSchema>(
  { files, log }: Pick<SpoolFolder, 'files' | 'log'>,
  file: string,
  schema: S,
): Promise<v.InferOutput<S> | null> {
  try {
    const read = parse(schema, JSON.parse(await files.readText(file)));
    if (read.ok) return read.value;
    log.error({ file, error: read.error }, 'spool file unreadable');
  } catch (error) {
    if (error instanceof SyntaxError || errorCode(error) === 'ENOENT') return null;
    if (!isUnreadable(error)) throw error;
    log.error({ file, error: messageOf(error) }, 'spool file unreadable');
  }
  return null;
}

/** Writes a JSON file, so that readers find either the old or the new one. It may be lost in a power cut. */
export async function writeJson(files: SpoolFiles, path: string, value: unknown): Promise<void> {
  await replace(files, path, value, async () => undefined);
}

/** Writes a JSON file in the same way, and it survives a power cut. */
export async function writeDurably(
  files: SpoolFiles,
  dir: string,
  name: string,
  value: unknown,
): Promise<void> {
  await replace(files, join(dir, name), value, (file) => file.datasync());
  await syncFolder(files, dir);
}

async function replace(
  files: SpoolFiles,
  path: string,
  value: unknown,
  beforeClose: (file: SpoolFile) => Promise<void>,
): Promise<void> {
  const file = await files.open(`${path}.new`, 'w');
  try {
    await writeAll(file, JSON.stringify(value));
    await beforeClose(file);
  } finally {
    await file.close();
  }
  await files.rename(`${path}.new`, path);
}

/** Makes the names in a folder survive a power cut; without it, a new file may be gone although its data was synced. */
export async function syncFolder(files: SpoolFiles, dir: string): Promise<void> {
  const folder = await files.open(dir, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Writes a whole text and returns its length in bytes. Throws if only a part was written. */
export async function writeAll(file: SpoolFile, text: string): Promise<number> {
  const { bytesWritten } = await file.write(text);
  if (bytesWritten < Buffer.byteLength(text)) throw spoolUnusable('the disk wrote only a part of the data');
  return bytesWritten;
}
