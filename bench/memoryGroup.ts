/*
 * A memory control group of one's own, of either version, without a limit: what Kubernetes would call the container's.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = '/sys/fs/cgroup';

export interface MemoryGroup {
  /** Writing a process id here moves that process in; its children follow. */
  readonly procs: string;
  /** In bytes, as the kubelet reckons it: what is used, without the pages of files that nobody has asked for lately. */
  workingSet(): number;
  /** Only when nothing runs in it any more. */
  remove(): void;
}

/** Null where this machine lets nobody make one. */
export function memoryGroup(name: string): MemoryGroup | null {
  const old = existsSync(join(ROOT, 'memory', 'memory.usage_in_bytes'));
  const dir = join(ROOT, old ? 'memory' : '', name);
  const usage = join(dir, old ? 'memory.usage_in_bytes' : 'memory.current');
  try {
    mkdirSync(dir, { recursive: true });
  } catch {
    // Not root, or the hierarchy is mounted read-only: the caller says that it has no figure.
    return null;
  }
  if (!existsSync(usage)) {
    rmdirSync(dir);
    return null;
  }
  const inactive = new RegExp(`^${old ? 'total_inactive_file' : 'inactive_file'} (\\d+)$`, 'm');
  return {
    procs: join(dir, 'cgroup.procs'),
    workingSet: () => {
      const used = Number(readFileSync(usage, 'utf8'));
      return used - Number(inactive.exec(readFileSync(join(dir, 'memory.stat'), 'utf8'))?.[1] ?? 0);
    },
    remove: () => rmdirSync(dir),
  };
}
