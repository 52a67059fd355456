/*
 * What parts may leave behind on a machine: processes, mounts, control groups and temporary folders. All of them carry
 * the name of a temporary folder, and that carries the process id of whoever started the part: others who run tests
 * on the same machine at the same time do not count.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CGROUPS = '/sys/fs/cgroup';

/** Everything that the parts started by this process (or by another one) have on the machine now, one line each. */
export function leftovers(owner: number = process.pid): string[] {
  const ours = new RegExp(`plegwatch-[a-z]+-${owner}-`);
  return [...processes(), ...mounts(), ...groups(), ...folders()].filter((line) => ours.test(line)).sort();
}

function processes(): string[] {
  return list('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .map((pid) => `process ${pid} ${read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim()}`);
}

function mounts(): string[] {
  return read('/proc/self/mountinfo')
    .split('\n')
    .map((line) => `mount ${line.split(' ')[4] ?? ''}`);
}

/** Those right below a hierarchy (v1) or the root (v2). */
function groups(): string[] {
  return [CGROUPS, ...list(CGROUPS).map((name) => join(CGROUPS, name))]
    .flatMap((dir) => list(dir).map((name) => join(dir, name)))
    .filter((path) => existsSync(join(path, 'cgroup.procs')))
    .map((path) => `control group ${path}`);
}

function folders(): string[] {
  return list(tmpdir()).map((name) => `folder ${name}`);
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

/** Empty where there is no such file, or no longer. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
