/*
 * The demo's cluster: everything plegwatch needs, started empty on this machine and removed afterwards, and three nodes.
 *
 *   worker-healthy   a runtime that announces everything; a real containerd if this machine can run one
 *   worker-lossy     a simulated containerd 2.1 that drops some of its events
 *   worker-unsafe    a simulated containerd 1.7: subscribing there would take events away from the kubelet
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { flagOf } from '../../src/platform/settings.ts';
import { BUILT_CLI, CHECKOUT, DEV_CLI } from '../checkout.ts';
import { type LocalApiServer, startApiServer } from '../localServices/apiServer.ts';
import { type LocalContainerd, startContainerd } from '../localServices/containerd.ts';
import type { LocalService } from '../localServices/localService.ts';
import { type PlegwatchSettings, startPlegwatch } from '../localServices/plegwatch.ts';
import { CONTROLLER_ROLE, createControllerRole, startPostgres } from '../localServices/postgres.ts';
import { freePort, run, startProcess } from '../localServices/process.ts';
import { startRedis } from '../localServices/redis.ts';
import { type Stops, stopAll } from '../localServices/stopAll.ts';
import { temporaryFolder } from '../localServices/temporaryFolder.ts';
import { ProgramMissing, type ProgramName, where } from '../localServices/where.ts';
import { PodChurn } from './churn.ts';

export const CLUSTER = 'demo';

export interface DemoOptions {
  /** Do not start an API server; there is no kubectl then. */
  readonly noKube: boolean;
  /** Called with a line for each step. If it throws, nothing more is started. */
  readonly report: (line: string) => void;
}

export interface DemoCluster {
  readonly nodes: readonly DemoNode[];
  readonly databaseUrl: string;
  /** Where a browser shows the same. */
  readonly page: string;
  /** Runs kubectl and returns its output; null without an API server. */
  readonly kubectl: ((...args: readonly string[]) => Promise<string>) | null;
  stop(): Promise<void>;
}

interface DemoNode {
  readonly name: string;
  readonly what: string;
}

interface SimulatedNode extends DemoNode {
  readonly settings: Readonly<Record<string, string>>;
}

const LOSSY: SimulatedNode = {
  name: 'worker-lossy',
  what: 'a simulated containerd 2.1 that drops 1 event in 20',
  settings: { profile: 'containerd-2.1', pods: '12', podLifetime: '10s', drop: '0.05' },
};
const UNSAFE: SimulatedNode = {
  name: 'worker-unsafe',
  what: 'a simulated containerd 1.7: a subscriber would take events from the kubelet',
  settings: { profile: 'containerd-1.7', pods: '8', podLifetime: '20s' },
};
const HEALTHY: SimulatedNode = {
  name: 'worker-healthy',
  what: 'a simulated containerd 2.1 that announces everything',
  settings: { profile: 'containerd-2.1', pods: '8', podLifetime: '15s' },
};
/** Short times for quick results; the defaults are 5 s and 30 s. */
const AGENT: PlegwatchSettings = { relistPeriod: '1s', overdueAfter: '1s', missedAfter: '5s' };

/** Starts everything; if a start fails, what was started is stopped again. */
export async function startCluster(options: DemoOptions): Promise<DemoCluster> {
  const stops: Stops = [];
  const stop = () => stopAll(stops, 'The next make demo cleans up.');
  try {
    return { ...(await build(options, stops)), stop };
  } catch (error) {
    await stop().catch(() => {
      // The first error is the cause.
    });
    throw error;
  }
}

async function build(options: DemoOptions, stops: Stops): Promise<Omit<DemoCluster, 'stop'>> {
  const { report } = options;
  const place = temporaryFolder('demo', undefined);
  stops.push(() => rmSync(place.dir, { recursive: true, force: true }));
  const keep = <T extends LocalService>(service: T): T => {
    stops.push(() => service.stop());
    return service;
  };
  report('starting Redis and Postgres');
  const redis = keep(await startRedis({ clusters: [CLUSTER] }));
  const postgres = keep(await startPostgres());
  const api = await startKube(options, keep);
  report('creating the schema');
  const databaseUrl = await createControllerRole(postgres.url);
  const grant = ['--controller-roles', `${CONTROLLER_ROLE}=${CLUSTER}`];
  await run(process.execPath, [BUILT_CLI, 'migrate', '--database-url', postgres.url, ...grant]);
  const page = await startPage(databaseUrl, keep);
  report(`the page is at ${page}`);
  report('starting the controller');
  keep(
    await startPlegwatch({
      cli: BUILT_CLI,
      command: 'controller',
      settings: {
        cluster: CLUSTER,
        redisUrl: redis.urlOf('controller', CLUSTER),
        databaseUrl,
        ...(api === null ? { noKube: 'true' } : { kubeconfig: api.kubeconfig }),
      },
    }),
  );
  const sockets = await startRuntimes(options, place.dir, stops, keep);
  for (const { name, what, socket } of sockets) {
    report(`starting the agent of ${name}: ${what}`);
    if (api !== null) await kubectl(api, ['create', '-f', nodeFile(place.dir, name)]);
    keep(
      await startPlegwatch({
        cli: BUILT_CLI,
        command: 'agent',
        settings: {
          cluster: CLUSTER,
          redisUrl: redis.urlOf('agent', CLUSTER),
          node: name,
          criEndpoint: `unix://${socket}`,
          spoolDir: join(place.dir, name),
          ...AGENT,
        },
      }),
    );
  }
  return {
    nodes: sockets,
    databaseUrl: postgres.url,
    page,
    kubectl: api === null ? null : (...args) => kubectl(api, args),
  };
}

