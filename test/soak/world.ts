/*
 * One real node: containerd, an agent behind a proxy that drops events, and the controller with Redis and Postgres; for a soak also an API
 * server and a kubelet. Two witnesses watch containerd: `ctr events`, and a subscriber of the CRI. Times are the product's defaults.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { Client } from 'pg';
import { BUILT_CLI, CHECKOUT } from '../../devtools/checkout.ts';
import { startApiServer } from '../../devtools/localServices/apiServer.ts';
import {
  type ContainerdOptions,
  type LocalContainerd,
  startContainerd,
} from '../../devtools/localServices/containerd.ts';
import { type LocalKubelet, startKubelet } from '../../devtools/localServices/kubelet.ts';
import { readingOf, writeAgentToken } from '../../devtools/localServices/kubeletReading.ts';
import {
  type LocalPlegwatch,
  type PlegwatchSettings,
  startPlegwatch,
} from '../../devtools/localServices/plegwatch.ts';
import {
  CONTROLLER_ROLE,
  createControllerRole,
  type LocalPostgres,
  startPostgres,
} from '../../devtools/localServices/postgres.ts';
import { run } from '../../devtools/localServices/process.ts';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { type Stops, stopAll } from '../../devtools/localServices/stopAll.ts';
import { type TemporaryFolder, temporaryFolder } from '../../devtools/localServices/temporaryFolder.ts';
import { where } from '../../devtools/localServices/where.ts';
import { type CriProxy, startCriProxy } from '../../devtools/simulator/proxy.ts';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { monoNow } from '../../src/platform/clock.ts';
import { EVENT_TYPES, type EventType } from '../../src/protocol/record.ts';
import { type AuditOutcome, auditCommand } from '../support/auditCommand.ts';
import { type Listener, listen } from '../support/listener.ts';
import { PodsWitness, type Sighting } from '../support/podsWitness.ts';
import { settled } from '../support/watchedNode.ts';
import { keyOf, type SoakEvidence } from './account.ts';
import type { Sight, StatusEvidence } from './statusAccount.ts';
import { Witness } from './witness.ts';

const CLUSTER = 'soak';
export const NODE = 'soak';

export interface World {
  readonly containerd: LocalContainerd;
  readonly agent: LocalPlegwatch;
  readonly controller: LocalPlegwatch;
  /** Ends containerd, kills it first if asked to, and starts it again, with the witnesses. */
  restartContainerd(kill: boolean): Promise<void>;
  /** The evidence so far. */
  evidence(): Promise<SoakEvidence>;
  /** Waits until every event is judged and every record is stored. */
  settled(): Promise<void>;
  audit(): Promise<AuditOutcome>;
  stop(): Promise<void>;
}

export interface SoakWorld extends World {
  readonly kubelet: LocalKubelet;
  /** The evidence so far about the kubelet's own status. */
  status(): Promise<StatusEvidence>;
  readonly kube: KubeClient;
}

export interface WorldOptions {
  readonly seed: number;
  /** The share of events that the agent never gets. Which ones is drawn from the seed, id and type. */
  readonly drop: number;
  readonly containerd: ContainerdOptions;
}

/** Without a kubelet: the pods are those of whoever calls the CRI. */
export const startWorld = (options: WorldOptions): Promise<World> =>
  withStops(async (parts) => {
    const services = await startServices(parts, options);
    return { ...(await startPrograms(services, { noKube: 'true' }, {})), stop: parts.stop };
  });

export const startSoakWorld = ({ seed, drop }: Pick<WorldOptions, 'seed' | 'drop'>): Promise<SoakWorld> =>
  withStops(async (parts) => {
    const api = parts.keep(await startApiServer());
    const kubectl = (...args: readonly string[]) =>
      run(where('kubectl'), ['--kubeconfig', api.kubeconfig, ...args]);
    await kubectl('apply', '--server-side', '-f', join(CHECKOUT, 'crds'));
    await kubectl('wait', '--for=condition=Established', 'crd/plegreports.plegwatch.dev');
    // No controller creates one here, and no pod is admitted without it.
    await kubectl('create', 'serviceaccount', 'default');
    const services = await startServices(parts, { seed, drop, containerd: { version: '2.1' } });
    const { containerd, place } = services;
    const kubelet = parts.keep(
      await startKubelet({ node: NODE, api, containerd, eventedPleg: true, minor: '1.37' }),
    );
    const podsWitness = new PodsWitness(kubelet.podsApi);
    parts.atEnd(() => podsWitness.close());
    const tokenFile = join(place.dir, 'token');
    await writeAgentToken(tokenFile, kubectl);
    const reading = readingOf(kubelet, tokenFile);
    const programs = await startPrograms(services, { kubeconfig: api.kubeconfig }, reading);
    const kube = await createKubeClient({ kubeconfig: api.kubeconfig });
    parts.atEnd(() => kube.close());
    const status = () => collectStatus(services, podsWitness);
    return { ...programs, kubelet, kube, status, stop: parts.stop };
  });

interface Parts {
  keep<T extends { stop(): Promise<void> }>(service: T): T;
  atEnd(stop: Stops[number]): void;
  stop(): Promise<void>;
}

