/*
 * A file that a command writes for its user. It has its name when it is complete; until then the name ends in `.part`. A written file survives the end of
 * its machine where the platform can sync folders.
 */
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { messageOf, PlegwatchError } from './errors.ts';

/** `option` names the setting from which the file has its place. Throws EXPORT_UNWRITABLE, and what reading `chunks` throws. */
export async function writeOutput(option: string, file: string, chunks: Chunks): Promise<void> {
  const part = `${file}.part`;
  await writeSynced(option, part, chunks, file);
  await nameOutput(option, part, file).catch(async (error: unknown) => {
    await remove(part);
    throw error;
  });
}

type Chunks = AsyncIterable<Uint8Array> | Iterable<string>;

/** Writes a file that has not its final name, and leaves none where it throws what {@link writeOutput} does. `named`: in the error. */
export async function writeSynced(
  option: string,
  part: string,
  chunks: Chunks,
  named: string = part,
): Promise<void> {
  const onDisk = <T>(call: Promise<T>): Promise<T> =>
    call.catch((error: unknown) => {
      throw unwritable(option, named, error);
    });
  const handle = await onDisk(open(part, 'w'));
  try {
    try {
      for await (const chunk of chunks) await onDisk(handle.writeFile(chunk));
      await onDisk(handle.sync());
    } finally {
      await onDisk(handle.close());
    }
  } catch (error) {
    await remove(part);
    throw error;
  }
}

/** Gives a complete file its name, in place of one that has it. Throws EXPORT_UNWRITABLE, and leaves the file: nobody may be able to write it again. */
export async function nameOutput(option: string, part: string, file: string): Promise<void> {
  await rename(part, file).catch((error: unknown) => {
    const cure = `This mount cannot rename files: use one that can, or set ${option} to a volume and copy the files.`;
    throw unwritable(option, file, error, CANNOT_RENAME.test(codeOf(error)) ? cure : undefined);
  });
  await syncFolder(option, dirname(file));
}

/** As `mkdir -p`. Throws EXPORT_UNWRITABLE. */
export async function makeFolder(option: string, folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true }).catch((error: unknown) => {
    throw unwritable(option, folder, error);
  });
  if (first === undefined) return;
  for (let made = resolve(folder); made.length >= resolve(first).length; made = dirname(made))
    await syncFolder(option, dirname(made));
}

/** Makes the names in a folder durable. */
async function syncFolder(option: string, folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    if (!CANNOT_SYNC.test(codeOf(error))) throw unwritable(option, folder, error);
  }
}

/** As mounts of buckets answer, and other file systems across their borders. */
const CANNOT_RENAME = /^(ENOSYS|ENOTSUP|EOPNOTSUPP|EPERM|EINVAL|EXDEV)$/;
/** As file systems without this, platforms on which folders are no files, and folders that only take files answer. */
const CANNOT_SYNC = /^(ENOSYS|ENOTSUP|EOPNOTSUPP|EPERM|EINVAL|EISDIR|EBADF|EACCES)$/;

const codeOf = (error: unknown): string => String(Reflect.get(Object(error), 'code'));

/** It would take the space that is missing. The error says why there is no file; that this failed too would add nothing. */
const remove = (part: string): Promise<void> => rm(part, { force: true }).catch(() => undefined);

export function unwritable(option: string, path: string, cause: unknown, ofCall?: string): PlegwatchError {
  const message = messageOf(cause);
  const cure = /^(ENOSPC|EDQUOT|EFBIG)/.test(message)
    ? `Free space there, or set ${option} to a place that has more.`
    : (ofCall ?? `Set ${option} to a place that exists and where this user may write.`);
  return new PlegwatchError('EXPORT_UNWRITABLE', `${option}: ${path} cannot be written: ${message}.`, cure, {
    cause,
  });
}
