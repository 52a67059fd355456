/*
 * A kubelet on a local containerd and a local API server. It registers a Node; no scheduler runs. Unless it is given one, it signs its
 * own certificate for the name of its node, and the API server authorizes who may read its metrics, as in a cluster. Its mounts end with
 * it, and nobody else sees them: pods can have no volumes. It changes nothing outside its folder (kubelet.sh).
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import type { LocalApiServer } from './apiServer.ts';
import type { LocalContainerd } from './containerd.ts';
import { type LocalService, startService } from './localService.ts';
import { freePort, startProcess } from './process.ts';
import { temporaryFolder } from './temporaryFolder.ts';
import { type KubeletMinor, where } from './where.ts';

const IN_ITS_FOLDER = join(import.meta.dirname, 'kubelet.sh');

/** By name. A kubelet refuses to start with a gate that its version does not have. */
type FeatureGates = Readonly<Partial<Record<'EventedPLEG' | 'CRIListStreaming', boolean>>>;

export interface LocalKubelet extends LocalService {
  readonly url: string;
  /** The authority and the server name of its certificate. */
  readonly caFile: string;
  readonly serverName: string;
  /** Sets these feature gates and no others, effective from the next restart. */
  setGates(gates: FeatureGates): void;
  /** The socket of its PodsAPI, which kubelets from 1.37 on create. */
  readonly podsApi: string;
  /** Its version from the next restart on; undefined: that of the API server. */
  setMinor(minor: KubeletMinor | undefined): void;
  /** Its metrics, read as the administrator. */
  metrics(): Promise<string>;
}

export interface KubeletOptions {
  readonly node: string;
  readonly api: Pick<LocalApiServer, 'kubeconfig' | 'token'>;
  readonly containerd: Pick<LocalContainerd, 'socket'>;
  readonly eventedPleg: boolean;
  /** Default: that of the API server. */
  readonly minor?: KubeletMinor | undefined;
  /** How long it waits for its runtime, such as `30s`. Default: the kubelet's own, two minutes. */
  readonly runtimeRequestTimeout?: string;
  /** A folder with manifests of static pods. Default: none. */
  readonly staticPods?: string;
  /** Files of the certificate that it serves, and of the authority that signed it. Default: it signs its own. */
  readonly certificate?: { readonly caFile: string; readonly certFile: string; readonly keyFile: string };
}

/** Starts a kubelet; returns when it serves its metrics (about 3 s). Needs root. */
export async function startKubelet({
  node,
  api,
  containerd,
  eventedPleg,
  minor,
  runtimeRequestTimeout,
  staticPods,
  certificate,
}: KubeletOptions): Promise<LocalKubelet> {
  let version = minor;
  commandOf(version);
  const place = temporaryFolder('kubelet', undefined);
  const { dir } = place;
  const port = await freePort();
  const url = `https://127.0.0.1:${port}`;
  const caFile = certificate?.caFile ?? join(dir, 'pki', 'kubelet.crt');
  const setGates = (featureGates: FeatureGates) =>
    writeFileSync(
      join(dir, 'config.json'),
      JSON.stringify({
        ...configuration(port, containerd.socket, featureGates),
        podLogsDir: join(dir, 'var/log/pods'),
        volumePluginDir: join(dir, 'volume-plugins'),
        runtimeRequestTimeout,
        staticPodPath: staticPods,
        tlsCertFile: certificate?.certFile,
        tlsPrivateKeyFile: certificate?.keyFile,
      }),
    );
  const metrics = () => ask(`${url}/metrics`, node, readFileSync(caFile, 'utf8'), api.token);
  setGates({ EventedPLEG: eventedPleg });
  const service = await startService(
    () =>
      startProcess({
        name: 'kubelet',
        command: 'unshare',
        args: [
          ...['--mount', '--propagation', 'private', '--', IN_ITS_FOLDER, dir, ...foldersOf(version), '--'],
          commandOf(version),
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
      }),
    async () => place.remove(),
  );
  return Object.assign(service, {
    url,
    caFile,
    serverName: node,
    podsApi: join(dir, 'root', 'pods-api', 'pods-api.sock'),
    setGates,
    setMinor: (next: KubeletMinor | undefined) => {
      commandOf(next);
      version = next;
    },
    metrics,
  });
}

/** Throws ProgramMissing. */
const commandOf = (minor: KubeletMinor | undefined): string =>
  where(minor === undefined ? 'kubelet' : `kubelet-${minor}`);

/** The oldest ones have no podLogsDir: the runtime, which is not in their namespace, would not find the folders of logs. */
const foldersOf = (minor: KubeletMinor | undefined): string[] =>
  minor === '1.28' ? ['/var/lib'] : ['/var/lib', '/var/log'];

function configuration(port: number, socket: string, featureGates: FeatureGates): object {
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
    featureGates,
    failCgroupV1: false,
    failSwapOn: false,
    cgroupDriver: 'cgroupfs',
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    localStorageCapacityIsolation: false,
    evictionHard: {},
    resolvConf: '/dev/null',
    makeIPTablesUtilChains: false,
  };
}

/** The body of a 200 response. Throws for any other. */
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
    request.once('timeout', () => request.destroy(new Error(`${url}: no response`)));
  });
}
