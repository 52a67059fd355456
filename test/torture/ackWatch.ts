/*
 * Watches acknowledgements: repeatedly reads the replies in Redis and then the acked seqs committed in Postgres. A committed
 * acked seq only rises, so a reply must never be ahead of it.
 *
 * After Postgres was restored from an older copy, replies of earlier ack generations are not compared: the next generation
 * replaces them.
 */
import { Redis } from 'ioredis';
import { ackReplyKey, parseAckReply } from '../../src/protocol/redisKeys.ts';
import type { Premature } from './checker.ts';
import { type CommittedAck, readCommittedAcks, withClient } from './store.ts';

const EVERY_MS = 50;
/** The seq that a forged reply acknowledges; no agent here writes this many records. */
export const FORGED_SEQ = 1_000_000;

export interface AckWatchOptions {
  readonly redisUrl: string;
  readonly databaseUrl: string;
  readonly cluster: string;
  readonly nodes: readonly string[];
}

export class AckWatch {
  readonly premature: Premature[] = [];
  readonly #options: AckWatchOptions;
  readonly #redis: Redis;
  /** Replies up to this ack generation come from a Postgres that was replaced since. */
  readonly #replaced = new Map<string, number>();
  #restores = 0;
  #comparisons = 0;
  #stopped = false;
  readonly #running: Promise<void>;

  constructor(options: AckWatchOptions) {
    this.#options = options;
    this.#redis = new Redis(options.redisUrl, {
      commandTimeout: 2_000,
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      retryStrategy: () => 200,
    });
    // Redis is killed on purpose; a failed read is repeated.
    this.#redis.on('error', () => undefined);
    this.#running = this.#run();
  }

  /** How often replies were compared. */
  get comparisons(): number {
    return this.#comparisons;
  }

  /** Called while Postgres is down, before an older copy takes its place. */
  async restoring(committed: ReadonlyMap<string, CommittedAck>): Promise<void> {
    this.#restores += 1;
    const replace = (epoch: string, ackGeneration: number) =>
      this.#replaced.set(epoch, Math.max(ackGeneration, this.#replaced.get(epoch) ?? 0));
    for (const [epoch, { ackGeneration }] of committed) replace(epoch, ackGeneration + 1);
    const replies = await this.#replies().catch(() => []);
    for (const { epoch, ackGeneration } of replies) replace(epoch, ackGeneration);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
    this.#redis.disconnect();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      await withClient(this.#options.databaseUrl, async (client) => {
        while (!this.#stopped) {
          const restores = this.#restores;
          const replies = await this.#replies().catch(() => []);
          const acks = await readCommittedAcks(client);
          if (restores === this.#restores) this.#compare(replies, acks);
          await pause(EVERY_MS);
        }
      }).catch(() => pause(EVERY_MS));
    }
  }

  async #replies(): Promise<{ epoch: string; ackGeneration: number; ackedSeq: number }[]> {
    const { cluster, nodes } = this.#options;
    const hashes = await Promise.all(nodes.map((node) => this.#redis.hgetall(ackReplyKey(cluster, node))));
    return hashes.flatMap((hash) =>
      Object.entries(hash).flatMap(([epoch, json]) => {
        const reply = parseAckReply(json);
        return reply.ok ? [{ epoch, ...reply.value }] : [];
      }),
    );
  }

  #compare(
    replies: readonly { epoch: string; ackGeneration: number; ackedSeq: number }[],
    acks: ReadonlyMap<string, CommittedAck>,
  ): void {
    if (replies.length > 0) this.#comparisons += 1;
    for (const { epoch, ackGeneration, ackedSeq: acknowledged } of replies) {
      if (acknowledged === FORGED_SEQ) continue;
      const committed = acks.get(epoch)?.ackedSeq ?? 0;
      if (acknowledged <= committed || ackGeneration <= (this.#replaced.get(epoch) ?? 0)) continue;
      const known = this.premature.some(
        (each) => each.epoch === epoch && each.ackGeneration === ackGeneration,
      );
      if (!known) this.premature.push({ epoch, ackGeneration, acknowledged, committed });
    }
  }
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
