/*
 * Ingest between a real Redis and a real Postgres: each test has an empty store and empty queues, starts a controller's ingest on them, and
 * asks what became of the batches that it sent.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { type Ingest, type IngestOptions, startIngest } from '../../src/controller/ingest/ingest.ts';
import { ControllerMetrics } from '../../src/controller/metrics.ts';
import type { Batch } from '../../src/protocol/batch.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { type BatchIncarnation, CLUSTER, createSender, type Sender } from './batches.ts';
import { query, silent, startServer, type TestServer } from './database.ts';
import { started } from './started.ts';
import { passes } from './waitFor.ts';

export class IngestBed {
  #server: TestServer | null = null;
  #redis: LocalRedis | null = null;
  #databaseUrl: string | null = null;
  #sender: Sender | null = null;
  #store: Store | null = null;
  #ingest: Ingest | null = null;
  #metrics = new ControllerMetrics();

  /** Registers hooks, so it must be called outside of tests. */
  constructor(queues: number) {
    beforeAll(async () => {
      [this.#server, this.#redis] = await Promise.all([startServer(), startRedis()]);
    });
    beforeEach(async () => {
      this.#databaseUrl = await this.server.database(queues);
      this.#sender = createSender(this.redis.url, queues);
      await this.#sender.redis.flushall();
      this.#store = await openStore({ databaseUrl: this.#databaseUrl, log: silent });
    });
    afterEach(async () => {
      await this.stop();
      await this.#store?.close();
      await this.#sender?.close();
    });
    afterAll(async () => {
      await Promise.all([this.#server?.stop(), this.#redis?.stop()]);
    });
  }

  get server(): TestServer {
    return started(this.#server);
  }
  get redis(): LocalRedis {
    return started(this.#redis);
  }
  get databaseUrl(): string {
    return started(this.#databaseUrl);
  }
  get sender(): Sender {
    return started(this.#sender);
  }
  get store(): Store {
    return started(this.#store);
  }
  get ingest(): Ingest {
    return started(this.#ingest);
  }
  /** Metrics of the ingest that was started last. */
  get metrics(): ControllerMetrics {
    return this.#metrics;
  }

  /** Starts ingest, instead of the one that runs. */
  async start(more: Partial<IngestOptions> = {}): Promise<void> {
    await this.stop();
    this.#metrics = new ControllerMetrics();
    this.#ingest = await startIngest({
      store: this.store,
      redisUrl: this.redis.urlOf('controller'),
      cluster: CLUSTER,
      log: silent,
      metrics: this.#metrics,
      ...more,
    });
  }

  async stop(): Promise<void> {
    await this.#ingest?.stop();
    this.#ingest = null;
  }

  readonly rows = <R extends Record<string, unknown>>(text: string, values: unknown[] = []): Promise<R[]> =>
    query<R>(this.databaseUrl, text, values);

  /** Waits until all queues are empty. */
  readonly drained = (): Promise<void> => passes(async () => expect(await this.sender.left()).toBe(0));

  /** Sends each batch once the one before it is handled, however often the same one is sent and whatever becomes of it. */
  readonly sendInTurn = async (...batches: readonly Batch[]): Promise<void> => {
    for (const batch of batches) {
      await this.sender.send(batch, randomUUID());
      await this.drained();
    }
  };

  /** Waits until the store has acknowledged the records up to this seq, and no more. */
  readonly acked = (one: BatchIncarnation, ackedSeq: number, ackGeneration = 1): Promise<void> =>
    passes(async () => expect(await this.sender.reply(one)).toMatchObject({ ackGeneration, ackedSeq }));

  readonly ackedSeq = async (one: BatchIncarnation): Promise<number | undefined> =>
    (await this.sender.reply(one))?.ackedSeq;

  /** Waits until this many connections to the store wait for locks. */
  readonly lockWaits = (count: number): Promise<void> =>
    passes(async () => {
      const waiting = await this.rows(
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      );
      expect(waiting).toEqual([{ n: count }]);
    });

  /** The seqs of the stored container events of an incarnation. */
  readonly storedSeqs = async ({ node, epoch }: BatchIncarnation): Promise<number[]> => {
    const stored = await this.rows<{ seq: number }>(
      'SELECT seq FROM plegwatch.container_events WHERE node = $1 AND epoch = $2 ORDER BY seq',
      [node, epoch],
    );
    return stored.map(({ seq }) => seq);
  };
}
