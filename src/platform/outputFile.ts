/*
 * A file that a command writes for its user. It has its name when it is complete; until then the name ends in `.part`.
 */
import { open, rename, rm } from 'node:fs/promises';
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
    throw unwritable(option, file, error);
  });
}

/** It would take the space that is missing. The error says why there is no file; that this failed too would add nothing. */
const remove = (part: string): Promise<void> => rm(part, { force: true }).catch(() => undefined);

export function unwritable(option: string, path: string, cause: unknown): PlegwatchError {
  const message = messageOf(cause);
  const cure = /^(ENOSPC|EDQUOT|EFBIG)/.test(message)
    ? `Free space there, or set ${option} to a place that has more.`
    : `Set ${option} to a place that exists and where this user may write.`;
  return new PlegwatchError('EXPORT_UNWRITABLE', `${option}: ${path} cannot be written: ${message}.`, cure, {
    cause,
  });
}
