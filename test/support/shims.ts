/*
 * The shims of a containerd: the processes between it and the containers of one pod each.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';

/** The process of the shim that keeps a sandbox. */
export function shimOf(sandbox: string): number {
  const found = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      const args = commandLine(pid);
      return args.includes(sandbox) && args[0]?.endsWith('containerd-shim-runc-v2');
    });
  expect(found).toHaveLength(1);
  return Number(found[0]);
}

/** Empty if the process has ended meanwhile. */
function commandLine(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
