/*
 * The control groups of a cluster: one tree in every hierarchy (v1), or in the only one (v2).
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ROOT = '/sys/fs/cgroup';

/** Makes the group and its parents in every hierarchy. `group` is absolute, such as `/cluster/worker-1`; returns it. */
export function makeControlGroup(group: string): string {
  if (existsSync(join(ROOT, 'cgroup.controllers'))) {
    makeV2(group);
    return group;
  }
  for (const hierarchy of readdirSync(ROOT)) makeV1(join(ROOT, hierarchy), group);
  return group;
}

/** A child may only be given controllers that its parents give to their children. */
function makeV2(group: string): void {
  if (group === '/') return;
  makeV2(dirname(group));
  const parent = join(ROOT, dirname(group));
  const controllers = readFileSync(join(parent, 'cgroup.controllers'), 'utf8').trim().split(' ');
  writeFileSync(join(parent, 'cgroup.subtree_control'), controllers.map((name) => `+${name}`).join(' '));
  mkdirSync(join(ROOT, group), { recursive: true });
}

/** A cpuset without processors and memory takes no process, and a new one has none. */
function makeV1(hierarchy: string, group: string): void {
  if (group === '/') return;
  makeV1(hierarchy, dirname(group));
  const path = join(hierarchy, group);
  mkdirSync(path, { recursive: true });
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    if (existsSync(join(path, file)))
      writeFileSync(join(path, file), readFileSync(join(dirname(path), file)));
  }
}
