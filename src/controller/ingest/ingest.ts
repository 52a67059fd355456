/*
 * Ingest: a worker on every queue of a cluster, the flow settings for its agents, and the health of both.
 *
 * Any number of controllers may do this at the same time; no leader is needed.
 */

import { once } from 'node:events';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { connectRedis, type RedisClient } from '../../platform/redis.ts';
import { defaultsOf } from '../../platform/settings.ts';
import { ThrottledLog } from '../../platform/throttledLog.ts';
import { INGEST_INTERVALS, type IngestIntervals } from '../config.ts';
import type { ControllerMetrics } from '../metrics.ts';
import type { Store, StoreSettings } from '../store/store.ts';
import type { WatchEnqueuer } from './commitBatch.ts';
import { publishFlow } from './flow.ts';
import { createJobHandler } from './jobHandler.ts';
import { createPartitionCache } from './partitionCache.ts';
import { createQueueProgress, type IngestHealth } from './queueProgress.ts';
import { type JobHandler, type QueueWorker, startQueueWorker } from './queueWorker.ts';
import countActiveNodes from './sql/countActiveNodes.sql';

export interface IngestOptions {
  readonly store: Store;
  readonly redisUrl: string;
  readonly cluster: string;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
  readonly watches?: WatchEnqueuer | undefined;
  readonly intervals?: IngestIntervals;
}

export interface Ingest {
  /** Whether queues that are not empty make progress while Postgres answers. */
  health(): IngestHealth;
  /** Null while Redis answers; otherwise what is wrong with it. */
  redisError(): string | null;
  /** Takes no more jobs, finishes or returns the present ones, and closes its connections to Redis. Not the store. */
  stop(): Promise<void>;
}

const TEND_INTERVAL_MS = 5_000;
const BACKOFF = { firstMs: 1_000, maxMs: 1_000 };
const READY_WITHIN_MS = 5_000;

export async function startIngest(options: IngestOptions): Promise<Ingest> {
  const { store, redisUrl, cluster, log, metrics, watches } = options;
  const { intervals = defaultsOf(INGEST_INTERVALS) } = options;
  const { intervalRedisRetry: maxRetry } = intervals;
  const clusterId = await store.ensureCluster(cluster);
  let settings: StoreSettings = await store.readSettings();
  const stopping = new AbortController();
  const throttledLog = new ThrottledLog(log);
  const onError = (error: string) => throttledLog.warn({ error }, 'Redis is unavailable');
  // BullMQ's own commands wait for Redis however long it takes; ours fail, and the handler decides.
  const patient = connectRedis({ url: redisUrl, maxRetry, onError, patient: true });
  const redis = connectRedis({ url: redisUrl, maxRetry, onError });
  await waitUntilReady(redis, log);
  const progress = createQueueProgress();
  const jobHandler = createJobHandler({
    store,
    clusterId,
    cluster,
    settings: () => settings,
    partitions: createPartitionCache(),
    watches,
    intervals,
    redis,
    metrics,
    log: throttledLog,
    signal: stopping.signal,
  });
  const handler: JobHandler = {
    ...jobHandler,
    async handle(queue, data) {
      const outcome = await jobHandler.handle(queue, data);
      progress.handled(queue);
      return outcome;
    },
  };
  const lockMs = intervals.intervalJobLock / 1000;
  const workers: QueueWorker[] = [];
  const startWorkers = (count: number) => {
    for (let queue = workers.length; queue < count; queue++) {
      workers.push(startQueueWorker({ cluster, queue, redis: patient, lockMs, handler, log: throttledLog }));
    }
  };
  startWorkers(settings.maxQueues);

  let nodes = 0;
  let unavailable = 0;
  const flow = new Loop({
    async work() {
      // While Postgres is unavailable, agents continue with the last known settings.
      try {
        settings = await store.readSettings();
        nodes = await readActiveNodes(store, clusterId);
      } catch (error) {
        log.warn({ error: messageOf(error) }, 'settings could not be read; the last ones apply');
      }
      startWorkers(settings.maxQueues);
      await publishFlow(redis, cluster, settings.queues, nodes);
      return intervals.intervalFlow / 1000;
    },
    onError: (error) =>
      throttledLog.warn({ error: messageOf(error) }, 'flow settings could not be published'),
    backoff: BACKOFF,
  });
  const tending = new Loop({
    async work() {
      const answers = await store.ping().then(
        () => true,
        () => false,
      );
      const depths = redis.status === 'ready' ? await tendAll(workers, redis, throttledLog) : [];
      for (const [queue, depth] of depths.entries()) {
        if (depth !== null) metrics.queueDepth.set({ queue: `${queue}` }, depth);
      }
      unavailable = depths.filter((depth) => depth === null).length;
      progress.observed(answers, depths);
      return TEND_INTERVAL_MS;
    },
    onError: (error) => throttledLog.warn({ error: messageOf(error) }, 'queues could not be counted'),
    backoff: BACKOFF,
  });
  flow.start();
  tending.start();
  log.info({ cluster, queues: settings.queues }, 'ingest started');
  return {
    health: () => progress.health(),
    redisError() {
      if (redis.status !== 'ready') return 'Redis does not answer';
      return unavailable === 0 ? null : `Redis does not serve ${unavailable} of ${workers.length} queues`;
    },
    async stop() {
      stopping.abort();
      await Promise.all([flow.stop(), tending.stop()]);
      await Promise.all(workers.map((worker) => worker.stop()));
      patient.disconnect();
      redis.disconnect();
    },
  };
}

/** Agents wait for the flow settings, so the first attempt to publish them should not come too early. */
async function waitUntilReady(redis: RedisClient, log: Logger): Promise<void> {
  if (redis.status === 'ready') return;
  await once(redis, 'ready', { signal: AbortSignal.timeout(READY_WITHIN_MS) }).catch((error: unknown) => {
    log.warn({ error: messageOf(error) }, 'Redis is unavailable');
  });
}

/** The depth of each queue; null if Redis does not serve it: it is full, or that node of a Redis Cluster is unavailable. */
function tendAll(
  workers: readonly QueueWorker[],
  redis: RedisClient,
  log: ThrottledLog,
): Promise<(number | null)[]> {
  return Promise.all(
    workers.map((worker) =>
      worker.tend(redis).catch((error: unknown) => {
        log.warn({ queue: worker.queue, error: messageOf(error) }, 'queue could not be counted');
        return null;
      }),
    ),
  );
}

async function readActiveNodes(store: Store, clusterId: number): Promise<number> {
  const { rows } = await store.run<{ nodes: number }>({ text: countActiveNodes }, [clusterId]);
  return rows[0]?.nodes ?? 0;
}
