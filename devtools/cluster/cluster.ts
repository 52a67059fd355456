/*
 * A Kubernetes cluster on this machine: a control plane, two nodes with pods, DNS and Services, and a Redis, a Postgres and a registry beside it.
 *
 * Everything runs in namespaces that the cluster makes itself. Its processes end with the process that started it, even if that is
 * killed, and the kernel removes networks and mounts with them. Control groups and the folder remain then; the next start removes them.
 */
import { dirname, join } from 'node:path';
import { CHECKOUT } from '../checkout.ts';
import { cgroupOf, removeControlGroups } from '../localServices/containerdCleanup.ts';
import { type LocalPostgres, startPostgres } from '../localServices/postgres.ts';
import { programFailed, run } from '../localServices/process.ts';
import { type LocalRedis, startRedis } from '../localServices/redis.ts';
import { type LocalRegistry, startRegistry } from '../localServices/registry.ts';
import { type Stops, stopAll } from '../localServices/stopAll.ts';
import { abandonedFolders, temporaryFolder } from '../localServices/temporaryFolder.ts';
import { where } from '../localServices/where.ts';
import { startControlPlane } from './controlPlane.ts';
import { CONTROL_ADDRESS, startNetwork } from './network.ts';
import { type ClusterNode, startNode } from './node.ts';

const KIND = 'cluster';
/** Names and passwords in the documentation's commands, which therefore work here as they are. */
const REDIS_HOST = 'redis.example';
const POSTGRES_HOST = 'db.example';
const PASSWORD = 'PASSWORD';
/** Those that have Redis users: the documentation's, and a second one for tests. */
const CLUSTERS = ['prod-eu-1', 'second'];
const NODES = ['worker-1', 'worker-2'];

export interface Cluster {
  readonly nodes: readonly ClusterNode[];
  readonly redis: LocalRedis;
  readonly postgres: LocalPostgres;
  /** Where nodes pull the images of the documentation's registry. */
  readonly registry: LocalRegistry;
  /** The environment of the administrator: KUBECONFIG, and kubectl and helm in PATH. */
  readonly env: NodeJS.ProcessEnv;
  /** The command that runs another one inside the cluster's network. */
  enter(command: string, args: readonly string[]): [string, string[]];
  kubectl(...args: readonly string[]): Promise<string>;
  /** Runs shell commands in the checkout; returns their output. */
  shell(script: string): Promise<string>;
  /** Removes everything. May be called twice. */
  stop(): Promise<void>;
}

export interface ClusterOptions {
  /** Called before each step. If it throws, nothing more is started. */
  readonly report: (step: string, usualSeconds: number) => void;
}

/** Starts the cluster; returns when both nodes are Ready. Needs root. */
export async function startCluster({ report }: ClusterOptions): Promise<Cluster> {
  if (process.getuid?.() !== 0) {
    throw programFailed('Only root can start a cluster: it makes namespaces and mounts.', 'Run as root.');
  }
  const left = abandonedFolders(KIND);
  for (const folder of left) await removeControlGroups(cgroupOf(folder));
  const place = temporaryFolder(KIND, undefined, left);
  const stops: Stops = [() => place.remove()];
  stops.push(() => removeControlGroups(cgroupOf(place.dir)));
  const stop = () => stopAll(stops, 'The next make cluster cleans up.');
  try {
    return { ...(await build(place.dir, report, stops)), stop };
  } catch (error) {
    await stop().catch(() => {
      // The first error is the cause.
    });
    throw error;
  }
}

async function build(
  dir: string,
  report: ClusterOptions['report'],
  stops: Stops,
): Promise<Omit<Cluster, 'stop'>> {
  const keep = <T extends { stop(): Promise<void> }>(service: T): T => {
    stops.push(() => service.stop());
    return service;
  };
  report('making the network', 1);
  const network = keep(await startNetwork(dir));
  report('starting the control plane', 6);
  const hosts = [REDIS_HOST, POSTGRES_HOST];
  const controlPlane = keep(
    await startControlPlane({ dir: join(dir, 'control'), network, nodes: NODES, hosts }),
  );
  report('starting Redis, Postgres and the registry', 3);
  const at = (port: number) => ({ address: CONTROL_ADDRESS, port, of: network.pid });
  const redis = keep(
    await startRedis({
      dir: join(dir, 'redis'),
      network: at(6379),
      args: ['--requirepass', PASSWORD],
      clusters: CLUSTERS,
      passwordOf: (user) => `${user.toUpperCase()}-${PASSWORD}`,
    }),
  );
  const postgres = keep(
    await startPostgres({ dir: join(dir, 'postgres'), network: at(5432), password: PASSWORD }),
  );
  const registry = keep(await startRegistry({ dir: join(dir, 'registry'), network: at(5000) }));
  report(`starting nodes ${NODES.join(' and ')}`, 6);
  const cgroup = cgroupOf(dir);
  const nodes = await Promise.all(
    NODES.map(async (name, i) =>
      keep(
        await startNode({
          ...{ name, index: i + 1, selfSigned: i === 1 },
          dir: join(dir, name),
          network,
          controlPlane,
          cgroup,
          registry: registry.host,
        }),
      ),
    ),
  );
  await controlPlane.kubectl('wait', '--for=condition=Ready', 'node', '--all', '--timeout=240s');
  const path = [dirname(where('kubectl')), dirname(where('helm')), process.env['PATH'] ?? ''].join(':');
  const env = { ...process.env, KUBECONFIG: controlPlane.kubeconfig, PATH: path };
  return {
    ...{ nodes, redis, postgres, registry, env },
    enter: network.enter,
    kubectl: controlPlane.kubectl,
    shell: (script) =>
      run('bash', ['-euo', 'pipefail', '-c', script], {
        ...{ env, cwd: CHECKOUT, networkOf: network.pid, timeoutMs: 600_000 },
      }),
  };
}