/** The started programs end if the rest cannot be started. */
async function withStops<W>(start: (parts: Parts) => Promise<W>): Promise<W> {
  const stops: Stops = [];
  const stop = () => stopAll(stops, 'See what still runs with ps, and stop it.');
  const atEnd = (each: Stops[number]) => void stops.push(each);
  const keep: Parts['keep'] = (service) => {
    atEnd(() => service.stop());
    return service;
  };
  try {
    return await start({ keep, atEnd, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Services {
  readonly parts: Parts;
  readonly place: TemporaryFolder;
  readonly redis: LocalRedis;
  readonly postgres: LocalPostgres;
  readonly controllerUrl: string;
  readonly containerd: LocalContainerd;
  readonly witnesses: Witnesses;
  readonly proxy: CriProxy;
}

/** `ctr events`, and another subscriber of the CRI. */
class Witnesses {
  readonly events: Witness;
  readonly #socket: string;
  /** One for each start. */
  readonly #listeners: Listener[] = [];

  constructor(containerd: LocalContainerd) {
    this.events = new Witness(containerd);
    this.#socket = containerd.socket;
  }

  /** `id TYPE` of each event that the subscriber received. */
  get heard(): ReadonlySet<string> {
    return new Set(this.#listeners.flatMap(({ received }) => received));
  }

  /** Begins to watch, and again after containerd was restarted. */
  async start(): Promise<void> {
    await this.stop();
    await this.events.start();
    this.#listeners.push(listen(this.#socket));
  }

  async stop(): Promise<void> {
    this.#listeners.at(-1)?.close();
    await this.events.stop();
  }
}

async function startServices(
  parts: Parts,
  { seed, drop, containerd: options }: WorldOptions,
): Promise<Services> {
  const place = temporaryFolder('soak', undefined);
  parts.atEnd(() => place.remove());
  const redis = parts.keep(await startRedis({ clusters: [CLUSTER] }));
  const postgres = parts.keep(await startPostgres());
  const controllerUrl = await createControllerRole(postgres.url);
  const grant = ['--controller-roles', `${CONTROLLER_ROLE}=${CLUSTER}`];
  await run(process.execPath, [BUILT_CLI, 'migrate', '--database-url', postgres.url, ...grant]);
  const containerd = parts.keep(await startContainerd(options));
  const witnesses = parts.keep(new Witnesses(containerd));
  await witnesses.start();
  const proxy = parts.keep(
    await startCriProxy({ upstream: containerd.socket, socket: join(place.dir, 'cri.sock') }),
  );
  proxy.setFilter(({ containerId, containerEventType }) =>
    shareOf(`${seed} ${containerId} ${containerEventType}`) < drop ? 'drop' : 'deliver',
  );
  return { parts, place, redis, postgres, controllerUrl, containerd, witnesses, proxy };
}

async function startPrograms(
  { parts, place, redis, postgres, controllerUrl, containerd, witnesses, proxy }: Services,
  controllerSettings: PlegwatchSettings,
  agentSettings: PlegwatchSettings,
): Promise<Omit<World, 'stop'>> {
  const controller = parts.keep(
    await startPlegwatch({
      cli: BUILT_CLI,
      command: 'controller',
      settings: {
        cluster: CLUSTER,
        redisUrl: redis.urlOf('controller', CLUSTER),
        databaseUrl: controllerUrl,
        ...controllerSettings,
      },
    }),
  );
  const agent = parts.keep(
    await startPlegwatch({
      cli: BUILT_CLI,
      command: 'agent',
      settings: {
        cluster: CLUSTER,
        redisUrl: redis.urlOf('agent', CLUSTER),
        node: NODE,
        criEndpoint: `unix://${proxy.socket}`,
        spoolDir: join(place.dir, 'spool'),
        ...agentSettings,
      },
    }),
  );
  return {
    ...{ containerd, agent, controller },
    restartContainerd: async (kill) => {
      if (kill) await containerd.kill();
      await containerd.restart();
      await witnesses.start();
    },
    evidence: () => collect(witnesses, proxy, postgres),
    settled: () => settled(agent),
    audit: () => auditCommand({ cluster: CLUSTER, databaseUrl: postgres.url, node: NODE, cli: BUILT_CLI }),
  };
}

/** A number from 0 to 1, the same for the same text. */
const shareOf = (text: string): number => createHash('sha256').update(text).digest().readUInt32BE() / 2 ** 32;

async function storedEvents(client: Client): Promise<readonly { id: string; type: EventType }[]> {
  const { rows } = await client.query<{ id: string; type: EventType }>(
    'SELECT container_id AS id, event_type AS type FROM plegwatch.container_events WHERE node = $1',
    [NODE],
  );
  return rows;
}

async function collect(witnesses: Witnesses, proxy: CriProxy, { url }: LocalPostgres): Promise<SoakEvidence> {
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
    const events = await storedEvents(client);
    const { rows: findings } = await client.query(
      `SELECT container_id AS id, event_type AS type, kind, cause, resolved_at IS NOT NULL AS resolved
         FROM plegwatch.findings WHERE node = $1`,
      [NODE],
    );
    const { rows: gaps } = await client.query(
      `SELECT (extract(epoch FROM from_at) * 1000)::float8 AS "from", (extract(epoch FROM to_at) * 1000)::float8 AS "to"
         FROM plegwatch.gaps WHERE node = $1 AND scope IN ('stream', 'agent', 'findings')`,
      [NODE],
    );
    return {
      transitions: witnesses.events.transitions,
      heard: witnesses.heard,
      passed: [...passed(false), ...passed(true)],
      stored: events.map(keyOf),
      findings,
      gaps,
    };
  } finally {
    await client.end();
  }
}

async function collectStatus(
  { witnesses, postgres }: Services,
  podsWitness: PodsWitness,
): Promise<StatusEvidence> {
  const wallAtZero = Date.now() - monoNow() / 1_000;
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  try {
    return {
      transitions: witnesses.events.transitions,
      stored: new Set((await storedEvents(client)).map(keyOf)),
      sights: sightsOf(podsWitness, wallAtZero),
      ...(await readStatus(client)),
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

/** The database's figures for the kubelet's own status. */
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
