/*
 * The possible leftovers of local services: processes, mounts, control groups and temporary folders. All of them carry the name of a temporary
 * folder, and that name has the process id that started the service, so test runs at the same time do not count.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CGROUPS = '/sys/fs/cgroup';

/** One line for each process, mount, control group and folder of the services that a process started. */
export function leftovers(owner: number = process.pid): string[] {
  const ours = new RegExp(`plegwatch-[a-z]+-${owner}-`);
  return [...processes(), ...mounts(), ...groups(), ...folders()].filter((line) => ours.test(line)).sort();
}

/** Returns what lists the leftovers of this process since now: files of tests that ran before in it are not blamed. */
export function newLeftovers(): () => string[] {
  const before = new Set(leftovers());
  return () => leftovers().filter((line) => !before.has(line));
}

/** The changes of a kubelet outside its folder if nothing prevents them. */
export const kubeletTraces = (): string[] => [
  ...['vm/overcommit_memory', 'vm/panic_on_oom', 'kernel/panic', 'kernel/panic_on_oops'].map(
    (setting) => `${setting} ${read(`/proc/sys/${setting}`).trim()}`,
  ),
  ...['/var/lib/kubelet', '/var/log/pods', '/var/log/containers', '/usr/libexec/kubernetes'].filter((path) =>
    existsSync(path),
  ),
];

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

/** Those directly below a hierarchy (v1) or the root (v2). */
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

/** Empty if the file does not exist. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
