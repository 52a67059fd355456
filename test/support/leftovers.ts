/*
 * What parts may leave behind on a machine: processes, mounts, control groups, sockets of shims and temporary folders
 * that carry the name of ours. Compared before and after; what others left there is not ours to judge.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const OURS = /plegwatch-[a-z]+-\d+-/;
const CGROUPS = '/sys/fs/cgroup';

/** Everything of this kind that is there now, one line each, in order. */
export function leftovers(): string[] {
  return [...processes(), ...mounts(), ...groups(), ...list('/run/containerd/s'), ...folders()].sort();
}

function processes(): string[] {
  return list('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .map((pid) => [pid, read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim()])
    .filter(([, args]) => OURS.test(args ?? ''))
    .map(([pid, args]) => `process ${pid} ${args}`);
}

function mounts(): string[] {
  return read('/proc/self/mountinfo')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => OURS.test(path))
    .map((path) => `mount ${path}`);
}

function groups(): string[] {
  return list(CGROUPS)
    .flatMap((hierarchy) => ['', 'k8s.io'].map((group) => join(CGROUPS, hierarchy, group)))
    .flatMap((dir) => list(dir).map((name) => join(dir, name)))
    .filter((path) => path.includes('/k8s.io/') || /plegwatch-/.test(path))
    .filter((path) => existsSync(join(path, 'cgroup.procs')))
    .map((path) => `control group ${path}`);
}

function folders(): string[] {
  return list(tmpdir())
    .filter((name) => OURS.test(name))
    .map((name) => `folder ${name}`);
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
