/*
 * A cluster whose starter was killed, as by `kill -9` of make cluster: the kernel ends what ran in it, and the next start removes the rest.
 */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { startCluster } from '../../devtools/cluster/cluster.ts';
import { leftovers } from '../support/leftovers.ts';
import { needs } from '../support/needs.ts';
import { waitFor } from '../support/waitFor.ts';
import { WITHIN_MS } from './bed.ts';
import { podOf } from './churn.ts';

needs(
  'root',
  ...(['containerd-2.1', 'runc', 'etcd', 'kubelet', 'kube-controller-manager', 'kube-scheduler'] as const),
  ...(['kube-proxy', 'coredns', 'cni-ptp', 'nft', 'helm', 'postgres', 'redis-server', 'registry'] as const),
)('a cluster whose starter was killed', () => {
  afterAll(() => expect(leftovers()).toEqual([]));

  it('has no process and no mount any more, and the next start removes its folder and control groups', async () => {
    const source = join(import.meta.dirname, '../../devtools/cluster/cluster.ts');
    const pod = JSON.stringify(podOf('worker-1', 'left', 'last', 3_600));
    const starter = `
      import { startCluster } from '${source}';
      const cluster = await startCluster({ report: () => {} });
      await cluster.shell(\`kubectl create -f - <<< '${pod}'
        kubectl wait --for=jsonpath='{.status.phase}'=Running pod/left --timeout=${WITHIN_MS / 1_000}s\`);
      process.kill(process.pid, 'SIGKILL');
    `;
    const killed = spawn(process.execPath, ['--input-type=module', '-e', starter], { stdio: 'inherit' });
    const [, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) =>
      killed.once('exit', (...how) => resolve(how)),
    );
    expect(signal).toBe('SIGKILL');
    const owner = killed.pid ?? 0;
    const isRunning = (line: string) => /^process |^mount /.test(line) || hasProcesses(line);
    await waitFor('everything that ran in it has ended', () => !leftovers(owner).some(isRunning), WITHIN_MS);
    const kinds = new Set(leftovers(owner).map((line) => line.split(' ')[0]));
    expect([...kinds].sort()).toEqual(['control', 'folder']);

    const next = await startCluster({ report: () => {} });
    try {
      expect(leftovers(owner)).toEqual([]);
    } finally {
      await next.stop();
    }
  });
});

/** Whether a process runs in the control group of this line, or below it; false for a line about anything else. */
function hasProcesses(line: string): boolean {
  const group = line.replace(/^control group /, '');
  if (!existsSync(join(group, 'cgroup.procs'))) return false;
  return readdirSync(group, { recursive: true, encoding: 'utf8' })
    .filter((name) => basename(name) === 'cgroup.procs')
    .some((name) => readFileSync(join(group, name), 'utf8') !== '');
}
