/*
 * Removes what a containerd has left behind, going only by what its own folder says. Every step is there because the
 * one before it may have been cut short; none touches anything of another containerd.
 */
import { existsSync, readdirSync, readFileSync, realpathSync, rmdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { PlegwatchError } from '../../src/platform/errors.ts';
import { run, waitFor } from './process.ts';

const CGROUPS = '/sys/fs/cgroup';
const GONE_WITHIN_MS = 10_000;

/** Removes shims, containers, control groups, mounts and sockets of the containerd of this folder, and the folder's content. */
export async function sweep(dir: string, runc: string): Promise<void> {
  if (!existsSync(dir)) return;
  const real = realpathSync(dir);
  const ids = containerIds(real);
  const sockets = shimSockets(real);
  await killAll(() => processesOf(real, /^containerd$/));
  // Before the shims: each is the parent that its containers' processes need to be reaped by.
  await deleteContainers(real, runc);
  await killAll(() => processesOf(real, /^containerd-shim/));
  for (const group of controlGroups(real, ids)) await removeControlGroup(group);
  await unmountBelow(real);
  for (const socket of sockets) rmSync(socket, { force: true });
  for (const name of ['root', 'state', 'runc', 'containerd.sock', 'containerd.sock.ttrpc']) {
    rmSync(join(real, name), { recursive: true, force: true });
  }
}

/** The control group of everything in this containerd: one name a folder. */
export function cgroupOf(dir: string): string {
  return `/${dir.replaceAll(/[^A-Za-z0-9]+/g, '-').replace(/^-/, '')}`;
}

/** Those processes by this name that have a path of this folder on their command line. */
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

/** Empty for a process that has ended, reaped or not. */
function commandLine(pid: number): string[] {
  return (read(`/proc/${pid}/cmdline`) ?? '').split('\0').filter((arg) => arg !== '');
}

async function killAll(find: () => number[]): Promise<void> {
  await waitFor('everything is killed', GONE_WITHIN_MS, () => {
    const pids = find();
    for (const pid of pids) kill(pid);
    return pids.length === 0;
  });
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself meanwhile, which is all we want.
  }
}

/** Ids of the containers that runc or a shim has kept state of. */
function containerIds(dir: string): string[] {
  const places = [join(dir, 'runc', 'k8s.io'), join(dir, 'state', 'io.containerd.runtime.v2.task', 'k8s.io')];
  return [...new Set(places.flatMap(list))];
}

/** The shims listen in a folder all containerds share; each bundle says where its own does. */
export function shimSockets(dir: string): string[] {
  const bundles = join(dir, 'state', 'io.containerd.runtime.v2.task', 'k8s.io');
  const said = list(bundles).flatMap((id) => [
    read(join(bundles, id, 'address')) ?? '',
    read(join(bundles, id, 'bootstrap.json')) ?? '',
  ]);
  return [...new Set(said.flatMap((text) => text.match(/\/run\/containerd\/s\/[0-9a-f]+/g) ?? []))];
}

async function deleteContainers(dir: string, runc: string): Promise<void> {
  const root = join(dir, 'runc', 'k8s.io');
  // What runc cannot delete any more, the control group below still ends.
  const deleted = list(root).map((id) =>
    run(runc, ['--root', root, 'delete', '--force', id]).catch(() => ''),
  );
  await Promise.all(deleted);
}

/** Folders of these containers and of the folder's own group, in every hierarchy. */
function controlGroups(dir: string, ids: readonly string[]): string[] {
  const hierarchies = existsSync(join(CGROUPS, 'cgroup.controllers'))
    ? [CGROUPS]
    : list(CGROUPS).map((name) => join(CGROUPS, name));
  return hierarchies
    .flatMap((root) => [
      ...ids.map((id) => join(root, 'k8s.io', id)),
      join(root, 'k8s.io'),
      join(root, cgroupOf(dir)),
    ])
    .filter((group) => existsSync(group));
}

/** Ends what still runs in a group of ours and removes it. The group k8s.io is shared: removed only when empty. */
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
    // Somebody else's containers are in it, or it is gone already.
  }
}

/** Throws rather than leave a mount: what is removed next would be removed through it. */
export async function unmountBelow(dir: string): Promise<void> {
  // The innermost first. One that somebody else has unmounted meanwhile is no fault.
  for (const path of mountsBelow(dir).reverse()) await run('umount', ['--lazy', path]).catch(() => '');
  const left = mountsBelow(dir);
  if (left.length > 0) {
    throw new PlegwatchError(
      'PART_FAILED',
      `Still mounted: ${left.join(', ')}.`,
      'Unmount it by hand, then remove the folder.',
    );
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
