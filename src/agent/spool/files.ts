/*
 * The files of the spool. The file system is a port, so that tests can use a disk that fills up or loses power at any step.
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type * as v from 'valibot';
import { errorCode, isMissing, messageOf, PlegwatchError } from '../../platform/errors.ts';
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
  /** The files and folders in a folder, without links and what else may be there. */
  list(path: string): Promise<string[]>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file, or a folder with its content. Does nothing if there is none. */
  remove(path: string): Promise<void>;
  stat(path: string): Promise<{ readonly size: number; readonly mtimeMs: number }>;
  /** The used share of the file system of a folder, from 0 to 1, as in `df`: blocks reserved for root count as used. */
  usage(path: string): Promise<number>;
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_TRUNC, O_APPEND, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
/** Without waiting for the other end of a pipe, and without following a link. */
const OPEN_FLAGS = {
  r: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
  w: O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK,
  ax: O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_NONBLOCK,
} as const;

/**
 * Opens a file or folder beside the spool, and nothing else: a pipe would be waited for without an end, and a link leads to a file that is
 * not ours. Throws ELOOP for a link, and ENXIO or NOT_A_FILE for the rest.
 */
export async function openPlain(
  path: string,
  flags: keyof typeof OPEN_FLAGS,
  mode = 0o666,
): Promise<FileHandle> {
  const handle = await open(path, OPEN_FLAGS[flags], mode);
  const found = await handle.stat();
  if (found.isFile() || found.isDirectory()) return handle;
  await handle.close();
  throw Object.assign(new Error(`${path} is neither a file nor a folder`), { code: 'NOT_A_FILE' });
}

/** The text of a file. */
export async function readPlain(path: string): Promise<string> {
  const handle = await openPlain(path, 'r');
  try {
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

export const LOCAL_FILES: SpoolFiles = {
  open: openPlain,
  readText: readPlain,
  makeFolder: async (path) => void (await mkdir(path, { recursive: true })),
  async list(path) {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((each) => each.isFile() || each.isDirectory()).map(({ name }) => name);
  },
  rename,
  remove: (path) => rm(path, { recursive: true, force: true }),
  stat: lstat,
  async usage(path) {
    const { blocks, bfree, bavail } = await statfs(path);
    const used = blocks - bfree;
    return used === 0 ? 0 : used / (used + bavail);
  },
};

/** Whether an error means that there is no space, on the disk or in a quota. */
export const isFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(String(errorCode(error)));

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

/** Something else than a file has the name: a link, a pipe that nobody reads, another thing, a folder. */
const NO_FILE: readonly unknown[] = ['ELOOP', 'ENXIO', 'NOT_A_FILE', 'EISDIR'];
const isNoFile = (error: unknown): boolean => NO_FILE.includes(errorCode(error));

/** Whether an error means that data cannot be read, now and probably for ever. */
export const isUnreadable = (error: unknown): boolean =>
  UNREADABLE.includes(errorCode(error)) || isNoFile(error);

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
    if (error instanceof SyntaxError || isMissing(error) || errorCode(error) === 'ENOTDIR') return null;
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
  const file = await openNew(files, `${path}.new`);
  try {
    await writeAll(file, JSON.stringify(value));
    await beforeClose(file);
  } finally {
    await file.close();
  }
  await files.rename(`${path}.new`, path);
}

/** Opens an empty file under a name that is ours. Something else that has it is removed. */
export async function openNew(files: SpoolFiles, path: string): Promise<SpoolFile> {
  try {
    return await files.open(path, 'w');
  } catch (error) {
    if (!isNoFile(error)) throw error;
    await files.remove(path);
    return files.open(path, 'w');
  }
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
