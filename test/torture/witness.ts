/*
 * The witness of acknowledgements: again and again it reads what the replies in Redis promise, and after that what is
 * committed in Postgres. A committed mark only rises, so a reply may never be ahead of it.
 *
 * Except where Postgres was restored from an older copy: the replies of the rounds before that are what the next round is for.
 */
import { Redis } from 'ioredis';
import { ackReplyKey, parseAckReply } from '../../src/protocol/keys.ts';
import type { Premature } from './checker.ts';
import { readMarks, withClient } from './store.ts';

const EVERY_MS = 50;

export interface WitnessOptions {
  readonly redisUrl: string;
  readonly databaseUrl: string;
  readonly cluster: string;
  readonly nodes: readonly string[];
}

export class Witness {
  readonly premature: Premature[] = [];
  readonly #options: WitnessOptions;
  readonly #redis: Redis;
  /** Rounds up to here were answered by a Postgres that is no more. */
  readonly #void = new Map<string, number>();
  /** Counts the restores. */
  #generation = 0;
  #looks = 0;
  #stopped = false;
  readonly #running: Promise<void>;

  constructor(options: WitnessOptions) {
    this.#options = options;
    this.#redis = new Redis(options.redisUrl, {
      commandTimeout: 2_000,
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      retryStrategy: () => 200,
    });
    // It is killed on purpose; what cannot be read now is read the next time.
    this.#redis.on('error', () => undefined);
    this.#running = this.#run();
  }

  /** How often it could compare. */
  get looks(): number {
    return this.#looks;
  }

  /** Called while Postgres is down, before an older copy takes its place. */
  async restoring(committed: ReadonlyMap<string, { round: number }>): Promise<void> {
    this.#generation += 1;
    const void_ = (epoch: string, round: number) =>
      this.#void.set(epoch, Math.max(round, this.#void.get(epoch) ?? 0));
    for (const [epoch, { round }] of committed) void_(epoch, round + 1);
    const replies = await this.#replies().catch(() => []);
    for (const { epoch, ackGeneration } of replies) void_(epoch, ackGeneration);
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
          const generation = this.#generation;
          const replies = await this.#replies().catch(() => []);
          const marks = await readMarks(client);
          if (generation === this.#generation) this.#compare(replies, marks);
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
    marks: ReadonlyMap<string, { mark: number }>,
  ): void {
    if (replies.length > 0) this.#looks += 1;
    for (const { epoch, ackGeneration: round, ackedSeq: acknowledged } of replies) {
      const committed = marks.get(epoch)?.mark ?? 0;
      if (acknowledged <= committed || round <= (this.#void.get(epoch) ?? 0)) continue;
      const known = this.premature.some((each) => each.epoch === epoch && each.round === round);
      if (!known) this.premature.push({ epoch, round, acknowledged, committed });
    }
  }
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
