/*
 * Finds the programs that the demo and the tests run on. It asks devtools/localServices/where, so that the pinned versions
 * and the layout of the cache are in one place.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { PlegwatchError } from '../../src/platform/errors.ts';

export type ContainerdVersion = '2.4' | '2.3' | '2.2' | '2.1' | '1.7' | '1.6';
/** Kubelets of other versions than the API server's. */
export type KubeletMinor = '1.37' | '1.33' | '1.30' | '1.28';

export type ProgramName =
  | 'node'
  | 'postgres'
  | 'initdb'
  | 'pgbouncer'
  | 'redis-server'
  | `${'containerd' | 'ctr' | 'containerd-shim'}-${ContainerdVersion}`
  | 'runc'
  | 'image-pause'
  | 'image-busybox'
  | 'image-critest'
  | 'image-node'
  | `image-base-${'amd64' | 'arm64'}`
  | 'etcd'
  | 'kube-apiserver'
  | 'kubectl'
  | 'kubelet'
  | `kubelet-${KubeletMinor}`
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kube-proxy'
  | 'coredns'
  | 'cni-ptp'
  | 'buildah'
  | 'registry'
  | 'skopeo'
  | 'chromium'
  | 'nft'
  | 'helm'
  | 'helm-3'
  | 'kubeconform'
  | 'kubernetes-api'
  | 'cosign'
  | 'otelcol'
  | 'promtool'
  | 'jsonnet'
  | 'operator-crds'
  | 'critest'
  | 'criclient'
  | 'spark';

/** Thrown when a program is not on this machine; `cure` is the command that prepares it. */
export class ProgramMissing extends PlegwatchError {
  override readonly name = 'ProgramMissing';
  constructor(message: string, cure: string) {
    super('PROGRAM_MISSING', message, cure);
  }
}

const SCRIPT = join(import.meta.dirname, 'where');
const found = new Map<ProgramName, string>();

/** The absolute path of a program. Throws ProgramMissing. */
export function where(name: ProgramName): string {
  const known = found.get(name);
  if (known !== undefined) return known;
  const answer = spawnSync(SCRIPT, [name], { encoding: 'utf8' });
  if (answer.status === 0) {
    const path = answer.stdout.trim();
    found.set(name, path);
    return path;
  }
  if (answer.status === 1) {
    const message = answer.stderr.trim();
    const cure = /run: (.*)$/.exec(message)?.[1] ?? 'devtools/localServices/prepare --help';
    throw new ProgramMissing(`${name} is not prepared on this machine.`, `Run ${cure} in the checkout.`);
  }
  const why = answer.error?.message ?? answer.stderr.trim();
  throw new ProgramMissing(
    `${SCRIPT} failed: ${why}`,
    'Run devtools/localServices/where --list in the checkout.',
  );
}
