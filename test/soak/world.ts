/*
 * One real node for a soak: containerd 2.1 with a kubelet 1.37 and its pods, an agent behind a proxy that drops events, and the controller
 * with Redis, Postgres and an API server. Times are the product's defaults.
 */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { BUILT_CLI, CHECKOUT } from '../../devtools/checkout.ts';
import { startApiServer } from '../../devtools/localServices/apiServer.ts';
import { type LocalContainerd, startContainerd } from '../../devtools/localServices/containerd.ts';
import { type LocalKubelet, startKubelet } from '../../devtools/localServices/kubelet.ts';
import { type LocalPlegwatch, startPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import {
  CONTROLLER_ROLE,
  createControllerRole,
  type LocalPostgres,
  startPostgres,
} from '../../devtools/localServices/postgres.ts';
import { run } from '../../devtools/localServices/process.ts';
import { startRedis } from '../../devtools/localServices/redis.ts';
import { temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { where } from '../../devtools/localServices/where.ts';
import { type CriProxy, startCriProxy } from '../../devtools/simulator/proxy.ts';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { monoNow } from '../../src/platform/clock.ts';
import { EVENT_TYPES, type EventType } from '../../src/protocol/record.ts';
import { PodsWitness, type Sighting } from '../support/podsWitness.ts';
import { keyOf, type Sight, type SoakEvidence, type StatusEvidence } from './account.ts';

/** What is known, of the events and of the kubelet's own status. */
interface Evidence {
  readonly events: SoakEvidence;
  readonly status: StatusEvidence;
}

import { Witness } from './witness.ts';

const CLUSTER = 'soak';
export const NODE = 'soak';

export interface SoakWorld {
  readonly containerd: LocalContainerd;
  readonly kubelet: LocalKubelet;
  readonly agent: LocalPlegwatch;
  readonly controller: LocalPlegwatch;
  readonly witness: Witness;
  readonly kube: KubeClient;
  /** What is known so far. */
  evidence(): Promise<Evidence>;
  stop(): Promise<void>;
}

/** `drop`: the share of events that the agent never gets. Which ones is drawn from the seed, id and type. */
export async function startWorld({ seed, drop }: { seed: number; drop: number }): Promise<SoakWorld> {
  const stops: (() => Promise<void> | void)[] = [];
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  const keep = <T extends { stop(): Promise<void> }>(service: T): T => {
    stops.push(() => service.stop());
    return service;
  };
  try {
    const place = temporaryFolder('soak', undefined);
    stops.push(() => place.remove());
    const redis = keep(await startRedis({ clusters: [CLUSTER] }));
    const postgres = keep(await startPostgres());
    const api = keep(await startApiServer());
    const kubectl = (...args: string[]) => run(where('kubectl'), ['--kubeconfig', api.kubeconfig, ...args]);
    await kubectl('apply', '--server-side', '-f', join(CHECKOUT, 'crds'));
    await kubectl('wait', '--for=condition=Established', 'crd/plegreports.plegwatch.dev');
    const databaseUrl = await createControllerRole(postgres.url);
    const grant = ['--controller-roles', `${CONTROLLER_ROLE}=${CLUSTER}`];
    await run(process.execPath, [BUILT_CLI, 'migrate', '--database-url', postgres.url, ...grant]);
    const containerd = keep(await startContainerd({ version: '2.1' }));
    const witness = keep(new Witness(containerd.socket));
    await witness.start();
    const proxy = keep(
      await startCriProxy({ upstream: containerd.socket, socket: join(place.dir, 'cri.sock') }),
    );
    proxy.setFilter(({ containerId, containerEventType }) =>
      shareOf(`${seed} ${containerId} ${containerEventType}`) < drop ? 'drop' : 'deliver',
    );
    // No controller creates one here, and no pod is admitted without it.
    await kubectl('create', 'serviceaccount', 'default');
    const kubelet = keep(
      await startKubelet({ node: NODE, api, containerd, eventedPleg: true, minor: '1.37' }),
    );
    const podsWitness = new PodsWitness(kubelet.podsApi);
    stops.push(() => podsWitness.close());
    const controller = keep(
      await startPlegwatch({
        cli: BUILT_CLI,
        command: 'controller',
        settings: {
          cluster: CLUSTER,
          redisUrl: redis.urlOf('controller', CLUSTER),
          databaseUrl,
          kubeconfig: api.kubeconfig,
        },
      }),
    );
    const agent = keep(
      await startPlegwatch({
        cli: BUILT_CLI,
        command: 'agent',
        settings: {
          cluster: CLUSTER,
          redisUrl: redis.urlOf('agent', CLUSTER),
          node: NODE,
          criEndpoint: `unix://${proxy.socket}`,
          spoolDir: join(place.dir, 'spool'),
          kubeletUrl: kubelet.url,
          kubeletTokenFile: await agentToken(kubectl, place.dir),
          kubeletCaFile: kubelet.caFile,
          kubeletServerName: kubelet.serverName,
          podsApi: kubelet.podsApi,
        },
      }),
    );
    const kube = await createKubeClient({ kubeconfig: api.kubeconfig });
    stops.push(() => kube.close());
    return {
      ...{ containerd, kubelet, agent, controller, witness, kube, stop },
      evidence: () => collect(witness, podsWitness, proxy, postgres),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A number from 0 to 1, the same for the same text. */
const shareOf = (text: string): number => createHash('sha256').update(text).digest().readUInt32BE() / 2 ** 32;

async function agentToken(kubectl: (...args: string[]) => Promise<string>, dir: string): Promise<string> {
  await kubectl('create', 'serviceaccount', 'agent');
  await kubectl('create', 'clusterrole', 'agent', '--verb=get', '--resource=nodes/metrics');
  const role = ['--clusterrole=agent', '--serviceaccount=default:agent'];
  await kubectl('create', 'clusterrolebinding', 'agent', ...role);
  const file = join(dir, 'token');
  writeFileSync(file, (await kubectl('create', 'token', 'agent', '--duration=48h')).trim(), { mode: 0o600 });
  return file;
}

async function collect(
  witness: Witness,
  podsWitness: PodsWitness,
  proxy: CriProxy,
  { url }: LocalPostgres,
): Promise<Evidence> {
  const wallAtZero = Date.now() - monoNow() / 1_000;
  const passed = (dropped: boolean) =>
    (dropped ? proxy.dropped : proxy.delivered).map(({ event, mono }) => ({
      id: event.containerId,
      type: EVENT_TYPES[event.containerEventType] ?? 'CREATED',
      at: wallAtZero + mono / 1_000,
      dropped,
    }));
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows: events } = await client.query<{ id: string; type: EventType }>(
      'SELECT container_id AS id, event_type AS type FROM plegwatch.container_events WHERE node = $1',
      [NODE],
    );
    const { rows: findings } = await client.query(
      `SELECT container_id AS id, event_type AS type, kind, resolved_at IS NOT NULL AS resolved
         FROM plegwatch.findings WHERE node = $1`,
      [NODE],
    );
    const { rows: gaps } = await client.query(
      `SELECT (extract(epoch FROM from_at) * 1000)::float8 AS "from", (extract(epoch FROM to_at) * 1000)::float8 AS "to"
         FROM plegwatch.gaps WHERE node = $1 AND scope IN ('stream', 'agent')`,
      [NODE],
    );
    const { transitions } = witness;
    const stored = new Set(events.map(keyOf));
    return {
      events: { transitions, passed: [...passed(false), ...passed(true)], stored, findings, gaps },
      status: {
        transitions,
        stored,
        sights: sightsOf(podsWitness, wallAtZero),
        ...(await readStatus(client)),
      },
    };
  } finally {
    await client.end();
  }
}

function sightsOf({ started, stopped }: PodsWitness, wallAtZero: number): Sight[] {
  const of = (type: 'STARTED' | 'STOPPED', seen: ReadonlyMap<string, Sighting>) =>
    [...seen].map(([id, { at, watchedSince, isTerminating }]) => ({
      ...{ id, type, isTerminating },
      at: wallAtZero + at / 1_000,
      watchedSince: wallAtZero + watchedSince / 1_000,
    }));
  return [...of('STARTED', started), ...of('STOPPED', stopped)];
}

/** What the database says of the kubelet's own status. */
async function readStatus(client: Client): Promise<Pick<StatusEvidence, 'counted' | 'late' | 'gaps'>> {
  const { rows: counts } = await client.query<{ type: 'STARTED' | 'STOPPED'; counted: number }>(
    `SELECT event_type AS type, sum(transitions)::int4 AS counted FROM plegwatch.kubelet_lag_minutes WHERE node = $1 GROUP BY 1`,
    [NODE],
  );
  const { rows: late } = await client.query<StatusEvidence['late'][number]>(
    `SELECT container_id AS id, event_type AS type,
            (extract(epoch FROM window_to) * 1000 + lateness_ms)::float8 AS asked
       FROM plegwatch.findings WHERE node = $1 AND kind = 'kubelet_late'`,
    [NODE],
  );
  const { rows: gaps } = await client.query<StatusEvidence['gaps'][number]>(
    `SELECT (extract(epoch FROM from_at) * 1000)::float8 AS "from", (extract(epoch FROM to_at) * 1000)::float8 AS "to"
       FROM plegwatch.gaps WHERE node = $1 AND scope IN ('stream', 'kubelet_status', 'agent')`,
    [NODE],
  );
  const countedOf = (type: string) => counts.find((each) => each.type === type)?.counted ?? 0;
  return { counted: { STARTED: countedOf('STARTED'), STOPPED: countedOf('STOPPED') }, late, gaps };
}
