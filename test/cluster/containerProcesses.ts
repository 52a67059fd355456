/*
 * The processes of a pod, seen from outside its node.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** All processes of a container, by its id. */
export function processesOf(containerId: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => cgroupsOf(pid).includes(containerId));
}

/** Empty if the process has ended. */
function cgroupsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  } catch {
    return '';
  }
}
