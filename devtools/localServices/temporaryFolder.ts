/*
 * Temporary folders with the process id of their owner in their name, so that the next process can find and remove those
 * of an owner that was killed.
 */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TemporaryFolder {
  readonly dir: string;
  /** Removes the folder, unless the caller named it. */
  remove(): void;
}

/**
 * A new folder below the system's temporary folder, or the `wanted` one, as a path without symbolic links. Also removes
 * the `left` folders; a caller that has to clean up more in them does that first.
 */
export function temporaryFolder(
  what: string,
  wanted: string | undefined,
  left = abandonedFolders(what),
): TemporaryFolder {
  if (wanted !== undefined) {
    mkdirSync(wanted, { recursive: true });
    return { dir: realpathSync(wanted), remove: () => {} };
  }
  for (const folder of left) removeAbandoned(folder);
  const dir = mkdtempSync(join(realpathSync(tmpdir()), `plegwatch-${what}-${process.pid}-`));
  chmodSync(dir, 0o755);
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/** Folders of this kind whose owner has ended. */
export function abandonedFolders(what: string): string[] {
  const prefix = `plegwatch-${what}-`;
  return readdirSync(tmpdir())
    .filter((name) => name.startsWith(prefix))
    .filter((name) => {
      const owner = /^(\d+)-/.exec(name.slice(prefix.length))?.[1];
      return owner !== undefined && !alive(Number(owner));
    })
    .map((name) => join(tmpdir(), name));
}

function removeAbandoned(dir: string): void {
  try {
    rmSync(dir, { recursive: true, force: true });
  } catch {
    // It belongs to another user, or another process is removing it now.
  }
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
