/*
 * A real kubelet of one's own, on a containerd and an API server of one's own. It registers a Node; nothing is scheduled to it
 * unless somebody does. Its certificate is its own, for the name of its node, and its metrics are for whom the API server lets read
 * them, as on a cluster.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import type { ApiServerPart } from './apiserver.ts';
import type { ContainerdPart } from './containerd.ts';
import { freePort, startProcess } from './process.ts';
import { abandoned, scratch } from './scratch.ts';
import { keepService, type Service } from './service.ts';
import { unmountBelow } from './sweep.ts';
import { where } from './where.ts';

const KIND = 'kubelet';

export interface KubeletPart extends Service {
  readonly url: string;
  /** What its certificate is signed with, and for. */
  readonly caFile: string;
  readonly serverName: string;
  /** Its feature gate EventedPLEG, from its next restart on. */
  gateIs(eventedPleg: boolean): void;
  /** Its metrics, as the administrator sees them. */
  metrics(): Promise<string>;
}

export interface KubeletOptions {
  readonly node: string;
  readonly api: Pick<ApiServerPart, 'kubeconfig' | 'token'>;
  readonly containerd: Pick<ContainerdPart, 'socket'>;
  readonly eventedPleg: boolean;
  /** How long it waits for its runtime, such as `30s`. Default: its own, two minutes. */
  readonly runtimeRequestTimeout?: string;
  /** A folder with the manifests of static pods; none when not said. */
  readonly staticPods?: string;
}

/** Starts a kubelet; returns when it tells its metrics (about 3 s). Needs root. */
export async function startKubelet({
  node,
  api,
  containerd,
  eventedPleg,
  runtimeRequestTimeout,
  staticPods,
}: KubeletOptions): Promise<KubeletPart> {
  const command = where('kubelet');
  const left = abandoned(KIND);
  for (const folder of left) await unmountBelow(folder);
  const place = scratch(KIND, undefined, left);
  const { dir } = place;
  const port = await freePort();
  const url = `https://127.0.0.1:${port}`;
  const caFile = join(dir, 'pki', 'kubelet.crt');
  const gateIs = (on: boolean) =>
    writeFileSync(
      join(dir, 'config.json'),
      JSON.stringify({
        ...configuration(port, containerd.socket, on),
        runtimeRequestTimeout,
        staticPodPath: staticPods,
      }),
    );
  const metrics = () => ask(`${url}/metrics`, node, readFileSync(caFile, 'utf8'), api.token);
  gateIs(eventedPleg);
  const service = await keepService(
    () =>
      startProcess({
        name: 'kubelet',
        command,
        args: [
          `--config=${join(dir, 'config.json')}`,
          `--kubeconfig=${api.kubeconfig}`,
          `--hostname-override=${node}`,
          `--root-dir=${join(dir, 'root')}`,
          `--cert-dir=${join(dir, 'pki')}`,
          '--v=4',
        ],
        cwd: dir,
        logFile: join(dir, 'kubelet.log'),
        ready: async () => (await metrics()).includes('kubelet_pleg_'),
        readyWithinMs: 60_000,
      }),
    async () => {
      // It mounts its own folder, and leaves that to the next kubelet.
      await unmountBelow(dir);
      place.remove();
    },
  );
  return Object.assign(service, { url, caFile, serverName: node, gateIs, metrics });
}

function configuration(port: number, socket: string, eventedPleg: boolean): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: '127.0.0.1',
    port,
    readOnlyPort: 0,
    healthzPort: 0,
    containerRuntimeEndpoint: `unix://${socket}`,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true } },
    authorization: { mode: 'Webhook' },
    featureGates: { EventedPLEG: eventedPleg },
    failCgroupV1: false,
    failSwapOn: false,
    cgroupDriver: 'cgroupfs',
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    localStorageCapacityIsolation: false,
    evictionHard: {},
    resolvConf: '/dev/null',
  };
}

/** The body of an answer of 200. Throws for any other. */
function ask(url: string, servername: string, ca: string, token: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const request = get(url, { ca, servername, agent: false, timeout: 2_000, headers }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.once('error', reject);
      response.once('end', () =>
        response.statusCode === 200 ? resolve(body) : reject(new Error(`${url}: ${response.statusCode}`)),
      );
    });
    request.once('error', reject);
    request.once('timeout', () => request.destroy(new Error(`${url}: no answer`)));
  });
}
