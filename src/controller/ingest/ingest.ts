/*
 * Ingest: a worker and a mover on every queue of a cluster, the flow settings for its agents, and the health of both.
 *
 * Any number of controllers may do this at the same time; no leader is needed.
 */

import { once } from 'node:events';
import { and, eq, gt, sql } from 'drizzle-orm';
import { messageOf, PlegwatchError } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { defaultsOf } from '../../platform/settings.ts';
import { ThrottledLog } from '../../platform/throttledLog.ts';
import { inboxKey, queueOf } from '../../protocol/redisKeys.ts';
import type { RedisSettings } from '../../redis/access.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { typed } from '../../store/expressions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { int8 } from '../../store/schema/columns.ts';
import { node } from '../../store/schema/tables.ts';
import { MAX_CONNECTIONS, type Store, type StoreSettings } from '../../store/store.ts';
import { INGEST_INTERVALS, type IngestIntervals } from '../config.ts';
import { type AttributionOptions, startKeys } from '../keys/startKeys.ts';
import type { ControllerMetrics } from '../metrics.ts';
import type { WatchEnqueuer } from './commitBatch.ts';
import { publishFlow } from './flow.ts';
import { Inbox, type Removal, removeStrayInboxes } from './inbox.ts';
import { InboxCounts } from './inboxCounts.ts';
import { InboxMover } from './inboxMover.ts';
import { createInputHandler } from './inputHandler.ts';
import { createPartitionCache } from './partitionCache.ts';
import { createQueueProgress, type IngestHealth } from './queueProgress.ts';
import { type InputHandler, type QueueDepth, type QueueWorker, startQueueWorker } from './queueWorker.ts';
import { storeRejection } from './rejections.ts';
import { takeSigns } from './signs.ts';
import { sayCaughtUp } from './statements.ts';

