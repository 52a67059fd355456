/*
 * A memory control group without a limit, of either version, as Kubernetes makes for a container.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = '/sys/fs/cgroup';

export interface MemoryGroup {
  /** Writing a process id to this file moves that process into the group; its later children belong to it too. */
  readonly procs: string;
  /** In bytes, as the kubelet computes it: usage without the inactive pages of files. */
  workingSet(): number;
  /** Fails while a process is in it. */
  remove(): void;
}

/** Null where this machine allows none. */
export function memoryGroup(name: string): MemoryGroup | null {
  const isV1 = existsSync(join(ROOT, 'memory', 'memory.usage_in_bytes'));
  const dir = join(ROOT, isV1 ? 'memory' : '', name);
  const usage = join(dir, isV1 ? 'memory.usage_in_bytes' : 'memory.current');
  try {
    mkdirSync(dir, { recursive: true });
  } catch {
    // Not root, or the hierarchy is mounted read-only: the caller prints that there is no figure.
    return null;
  }
  if (!existsSync(usage)) {
    rmdirSync(dir);
    return null;
  }
  const inactive = new RegExp(`^${isV1 ? 'total_inactive_file' : 'inactive_file'} (\\d+)$`, 'm');
  return {
    procs: join(dir, 'cgroup.procs'),
    workingSet: () => {
      const used = Number(readFileSync(usage, 'utf8'));
      return used - Number(inactive.exec(readFileSync(join(dir, 'memory.stat'), 'utf8'))?.[1] ?? 0);
    },
    remove: () => rmdirSync(dir),
  };
}
