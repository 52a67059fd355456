/*
 * Where the real programs are that the demo and the tests run on. devtools/localServices/where knows; this asks it, so that the pins
 * and the layout of the cache stand in one place.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PlegwatchError } from '../../src/platform/errors.ts';

export type ContainerdVersion = '2.1' | '1.7' | '1.6';

export type PartName =
  | 'node'
  | 'postgres'
  | 'initdb'
  | 'redis-server'
  | `${'containerd' | 'ctr' | 'containerd-shim'}-${ContainerdVersion}`
  | 'runc'
  | 'image-pause'
  | 'image-busybox'
  | 'etcd'
  | 'kube-apiserver'
  | 'kubectl'
  | 'kubelet'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'helm'
  | 'criclient';

/** Thrown when a part is not on this machine; `cure` is the command that brings it. */
export class PartMissing extends PlegwatchError {
  override readonly name = 'PartMissing';
  readonly part: string;

  constructor(part: string, message: string, cure: string) {
    super('PART_MISSING', message, cure);
    this.part = part;
  }
}

const found = new Map<PartName, string>();

/** The absolute path of a part. Throws PartMissing. */
export function where(name: PartName): string {
  const known = found.get(name);
  if (known !== undefined) return known;
  const script = lookup();
  const answer = spawnSync(script, [name], { encoding: 'utf8' });
  if (answer.status === 0) {
    const path = answer.stdout.trim();
    found.set(name, path);
    return path;
  }
  if (answer.status === 1) {
    const said = answer.stderr.trim();
    const cure = /run: (.*)$/.exec(said)?.[1] ?? 'devtools/localServices/prepare --help';
    throw new PartMissing(name, `${name} is not prepared on this machine.`, `Run ${cure} in the checkout.`);
  }
  const why = answer.error?.message ?? answer.stderr.trim();
  throw new PartMissing(
    name,
    `${script} failed: ${why}`,
    'Run devtools/localServices/where --list in the checkout.',
  );
}

/** devtools/localServices/where of the checkout this file is in, bundled or not. */
function lookup(): string {
  for (let dir = import.meta.dirname; dir !== dirname(dir); dir = dirname(dir)) {
    const script = join(dir, 'devtools', 'localServices', 'where');
    if (existsSync(script)) return script;
  }
  throw new PartMissing(
    'parts',
    'The real parts belong to a checkout, and this is not in one.',
    'Run from a checkout of plegwatch.',
  );
}