export interface IngestOptions extends RedisSettings {
  readonly store: Store;
  readonly cluster: string;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
  readonly watches?: WatchEnqueuer | undefined;
  readonly attribution?: AttributionOptions;
  readonly intervals?: IngestIntervals;
  /** How many connections the store may open. Default: {@link MAX_CONNECTIONS}. */
  readonly databaseMaxConnections?: number;
  /** How many rows of one node are stored in a day. Default: the setting's. */
  readonly nodeRowsPerDay?: number;
  /** A monotonic clock, in milliseconds. Default: the machine's. */
  readonly now?: () => number;
  /** Called when the database was migrated to a schema that this program cannot use. */
  readonly onIncompatible?: (error: PlegwatchError) => void;
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
/** How often inputs are counted; with very many queues more seldom. Where few come, they are committed together after a longer time. */
const COUNT_INTERVAL_MS = 50;
const CALM_COUNT_INTERVAL_MS = 200;
/** This many inputs at a count, or more, are not few. */
const MANY_INPUTS = 10;
const READY_WITHIN_MS = 5_000;

export async function startIngest(options: IngestOptions): Promise<Ingest> {
  const { store, cluster, log, metrics, watches, attribution, onIncompatible } = options;
  const { intervals = defaultsOf(INGEST_INTERVALS), now = () => performance.now() } = options;
  const { intervalRedisRetry: maxRetry } = intervals;
  const clusterId = await store.ensureCluster(cluster);
  let settings: StoreSettings = await store.readSettings();
  const stopping = new AbortController();
  const throttledLog = new ThrottledLog(log);
  const onError = (error: string) => throttledLog.warn({ error }, 'Redis is unavailable');
  // BullMQ's own commands wait for Redis; ours fail, and the handler decides.
  const patient = connectRedis(options, { maxRetry, onError, patient: true });
  const workers: QueueWorker[] = [];
  const movers: InboxMover[] = [];
  const redis = connectRedis(options, { maxRetry, onError });
  await waitUntilReady(redis, log);
  const progress = createQueueProgress(now);
  // The queues wait for the keys: nothing is acknowledged without them.
  const { stop: stopKeys, ...keys } = await startKeys({
    ...attribution,
    store,
    cluster,
    clusterId,
    redis,
    log: throttledLog,
    onResult: (result) => metrics.enrolments.inc({ result }),
    async onRefused(error, claimedNode, input) {
      throttledLog.warn({ claimedNode, error }, 'enrolment refused');
      const queue = claimedNode === '' ? 0 : queueOf(claimedNode, settings.queues);
      await storeRejection(store, clusterId, { queue, reason: 'enrolment', error, claimedNode, input });
    },
  });
  const inboxOf = (queue: number) => new Inbox(redis, cluster, queue);
  const inputHandler = createInputHandler({
    inboxOf,
    store,
    clusterId,
    cluster,
    settings: () => settings,
    partitions: createPartitionCache(),
    watches,
    ...(options.nodeRowsPerDay === undefined ? {} : { nodeRowsPerDay: options.nodeRowsPerDay }),
    intervals,
    connections: options.databaseMaxConnections ?? MAX_CONNECTIONS,
    now,
    ...keys,
    redis,
    metrics,
    log: throttledLog,
    signal: stopping.signal,
  });
  const handler: InputHandler = {
    async handle(queue, id) {
      const outcome = await inputHandler.handle(queue, id);
      progress.handled(queue);
      if (outcome.done) movers[queue]?.handled();
      return outcome;
    },
  };
  const onRemoved = (removed: readonly Removal[]) => {
    for (const { kind, queue, id, bytes } of removed) {
      metrics.inboxRemovals.inc({ kind });
      throttledLog.warn({ queue, reason: kind, id, bytes }, 'removed from an inbox unread');
    }
  };
  const lockMs = intervals.intervalJobLock / 1000;
  const signs: Loop[] = [];
  const startTakingSigns = (queue: number): Loop => {
    const { readSign: read, applySign: apply } = inputHandler;
    const isStoreAvailable = () => progress.health().database;
    const taker = { cluster, queue, redis, read, apply, isStoreAvailable, onRemoved };
    const loop: Loop = new Loop({
      work: (signal) => takeSigns(taker, signal),
      onError: (error) =>
        throttledLog.warn({ queue, error: messageOf(error) }, 'signs of life could not be taken'),
      backoff: BACKOFF,
    });
    loop.start();
    return loop;
  };
  const startWorkers = (count: number) => {
    for (let queue = workers.length; queue < count; queue++) {
      const place = { cluster, queue, handler, log: throttledLog };
      const worker = startQueueWorker({ ...place, redis: patient, lockMs });
      workers.push(worker);
      movers.push(new InboxMover({ ...place, redis: patient, inbox: inboxOf(queue), worker, onRemoved }));
      signs.push(startTakingSigns(queue));
    }
  };
  startWorkers(settings.maxQueues);

  let nodes = 0;
  let depths: (QueueDepth | null)[] = [];
  const flow = new Loop({
    async work() {
      // While Postgres is unavailable, agents continue with the last known settings.
      try {
        await store.checkSchema();
        settings = await store.readSettings();
        nodes = await countActiveNodes(store, clusterId);
      } catch (error) {
        if (error instanceof PlegwatchError && error.code === 'MIGRATION_MISMATCH') onIncompatible?.(error);
        log.warn({ error: messageOf(error) }, 'settings could not be read; the last ones apply');
      }
      startWorkers(settings.maxQueues);
      await publishFlow(redis, cluster, { queues: settings.queues, nodes });
      return intervals.intervalFlow / 1000;
    },
    onError: (error) =>
      throttledLog.warn({ error: messageOf(error) }, 'flow settings could not be published'),
    backoff: BACKOFF,
  });
  const counts = new InboxCounts(CALM_COUNT_INTERVAL_MS);
  const counting = new Loop({
    async work() {
      const inputs = await counts.count(
        movers.length,
        (queue) => redis.hlen(inboxKey(cluster, queue)),
        (queue, count) => movers[queue]?.counted(count),
      );
      return Math.max(inputs < MANY_INPUTS ? CALM_COUNT_INTERVAL_MS : COUNT_INTERVAL_MS, movers.length);
    },
    onError: (error) => throttledLog.warn({ error: messageOf(error) }, 'inboxes could not be counted'),
    backoff: BACKOFF,
  });
  const tending = new Loop({
    async work() {
      const answers = await store.ping().then(
        () => true,
        () => false,
      );
      depths = redis.status === 'ready' ? await tendAll(workers, redis, throttledLog) : [];
      for (const [queue, depth] of depths.entries()) {
        if (depth !== null) metrics.queueDepth.set({ queue: `${queue}` }, depth.all);
      }
      progress.observed(
        answers,
        depths.map((depth) => depth?.ready ?? null),
      );
      const { caughtUpForMs } = progress.health();
      if (caughtUpForMs > 0) await store.run(sayCaughtUp, [clusterId, Math.floor(caughtUpForMs)]);
      return TEND_INTERVAL_MS;
    },
    onError: (error) =>
      throttledLog.warn({ error: messageOf(error) }, 'the state of the queues could not be read or stored'),
    backoff: BACKOFF,
  });
  const sweeping = new Loop({
    async work() {
      // Another controller may work on queues that this one does not know of yet.
      startWorkers((await store.readSettings()).maxQueues);
      if (redis.status === 'ready') onRemoved(await removeStrayInboxes(redis, cluster, workers.length));
      return intervals.intervalSweep / 1000;
    },
    onError: (error) => throttledLog.warn({ error: messageOf(error) }, 'stray inboxes could not be removed'),
    backoff: { firstMs: 1_000, maxMs: Math.max(1_000, intervals.intervalSweep / 1000) },
  });
  flow.start();
  counting.start();
  tending.start();
  sweeping.start();
  log.info({ cluster, queues: settings.queues }, 'ingest started');
  return {
    health: () => progress.health(),
    redisError() {
      if (redis.status !== 'ready') return 'Redis does not answer';
      const unavailable = depths.filter((depth) => depth === null).length;
      if (unavailable > 0) return `Redis does not serve ${unavailable} of ${workers.length} queues`;
      const refused = workers.filter(({ isRefused }) => isRefused).length;
      return refused === 0 ? null : `Redis refuses to write to ${refused} of ${workers.length} queues`;
    },
    async stop() {
      stopping.abort();
      await Promise.all([
        flow.stop(),
        ...signs.map((each) => each.stop()),
        counting.stop(),
        tending.stop(),
        sweeping.stop(),
      ]);
      // Without Redis nothing that is under way can be ended.
      if (patient.status !== 'ready') patient.disconnect();
      await Promise.all([...movers, ...workers].map((each) => each.stop()));
      await stopKeys();
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

/** Shortens the delays of each queue. Returns its depth; null if that node of a Redis Cluster is unavailable. */
function tendAll(
  workers: readonly QueueWorker[],
  redis: RedisClient,
  log: ThrottledLog,
): Promise<(QueueDepth | null)[]> {
  return Promise.all(
    workers.map(async (worker) => {
      const { queue } = worker;
      const depth = await worker.depth(redis).catch((error: unknown) => {
        log.warn({ queue, error: messageOf(error) }, 'queue could not be counted');
        return null;
      });
      // A full Redis refuses this and counts all the same.
      await worker.shortenDelays(redis).catch((error: unknown) => {
        log.warn({ queue, error: messageOf(error) }, 'delays of a queue could not be shortened');
      });
      return depth;
    }),
  );
}

/** How many nodes reported within the last hour. */
async function countActiveNodes(store: SqlRunner, clusterId: number): Promise<number> {
  const isActive = gt(node.last_seen, sql`now() - interval '1 hour'`);
  const [counted] = await store.query((db) =>
    db
      .select({ nodes: typed(int8, sql`count(*)`) })
      .from(node)
      .where(and(eq(node.cluster_id, clusterId), isActive)),
  );
  return counted?.nodes ?? 0;
}
