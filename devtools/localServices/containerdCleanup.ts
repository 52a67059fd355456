/*
 * Removes what a containerd left behind, as far as its own folder names it; nothing of another containerd is touched.
 * Each step also covers for an earlier one that was interrupted.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, realpathSync, rmdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { programFailed, run, waitFor } from './process.ts';

const CGROUPS = '/sys/fs/cgroup';
const KILLED_WITHIN_MS = 240_000;

/** Removes the shims, containers, control groups, mounts and sockets of the containerd in this folder, and the folder's content. */
export async function cleanUpContainerd(dir: string, runc: string): Promise<void> {
  if (!existsSync(dir)) return;
  const real = realpathSync(dir);
  await killAll(() => processesOf(real, /^containerd$/));
  const before = containerIds(real);
  // Before the shims, because each shim reaps the processes of its containers.
  await deleteContainers(real, runc);
  await killAll(() => processesOf(real, /^(containerd-shim|runc)/));
  // Containers of a pod that was just being started may be there only now.
  const ids = [...new Set([...before, ...containerIds(real)])];
  for (const group of controlGroups(real, ids)) await removeControlGroup(group);
  await unmountBelow(real);
  for (const id of ids) rmSync(shimSocket(real, id), { force: true });
  for (const name of ['root', 'state', 'runc', 'containerd.sock', 'containerd.sock.ttrpc']) {
    rmSync(join(real, name), { recursive: true, force: true });
  }
}

/** The control group of all containers of the containerd in this folder. */
export function cgroupOf(dir: string): string {
  return `/${dir.replaceAll(/[^A-Za-z0-9]+/g, '-').replace(/^-/, '')}`;
}

/** Removes a control group of this name from every hierarchy, and kills what still runs in it. */
export async function removeControlGroups(group: string): Promise<void> {
  for (const path of hierarchies().map((root) => join(root, group))) {
    if (existsSync(path)) await removeControlGroup(path);
  }
}

/** Processes of this name with a path in this folder on their command line. */
function processesOf(dir: string, name: RegExp): number[] {
  return processes().filter((pid) => {
    const args = commandLine(pid);
    return name.test(basename(args[0] ?? '')) && args.some((arg) => arg.startsWith(`${dir}/`));
  });
}

function processes(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Empty for a process that has ended, even if it is not reaped yet. */
function commandLine(pid: number): string[] {
  return (read(`/proc/${pid}/cmdline`) ?? '').split('\0').filter((arg) => arg !== '');
}

async function killAll(find: () => number[]): Promise<void> {
  await waitFor('the processes are killed', KILLED_WITHIN_MS, () => {
    const pids = find();
    for (const pid of pids) kill(pid);
    return pids.length === 0;
  });
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already ended.
  }
}

/** Ids of the containers and sandboxes that runc, a shim or the CRI has state for. */
export function containerIds(dir: string): string[] {
  const places = [
    join(dir, 'runc', 'k8s.io'),
    join(dir, 'state', 'io.containerd.runtime.v2.task', 'k8s.io'),
    join(dir, 'root', 'io.containerd.grpc.v1.cri', 'sandboxes'),
  ];
  return [...new Set(places.flatMap(list))];
}

/**
 * The socket of the shim of a sandbox, in a folder that all containerds share (containerd pkg/shim/util_unix.go, CreateSocketAddress). A bundle names
 * it only once its shim has started.
 */
export function shimSocket(dir: string, id: string): string {
  const name = createHash('sha256').update(join(dir, 'containerd.sock', 'k8s.io', id));
  return join('/run/containerd/s', name.digest('hex'));
}

async function deleteContainers(dir: string, runc: string): Promise<void> {
  const root = join(dir, 'runc', 'k8s.io');
  // Removing the control groups ends what runc can no longer delete.
  const deleted = list(root).map((id) =>
    run(runc, ['--root', root, 'delete', '--force', id]).catch(() => ''),
  );
  await Promise.all(deleted);
}

/** The control groups of these containers and of the folder, in every hierarchy. */
function controlGroups(dir: string, ids: readonly string[]): string[] {
  return hierarchies()
    .flatMap((root) => [
      ...ids.map((id) => join(root, 'k8s.io', id)),
      join(root, 'k8s.io'),
      join(root, cgroupOf(dir)),
    ])
    .filter((group) => existsSync(group));
}

/** The roots of control groups: several (v1) or one (v2). */
export function hierarchies(): string[] {
  return existsSync(join(CGROUPS, 'cgroup.controllers'))
    ? [CGROUPS]
    : list(CGROUPS).map((name) => join(CGROUPS, name));
}

/** Kills what still runs in a control group and removes it. The group k8s.io is shared, so it is removed only when it is empty. */
async function removeControlGroup(group: string): Promise<void> {
  if (group.endsWith('/k8s.io')) {
    removeEmpty(group);
    return;
  }
  for (const child of list(group)) {
    if (existsSync(join(group, child, 'cgroup.procs'))) await removeControlGroup(join(group, child));
  }
  await killAll(() =>
    (read(join(group, 'cgroup.procs')) ?? '')
      .split('\n')
      .map(Number)
      .filter((pid) => pid > 0),
  );
  removeEmpty(group);
}

function removeEmpty(group: string): void {
  try {
    rmdirSync(group);
  } catch {
    // Another containerd uses it, or it is already removed.
  }
}

/** Throws when a mount remains, because the removal that follows would delete the mounted files. */
async function unmountBelow(dir: string): Promise<void> {
  // Innermost first. A mount that is already gone is no error.
  for (const path of mountsBelow(dir).reverse()) await run('umount', ['--lazy', path]).catch(() => '');
  const left = mountsBelow(dir);
  if (left.length > 0) {
    throw programFailed(`Still mounted: ${left.join(', ')}.`, 'Unmount it by hand, then remove the folder.');
  }
}

function mountsBelow(dir: string): string[] {
  return (read('/proc/self/mountinfo') ?? '')
    .split('\n')
    .map((line) => (line.split(' ')[4] ?? '').replaceAll('\\040', ' '))
    .filter((path) => path.startsWith(`${dir}/`));
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
