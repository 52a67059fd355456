/*
 * Temporary folders that carry the process id of their owner in their name, so that those of an owner that was killed
 * can be found and cleaned by the next one.
 */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Scratch {
  readonly dir: string;
  /** Removes the folder, unless the caller named it: then it is the caller's. */
  remove(): void;
}

/**
 * A new folder under the system's temporary folder, or the one the caller wants. Its path has no links in it. Removes
 * the folders of `left`: whoever has to do more than that about them does it before.
 */
export function scratch(what: string, wanted: string | undefined, left = abandoned(what)): Scratch {
  if (wanted !== undefined) {
    mkdirSync(wanted, { recursive: true });
    return { dir: realpathSync(wanted), remove: () => {} };
  }
  for (const folder of left) removeAbandoned(folder);
  const dir = mkdtempSync(join(realpathSync(tmpdir()), `plegwatch-${what}-${process.pid}-`));
  chmodSync(dir, 0o755);
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/** Folders of this kind whose owner is no more. */
export function abandoned(what: string): string[] {
  const mark = `plegwatch-${what}-`;
  return readdirSync(tmpdir())
    .filter((name) => name.startsWith(mark))
    .filter((name) => {
      const owner = /^(\d+)-/.exec(name.slice(mark.length))?.[1];
      return owner !== undefined && !alive(Number(owner));
    })
    .map((name) => join(tmpdir(), name));
}

function removeAbandoned(dir: string): void {
  try {
    rmSync(dir, { recursive: true, force: true });
  } catch {
    // Another user's, or another process is removing it at this moment: not ours to insist on.
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
