/*
 * Where the real programs are that the demo and the tests run on. devtools/localServices/where knows; this asks it, so that the pins
 * and the layout of the cache stand in one place.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
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

const SCRIPT = join(import.meta.dirname, 'where');
const found = new Map<PartName, string>();

/** The absolute path of a part. Throws PartMissing. */
export function where(name: PartName): string {
  const known = found.get(name);
  if (known !== undefined) return known;
  const answer = spawnSync(SCRIPT, [name], { encoding: 'utf8' });
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
    `${SCRIPT} failed: ${why}`,
    'Run devtools/localServices/where --list in the checkout.',
  );
}