/** The page, without a token on this machine. */
async function startPage(
  databaseUrl: string,
  keep: <T extends LocalService>(service: T) => T,
): Promise<string> {
  const address = `127.0.0.1:${await freePort()}`;
  const settings = { cluster: CLUSTER, databaseUrl, pageAddress: address };
  keep(await startPlegwatch({ cli: BUILT_CLI, command: 'ui', settings }));
  return `http://${address}`;
}

/** An API server for Node objects and PLEGReports only; nothing is scheduled. */
async function startKube(
  { noKube, report }: DemoOptions,
  keep: <T extends LocalService>(service: T) => T,
): Promise<LocalApiServer | null> {
  const missing = noKube ? 'NO_KUBE is set' : whyNot('kube-apiserver', 'etcd', 'kubectl');
  if (missing !== null) {
    report(`no API server: ${missing}; the reports come straight from Postgres`);
    return null;
  }
  report('starting etcd and the Kubernetes API server');
  const api = keep(await startApiServer());
  report('installing the PLEGReport resource');
  await kubectl(api, ['apply', '--server-side', '-f', join(CHECKOUT, 'crds')]);
  await kubectl(api, [
    'wait',
    '--for=condition=Established',
    '--timeout=240s',
    'crd/plegreports.plegwatch.dev',
  ]);
  return api;
}

type DemoRuntime = DemoNode & { readonly socket: string };

async function startRuntimes(
  options: DemoOptions,
  dir: string,
  stops: Stops,
  keep: <T extends LocalService>(service: T) => T,
): Promise<DemoRuntime[]> {
  const healthy = await startHealthy(options, dir, stops, keep);
  const others = [LOSSY, UNSAFE].map((node) => startSimulated(dir, stops, node));
  return [healthy, ...(await Promise.all(others))];
}

async function startHealthy(
  options: DemoOptions,
  dir: string,
  stops: Stops,
  keep: <T extends LocalService>(service: T) => T,
): Promise<DemoRuntime> {
  const missing =
    process.getuid?.() === 0
      ? whyNot('containerd-2.1', 'containerd-shim-2.1', 'runc', 'image-pause', 'image-busybox')
      : 'only root can run one';
  if (missing !== null) {
    options.report(`no real containerd: ${missing}; using a simulated one`);
    return startSimulated(dir, stops, HEALTHY);
  }
  options.report('starting a real containerd 2.1, with pods that start and end');
  const containerd: LocalContainerd = keep(await startContainerd({ version: '2.1' }));
  const churn = new PodChurn(containerd);
  stops.push(() => churn.stop());
  return { name: HEALTHY.name, what: 'a real containerd 2.1 with real pods', socket: containerd.socket };
}

async function startSimulated(dir: string, stops: Stops, node: SimulatedNode): Promise<DemoRuntime> {
  const folder = join(dir, `runtime-${node.name}`);
  mkdirSync(folder);
  const socket = join(folder, 'cri.sock');
  const flags = Object.entries({ socket, ...node.settings }).flatMap(([key, value]) => [flagOf(key), value]);
  const runtime = await startProcess({
    name: node.name,
    command: process.execPath,
    args: [DEV_CLI, 'simulate', 'runtime', ...flags],
    logFile: join(folder, 'runtime.log'),
    ready: async () => existsSync(socket),
  });
  stops.push(async () => void (await runtime.stop()));
  return { name: node.name, what: node.what, socket };
}

/** Why one of these programs is not available; null when all are. */
function whyNot(...names: readonly ProgramName[]): string | null {
  for (const name of names) {
    try {
      where(name);
    } catch (error) {
      if (error instanceof ProgramMissing) return `${name} is not prepared (${error.cure})`;
      throw error;
    }
  }
  return null;
}

function kubectl(api: LocalApiServer, args: readonly string[]): Promise<string> {
  return run(where('kubectl'), ['--kubeconfig', api.kubeconfig, ...args]);
}

function nodeFile(dir: string, name: string): string {
  const file = join(dir, `${name}.json`);
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name } }));
  return file;
}
