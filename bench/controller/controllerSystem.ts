/*
 * The system that the parts of the controller's half measure: a Redis, a Postgres and built controllers, all on this machine, and what processor time
 * each of them takes.
 */
import { join } from 'node:path';
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
import { startRedisCluster } from '../../devtools/localServices/redisCluster.ts';
import { type Stops, stopAll } from '../../devtools/localServices/stopAll.ts';
import { millis } from '../../src/protocol/units.ts';
import { connectRedis, type RedisClient } from '../../src/redis/client.ts';
import { CLUSTER, inputsLeft } from '../../test/support/batches.ts';
import { childrenOf, cpuMs } from '../processes.ts';
import { ROOT } from '../system.ts';

const CLI = join(ROOT, 'dist', 'cli.js');
/** `on` with PLEGWATCH_BENCH_FSYNC=on: a disk that others share makes figures that nobody can repeat. */
export const FSYNC = process.env['PLEGWATCH_BENCH_FSYNC'] ?? 'off';
/** A replica has as many as its primary. */
export const MAX_CONNECTIONS = '300';
const POSTGRES_SETTINGS = {
  fsync: FSYNC,
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  max_connections: MAX_CONNECTIONS,
};

/** In milliseconds. */
export interface ProcessorTime {
  readonly controller: number;
  readonly postgres: number;
  readonly redis: number;
}

/** One Redis, or the masters of a cluster. */
interface BenchRedis extends Pick<LocalRedis, 'url' | 'urlOf' | 'stop'> {
  readonly pids: readonly number[];
}

export interface ControllerSystem {
  readonly redis: BenchRedis;
  readonly postgres: LocalPostgres;
  /** As the controllers' role. */
  readonly databaseUrl: string;
  readonly controllers: readonly LocalPlegwatch[];
  /** With full rights. */
  readonly client: RedisClient;
  /** How many there are. */
  readonly queues: number;
  /** Starts one more controller. */
  addController(settings?: PlegwatchSettings): Promise<LocalPlegwatch>;
  /** Inputs that are not done yet. */
  left(): Promise<number>;
  /** Begins to count; the answer tells what was used since. Processes that have ended meanwhile are left out. */
  countProcessorTime(): () => ProcessorTime;
  stop(): Promise<void>;
}

export interface ControllerSystemOptions {
  readonly queues: number;
  /** They share Redis and Postgres, and each has a controller of its own. Default: that of test/support/batches.ts. */
  readonly clusters?: readonly string[];
  /** More than one: a Redis Cluster. Default: one Redis. */
  readonly masters?: number;
  /** Settings of the first controller. Default: it has no API server. */
  readonly settings?: PlegwatchSettings;
  /** Settings of Postgres, besides those of all parts. */
  readonly postgres?: Readonly<Record<string, string>>;
}

/** Starts all of it with one controller for each cluster. */
export async function startControllerSystem({
  queues,
  clusters = [CLUSTER],
  masters = 1,
  settings,
  postgres: more = {},
}: ControllerSystemOptions): Promise<ControllerSystem> {
  const stops: Stops = [];
  const stop = () => stopAll(stops, 'See what still runs with ps, and stop it.');
  try {
    const redis = await startRedisOf(masters, clusters);
    stops.push(() => redis.stop());
    const postgres = await startPostgres({ settings: { ...POSTGRES_SETTINGS, ...more } });
    stops.push(() => postgres.stop());
    const databaseUrl = await createControllerRole(postgres.url);
    const roles = clusters.map((cluster) => `${CONTROLLER_ROLE}=${cluster}`).join(',');
    const grant = ['--controller-roles', roles, '--queues', `${queues}`];
    await run(process.execPath, [CLI, 'migrate', '--database-url', postgres.url, ...grant]);
    const client = connectRedis(
      { redisUrl: redis.url },
      { maxRetry: millis(1_000), onError: () => undefined, patient: true },
    );
    stops.push(() => client.disconnect());
    const controllers: LocalPlegwatch[] = [];
    const addController = async (more: PlegwatchSettings = {}, cluster = CLUSTER) => {
      const redisUrl = redis.urlOf('controller', cluster);
      const kube = more.kubeconfig === undefined ? { noKube: 'true' } : {};
      const controller = await startPlegwatch({
        cli: CLI,
        command: 'controller',
        settings: { cluster, redisUrl, databaseUrl, ...kube, ...more },
      });
      stops.push(() => controller.stop());
      controllers.push(controller);
      return controller;
    };
    for (const cluster of clusters) await addController(settings, cluster);
    return {
      ...{ redis, client, postgres, databaseUrl, controllers, queues, addController, stop },
      async left() {
        const counts = await Promise.all(clusters.map((cluster) => inputsLeft(client, queues, cluster)));
        return counts.reduce((sum, count) => sum + count, 0);
      },
      countProcessorTime() {
        const begun = [controllers.map(({ pid }) => pid), [postgres.pid], redis.pids].map((pids) => ({
          pids,
          before: timesOf(pids),
        }));
        return () => {
          const [controller = 0, ofPostgres = 0, ofRedis = 0] = begun.map(({ pids, before }) =>
            [...timesOf(pids)].reduce((sum, [pid, ms]) => sum + ms - (before.get(pid) ?? 0), 0),
          );
          return { controller, postgres: ofPostgres, redis: ofRedis };
        };
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startRedisOf(masters: number, clusters: readonly string[]): Promise<BenchRedis> {
  if (masters > 1) {
    const cluster = await startRedisCluster(masters);
    return { ...cluster, pids: cluster.masters.map(({ pid }) => pid) };
  }
  const redis = await startRedis({ clusters });
  return { url: redis.url, urlOf: redis.urlOf, stop: () => redis.stop(), pids: [redis.pid] };
}

/** The processor time of processes and of each of their children, in milliseconds; without those that have ended. */
function timesOf(pids: readonly number[]): ReadonlyMap<number, number> {
  const alive = <T>(ask: () => T): T[] => {
    try {
      return [ask()];
    } catch {
      return [];
    }
  };
  const all = pids.flatMap((pid) => [pid, ...alive(() => childrenOf(pid)).flat()]);
  return new Map(all.flatMap((pid) => alive(() => [pid, cpuMs(pid)] as const)));
}
