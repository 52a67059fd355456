/*
 * The demo's cluster: everything plegwatch needs, started empty on this machine and removed afterwards, and the nodes with an agent each.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILT_CLI, CHECKOUT } from '../checkout.ts';
import { type LocalApiServer, startApiServer } from '../localServices/apiServer.ts';
import type { LocalService } from '../localServices/localService.ts';
import { type PlegwatchSettings, startPlegwatch } from '../localServices/plegwatch.ts';
import { CONTROLLER_ROLE, createControllerRole, startPostgres } from '../localServices/postgres.ts';
import { freePort, run } from '../localServices/process.ts';
import { startRedis } from '../localServices/redis.ts';
import type { Stops } from '../localServices/stopAll.ts';
import { temporaryFolder } from '../localServices/temporaryFolder.ts';
import { where } from '../localServices/where.ts';
import { whyNot } from './missing.ts';
import { type Break, type DemoNode, startNodes } from './nodes.ts';

export const CLUSTER = 'demo';

export interface DemoOptions {
  /** Do not start an API server; there is no kubectl then. */
  readonly noKube: boolean;
  /** Called with a line for each step. If it throws, nothing more is started. */
  readonly report: (line: string) => void;
  /** Gets what stops each part, also if a later one fails to start. */
  readonly stops: Stops;
}

export interface DemoCluster {
  readonly nodes: readonly DemoNode[];
  /** Null without a real kubelet. */
  readonly break: Break | null;
  readonly databaseUrl: string;
  /** Where a browser shows the same. */
  readonly page: string;
  /** Runs kubectl and returns its output; null without an API server. */
  readonly kubectl: ((...args: readonly string[]) => Promise<string>) | null;
}

/** Short times for quick results; the defaults are 5 s, 2 s, 30 s and 10 s. */
const AGENT: PlegwatchSettings = {
  relistPeriod: '1s',
  overdueAfter: '1s',
  missedAfter: '5s',
  intervalScrape: '2s',
};

export async function startCluster(options: DemoOptions): Promise<DemoCluster> {
  const { report, stops } = options;
  const place = temporaryFolder('demo', undefined);
  stops.push(() => place.remove());
  const keep = <T extends LocalService>(service: T): T => {
    stops.push(() => service.stop());
    return service;
  };
  report('starting Redis and Postgres (usually 3 s)');
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
  const kube = api === null ? null : { api, kubectl: kubectlOf(api) };
  const { nodes, break: breakOnce } = await startNodes({ dir: place.dir, stops, report, keep, kube });
  for (const { name, what, socket, isRegistered, settings } of nodes) {
    report(`starting the agent of ${name}: ${what}`);
    if (!isRegistered) await kube?.kubectl('create', '-f', nodeFile(place.dir, name));
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
          ...settings,
        },
      }),
    );
  }
  return { nodes, break: breakOnce, databaseUrl: postgres.url, page, kubectl: kube?.kubectl ?? null };
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

/** An API server without controllers: nothing is scheduled. */
async function startKube(
  { noKube, report }: DemoOptions,
  keep: <T extends LocalService>(service: T) => T,
): Promise<LocalApiServer | null> {
  const missing = noKube ? 'NO_KUBE is set' : whyNot('kube-apiserver', 'etcd', 'kubectl');
  if (missing !== null) {
    report(`no API server: ${missing}; the reports come straight from Postgres`);
    return null;
  }
  report('starting etcd and the Kubernetes API server (usually 5 s)');
  const api = keep(await startApiServer());
  report('installing the PLEGReport resource');
  const kubectl = kubectlOf(api);
  await kubectl('apply', '--server-side', '-f', join(CHECKOUT, 'crds'));
  await kubectl('wait', '--for=condition=Established', '--timeout=240s', 'crd/plegreports.plegwatch.dev');
  return api;
}

const kubectlOf =
  (api: LocalApiServer) =>
  (...args: readonly string[]): Promise<string> =>
    run(where('kubectl'), ['--kubeconfig', api.kubeconfig, ...args]);

function nodeFile(dir: string, name: string): string {
  const file = join(dir, `${name}.json`);
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name } }));
  return file;
}
