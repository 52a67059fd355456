/*
 * Ingest: workers on all lanes of a cluster, flow settings for its agents, and whether there is progress.
 *
 * Any number of controllers may do this at once; no leader is needed.
 */

import { once } from 'node:events';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { connectRedis, type RedisClient } from '../../platform/redis.ts';
import { defaultsOf } from '../../platform/settings.ts';
import { ThrottledLog } from '../../platform/throttledLog.ts';
import { INGEST_INTERVALS, type IngestIntervals } from '../internalSettings.ts';
import type { ControllerMetrics } from '../metrics.ts';
import type { Store, StoreSettings } from '../store/store.ts';
import type { Enlisting } from './commit.ts';
import { publishFlow } from './flow.ts';
import { createHandler } from './handler.ts';
import { createPartitions } from './partitions.ts';
import { createProgress, type Health } from './progress.ts';
import { type Lane, type LaneHandler, startLane } from './queueWorker.ts';
import { createReplies } from './reply.ts';
import countActiveNodes from './sql/countActiveNodes.sql';

export interface IngestOptions {
  readonly store: Store;
  readonly redisUrl: string;
  readonly cluster: string;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
  /** Default: those that the settings have. */
  readonly intervals?: IngestIntervals;
  /** Absent where the impact of missed events is not measured. */
  readonly impact?: Enlisting | undefined;
}

export interface Ingest {
  /** Whether lanes that are not empty move on while Postgres answers. */
  health(): Health;
  /** Null while Redis answers; otherwise what is wrong with it. */
  redis(): string | null;
  /** Takes no more jobs, finishes or gives back the present ones, closes its connections to Redis. Not the store. */
  stop(): Promise<void>;
}

const TEND_INTERVAL_MS = 5_000;
const BACKOFF = { firstMs: 1_000, maxMs: 1_000 };
const READY_WITHIN_MS = 5_000;

export async function startIngest(options: IngestOptions): Promise<Ingest> {
  const {
    store,
    redisUrl,
    cluster,
    log,
    metrics,
    impact,
    intervals = defaultsOf(INGEST_INTERVALS),
  } = options;
  const clusterId = await store.clusterId(cluster);
  let settings: StoreSettings = await store.settings();
  const stopping = new AbortController();
  const { intervalRedisRetry: maxRetry } = intervals;
  const throttledLog = new ThrottledLog(log);
  const onError = (error: string) => throttledLog.warn({ error }, 'Redis is away');
  // BullMQ's own commands wait for Redis however long it takes; ours fail, and the handler decides.
  const patient = connectRedis({ url: redisUrl, maxRetry, onError, patient: true });
  const redis = connectRedis({ url: redisUrl, maxRetry, onError });
  await firstReady(redis, log);
  const progress = createProgress();
  const inner = createHandler({
    store,
    clusterId,
    cluster,
    settings: () => settings,
    partitions: createPartitions(),
    impact,
    replies: createReplies(redis, cluster),
    metrics,
    intervals,
    log: throttledLog,
    signal: stopping.signal,
  });
  const handler: LaneHandler = {
    ...inner,
    async handle(lane, data) {
      const verdict = await inner.handle(lane, data);
      progress.moved(lane);
      return verdict;
    },
  };
  const lanes: Lane[] = [];
  const startLanes = (count: number) => {
    for (let lane = lanes.length; lane < count; lane++) {
      lanes.push(
        startLane({
          cluster,
          lane,
          redis: patient,
          lockMs: intervals.intervalJobLock / 1000,
          handler,
          log: throttledLog,
        }),
      );
    }
  };
  startLanes(settings.lanesEver);

  let nodes = 0;
  let untended = 0;
  const flow = new Loop({
    async work() {
      // While Postgres is away agents go on by the last known settings.
      try {
        settings = await store.settings();
        nodes = await countKnown(store, clusterId);
      } catch (error) {
        log.warn({ error: messageOf(error) }, 'the settings could not be read; the last ones stay');
      }
      startLanes(settings.lanesEver);
      await publishFlow(redis, cluster, settings.lanes, nodes);
      return intervals.intervalFlow / 1000;
    },
    onError: (error) =>
      throttledLog.warn({ error: messageOf(error) }, 'the flow settings could not be published'),
    backoff: BACKOFF,
  });
  const tending = new Loop({
    async work() {
      const answers = await store.ping().then(
        () => true,
        () => false,
      );
      const depths = redis.status === 'ready' ? await tendAll(lanes, redis, throttledLog) : [];
      for (const [lane, depth] of depths.entries()) {
        if (depth !== null) metrics.queueDepth.set({ queue: `${lane}` }, depth);
      }
      untended = depths.filter((depth) => depth === null).length;
      progress.observed(answers, depths);
      return TEND_INTERVAL_MS;
    },
    onError: (error) => throttledLog.warn({ error: messageOf(error) }, 'the lanes could not be counted'),
    backoff: BACKOFF,
  });
  flow.start();
  tending.start();
  log.info({ cluster, lanes: settings.lanes }, 'ingest has started');
  return {
    health: () => progress.health(),
    redis() {
      if (redis.status !== 'ready') return 'Redis does not answer';
      return untended === 0 ? null : `Redis does not serve ${untended} of ${lanes.length} lanes`;
    },
    async stop() {
      stopping.abort();
      await Promise.all([flow.stop(), tending.stop()]);
      await Promise.all(lanes.map((lane) => lane.stop()));
      patient.disconnect();
      redis.disconnect();
    },
  };
}

/** Agents wait for the flow settings, so the first try to publish them should not come too early. */
async function firstReady(redis: RedisClient, log: Logger): Promise<void> {
  if (redis.status === 'ready') return;
  await once(redis, 'ready', { signal: AbortSignal.timeout(READY_WITHIN_MS) }).catch((error: unknown) => {
    log.warn({ error: messageOf(error) }, 'Redis is away');
  });
}

/** The depth of each lane; null where Redis does not serve it: it is full, or that node of a cluster is away. */
function tendAll(lanes: readonly Lane[], redis: RedisClient, log: ThrottledLog): Promise<(number | null)[]> {
  return Promise.all(
    lanes.map((lane) =>
      lane.tend(redis).catch((error: unknown) => {
        log.warn({ lane: lane.lane, error: messageOf(error) }, 'a lane could not be counted');
        return null;
      }),
    ),
  );
}

/** How many nodes share the budget. */
async function countKnown(store: Store, clusterId: number): Promise<number> {
  const { rows } = await store.run<{ nodes: number }>({ text: countActiveNodes }, [clusterId]);
  return rows[0]?.nodes ?? 0;
}
