/*
 * Why this machine cannot run a part of the demo; null when it can.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { hierarchies } from '../localServices/containerdCleanup.ts';
import { ProgramMissing, type ProgramName, where } from '../localServices/where.ts';

export function whyNot(...names: readonly ProgramName[]): string | null {
  for (const name of names) {
    try {
      where(name);
    } catch (error) {
      if (error instanceof ProgramMissing) return `${name} is not prepared (${error.cure})`;
      throw error;
    }
  }
  return null;
}

/** About a containerd with pods. */
export function whyNoRuntime(): string | null {
  if (process.getuid?.() !== 0) return 'only root can run them';
  // Root in a container has neither.
  if (spawnSync('unshare', ['--mount', '--', 'true']).status !== 0) return 'this root may not mount anything';
  if (!hierarchies().every(isWritable)) return 'this root may not create control groups';
  return whyNot('containerd-2.1', 'containerd-shim-2.1', 'runc', 'image-pause', 'image-busybox');
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
