/*
 * A node of the experiment: a containerd, and a kubelet with its gate on or off that runs static pods of busybox.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LocalApiServer } from '../../devtools/localServices/apiServer.ts';
import { type LocalContainerd, startContainerd } from '../../devtools/localServices/containerd.ts';
import { type LocalKubelet, startKubelet } from '../../devtools/localServices/kubelet.ts';
import { waitFor } from '../../devtools/localServices/process.ts';
import { type Stops, stopAll } from '../../devtools/localServices/stopAll.ts';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import type { ContainerdVersion, KubeletMinor } from '../../devtools/localServices/where.ts';
import { connectCri } from '../../devtools/simulator/criClient.ts';
import { ContainerState } from '../../src/cri/runtime.ts';

export interface ExperimentNode {
  readonly containerd: LocalContainerd;
  readonly kubelet: LocalKubelet;
  /** Returns when this many pods run. */
  runPods(count: number): Promise<void>;
  /** Replaces one of the pods by another, once it has as many. */
  replacePod(): void;
  /** Relists of the kubelet since its start. Throws if the kubelet is not in the mode that its gate asks for. */
  relists(): Promise<number>;
  stop(): Promise<void>;
}

export interface ExperimentNodeOptions {
  readonly api: LocalApiServer;
  /** Minor version of the kubelet; undefined: that of the API server. */
  readonly minor: KubeletMinor | undefined;
  readonly containerd: ContainerdVersion;
  readonly eventedPleg: boolean;
  readonly name: string;
}

/** One pod takes half a second on a calm machine. */
const RUN_WITHIN_MS = 900_000;

/** Needs root. */
export async function startNode({
  api,
  minor,
  containerd: version,
  eventedPleg,
  name: node,
}: ExperimentNodeOptions): Promise<ExperimentNode> {
  const stops: Stops = [];
  const stop = () => stopAll(stops, 'See what still runs with ps, and stop it.');
  try {
    const { dir, remove } = temporaryFolder('experiment', undefined);
    stops.push(remove);
    const containerd = await startContainerd({ version });
    stops.push(() => containerd.stop());
    const staticPods = join(dir, 'static-pods');
    mkdirSync(staticPods);
    const kubelet = await startKubelet({ node, api, containerd, eventedPleg, minor, staticPods });
    stops.push(() => kubelet.stop());
    const { busybox } = containerd.importedImages;
    const manifest = (i: number) => join(staticPods, `sleeper-${i}.json`);
    const write = (i: number) => writeFileSync(manifest(i), JSON.stringify(sleeper(`sleeper-${i}`, busybox)));
    let [oldest, newest] = [1, 0];
    return {
      containerd,
      kubelet,
      async runPods(count) {
        for (; newest < count; newest += 1) write(newest + 1);
        const what = `${count} pods run on ${node}`;
        await waitFor(what, RUN_WITHIN_MS, async () => (await running(containerd.socket)) === count);
      },
      replacePod() {
        rmSync(manifest(oldest));
        oldest += 1;
        newest += 1;
        write(newest);
      },
      relists: async () => relistsOf(await kubelet.metrics(), eventedPleg),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const sleeper = (name: string, image: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: {
    hostNetwork: true,
    terminationGracePeriodSeconds: 1,
    containers: [
      { name: 'app', image, imagePullPolicy: 'Never', command: ['/bin/busybox', 'sleep', '1000000'] },
    ],
  },
});

async function running(socket: string): Promise<number> {
  const client = connectCri(socket);
  try {
    const { containers } = await client.call('listContainers', { filter: undefined });
    return containers.filter(({ state }) => state === ContainerState.CONTAINER_RUNNING).length;
  } finally {
    client.close();
  }
}

function relistsOf(page: string, eventedPleg: boolean): number {
  const figure = (name: string): number | null => {
    const line = page.split('\n').find((each) => each.startsWith(`${name} `));
    return line === undefined ? null : Number(line.split(' ')[1]);
  };
  // A kubelet that falls back gives up for good, after five errors.
  const connected = (figure('kubelet_evented_pleg_connection_success_count') ?? 0) > 0;
  const errors = figure('kubelet_evented_pleg_connection_error_count') ?? 0;
  if (connected !== eventedPleg || errors > 0) {
    throw new Error(
      `the kubelet with its gate ${eventedPleg ? 'on' : 'off'} is in another mode: connected ${connected}, errors ${errors}`,
    );
  }
  const relists = figure('kubelet_pleg_relist_duration_seconds_count');
  if (relists === null) throw new Error("the kubelet's metrics have no relists");
  return relists;
}
