/*
 * An attacker: one more node, with the agents' own Redis user. While the others are tortured it sends random commands: what that user may send,
 * and, one time of twenty, what it may not, which Redis must refuse.
 *
 *   into any inbox    under ids of its own, of other nodes and of nobody: random values, hostile inputs, too long ones, inputs of honest nodes again
 *   a flood           a thousand inputs at once, as one sender or as many
 *   reads             replies of other nodes, the flow settings
 *
 * It knows the ids and the inputs of honest nodes, which an agent cannot. It makes no evidence in the name of an honest node: only signatures
 * prevent that (test/integration/attribution.test.ts).
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { type Random, randomFor } from '../../devtools/simulator/random.ts';
import { messageOf } from '../../src/platform/errors.ts';
import { sleep } from '../../src/platform/sleep.ts';
import { MAX_INPUT_BYTES } from '../../src/protocol/batch.ts';
import {
  ackReplyKey,
  flowSettingsKey,
  inboxKey,
  MAX_QUEUES,
  QUEUE_NAME,
  queuePrefix,
  signsKey,
} from '../../src/protocol/redisKeys.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { hostileInput } from '../support/hostileInputs.ts';
import { pick } from '../support/hostileValues.ts';

const FORBIDDEN_SHARE = 0.05;
const FLOOD_SHARE = 0.002;
const FLOOD = 1_000;
/** Operations between two looks at what honest nodes send. */
const EVERY = 20;
const MAX_KNOWN = 100;
const RETRY_MS = 100;
/** No fault keeps it from Redis for this long. */
const GIVES_UP_AFTER_MS = 240_000;

export interface AttackerOptions {
  readonly seed: number;
  readonly operations: number;
  /** Between two operations. */
  readonly pauseMs: number;
  readonly queues: number;
  readonly nodes: readonly string[];
  /** With the present password of the agents' user. */
  readonly agentUrl: () => string;
  /** May do everything. */
  readonly adminUrl: string;
}

export class Attacker {
  /** Commands that Redis did not refuse. */
  readonly problems: string[] = [];
  readonly #options: AttackerOptions;
  readonly #random: Random;
  /** Inputs of honest nodes, by their ids. */
  readonly #known = new Map<string, string>();
  readonly #running: Promise<void>;
  /** Aborted when it does the operations that are left without pauses, and ends. */
  readonly #ending = new AbortController();
  #done = 0;
  #refused = 0;
  #hasEnded = false;
  #floodIsDue = false;

  constructor(options: AttackerOptions) {
    this.#options = options;
    this.#random = randomFor(options.seed, 'attacker');
    this.#running = this.#run();
    // The program that stops it hears of an error.
    this.#running.catch(() => undefined);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get marks(): readonly string[] {
    return this.#refused > 0 ? ['refused by_redis'] : [];
  }

  /** Every inbox is flooded at the next operation. */
  floodSoon(): void {
    this.#floodIsDue = true;
  }

  /** Resolves when it has done its operations. Throws if it could not. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#running;
    this.#hasEnded = true;
  }

  /** Ends it, whatever it has done. */
  async abandon(): Promise<void> {
    this.#done = this.#options.operations;
    this.#ending.abort();
    await Promise.allSettled([this.#running]);
  }

  async #run(): Promise<void> {
    const { pauseMs, agentUrl, adminUrl } = this.#options;
    let succeeded = performance.now();
    while (!this.#isDone) {
      const [agent, admin] = [connected(agentUrl()), connected(adminUrl)];
      try {
        while (!this.#isDone) {
          if (this.#done % EVERY === 0) await this.#spy(admin);
          await this.#operation(agent);
          this.#done += 1;
          succeeded = performance.now();
          await sleep(pauseMs, this.#ending.signal);
        }
      } catch (error) {
        // Redis is down, or has another password: the other faults.
        if (performance.now() - succeeded > GIVES_UP_AFTER_MS) throw error;
        await delay(RETRY_MS);
      } finally {
        agent.disconnect();
        admin.disconnect();
      }
    }
  }

  get #isDone(): boolean {
    return this.#ending.signal.aborted && this.#done >= this.#options.operations;
  }

  async #spy(admin: Redis): Promise<void> {
    for (let queue = 0; queue < this.#options.queues; queue += 1) {
      const inbox = inboxKey(CLUSTER, queue);
      const drawn = await admin.hrandfield(inbox, EVERY);
      for (const id of (Array.isArray(drawn) ? drawn : [])
        .map(String)
        .filter((each) => HONEST_ID.test(each))) {
        const text = await admin.hget(inbox, id);
        if (text?.startsWith('{"z":') === true) this.#known.set(id, text);
      }
    }
    for (const id of [...this.#known.keys()].slice(0, -MAX_KNOWN)) this.#known.delete(id);
  }

  /** Throws if Redis cannot be reached. */
  async #operation(agent: Redis): Promise<void> {
    if (this.#floodIsDue) {
      for (let queue = 0; queue < this.#options.queues; queue += 1)
        await this.#flood(agent, inboxKey(CLUSTER, queue));
      this.#floodIsDue = false;
    } else if (this.#random.chance(FORBIDDEN_SHARE)) await this.#forbidden(agent);
    else if (this.#random.chance(FLOOD_SHARE)) await this.#flood(agent, this.#inbox());
    else await this.#allowed(agent);
  }

  async #flood(agent: Redis, inbox: string): Promise<void> {
    const sender = this.#random.chance(0.5) ? () => 'flood' : (i: number) => `flood${i}`;
    const adding = agent.pipeline();
    for (let i = 0; i < FLOOD; i += 1)
      adding.hsetnx(inbox, `${sender(i)}.${this.#done}-${i}`, `{"z":"${i}"}`);
    await adding.exec();
  }

  /** One that the agents' user may send. */
  async #allowed(agent: Redis): Promise<unknown> {
    const random = this.#random;
    const reply = ackReplyKey(CLUSTER, pick(random, [...this.#options.nodes, 'nobody']));
    const epoch = epochOf(pick(random, ['', ...this.#known.keys()]));
    if (random.chance(0.1)) {
      const commands: readonly (() => Promise<unknown>)[] = [
        () => agent.hmget(reply, epoch, 'x'),
        () => agent.hstrlen(reply, epoch),
        () => agent.getrange(flowSettingsKey(CLUSTER), 0, 9),
        () => agent.call('MULTI').then(() => agent.call('DISCARD')),
        () => agent.info('commandstats'),
      ];
      return pick(random, commands)();
    }
    const value = await this.#value(epoch);
    if (random.chance(0.2)) return agent.hset(signsKey(CLUSTER, this.#queue()), this.#id(), value);
    return agent.hsetnx(this.#inbox(), this.#id(), value);
  }

  #inbox(): string {
    return inboxKey(CLUSTER, this.#queue());
  }

  #queue(): number {
    const { queues } = this.#options;
    return Math.floor(this.#random.between(0, this.#random.chance(0.05) ? MAX_QUEUES : queues));
  }

  #id(): string | Buffer {
    const random = this.#random;
    if (random.chance(0.2) && this.#known.size > 0) return pick(random, [...this.#known.keys()]);
    const n = Math.floor(random.between(0, 1e6));
    const odd = ['', '.', '0', 'wait', 'a:b.c', '\n.x', 'é.1', 'a.', '.a', '-1', 'x'.repeat(257)];
    if (random.chance(0.1))
      return random.chance(0.2) ? Buffer.from([0xff, 0x2e, n & 0xff]) : pick(random, odd);
    return random.chance(0.5) ? `flood.${n}` : `s${n}.1`;
  }

  async #value(epoch: string): Promise<string | Buffer> {
    const random = this.#random;
    if (random.chance(0.01)) return Buffer.alloc(MAX_INPUT_BYTES + Math.floor(random.between(-2, 3)), 'x');
    if (random.chance(0.3)) return pick(random, ['', 'x', '{', '{}', '[]', 'null', '\0', '{"enrol":"x"}']);
    if (random.chance(0.2) && this.#known.size > 0) return pick(random, [...this.#known.values()]);
    const victim = agentIncarnation(pick(random, this.#options.nodes));
    const of = epoch === '' ? victim : { ...victim, epoch };
    return (await hostileInput(random, of, this.#done)).text;
  }

  /** One that it may not send. */
  async #forbidden(agent: Redis): Promise<void> {
    const command = this.#forbiddenCommand();
    const [name = '', ...args] = command;
    const refusal = await agent.call(name, ...args).then(() => null, messageOf);
    if (refusal === null) this.problems.push(`Redis did not refuse an agent's ${command.join(' ')}`);
    else if (refusal.startsWith('NOPERM')) this.#refused += 1;
    else throw new Error(refusal);
  }

  #forbiddenCommand(): readonly string[] {
    const random = this.#random;
    const queue = Math.floor(random.between(0, this.#options.queues));
    const inbox = inboxKey(CLUSTER, queue);
    const id = pick(random, ['node.1', ...this.#known.keys()]);
    const job = `${queuePrefix(CLUSTER, queue)}:${QUEUE_NAME}:${pick(random, [id, 'wait', 'meta', 'active'])}`;
    const reply = ackReplyKey(CLUSTER, pick(random, this.#options.nodes));
    return pick<readonly string[]>(random, [
      ...[
        ['HSET', inbox, id, '{}'],
        ['HDEL', inbox, id],
        ['HGET', inbox, id],
        ['HGETALL', inbox],
        ['DEL', inbox],
      ],
      ...[
        ['HSETNX', inboxKey(CLUSTER, MAX_QUEUES), id, '{}'],
        ['HSETNX', inboxKey('other', queue), id, '{}'],
      ],
      ...[
        ['HKEYS', signsKey(CLUSTER, queue)],
        ['HDEL', signsKey(CLUSTER, queue), id],
        ['HSET', signsKey('other', queue), id, '{}'],
      ],
      ...[
        ['HSETNX', job, id, '{}'],
        ['LPUSH', job, id],
        ['ZADD', job, '1', id],
        ['DEL', job],
        ['GET', job],
      ],
      ...[
        ['HSETNX', reply, id, '{}'],
        ['HSET', reply, id, '{}'],
        ['DEL', reply],
      ],
      ...[
        ['SET', flowSettingsKey(CLUSTER), '{}'],
        ['SELECT', '1'],
        ['FLUSHALL'],
        ['KEYS', '*'],
        ['CONFIG', 'GET', '*'],
      ],
      ...[
        ['EVAL', 'return 1', '0'],
        ['EVALSHA', 'a'.repeat(40), '1', inbox],
        ['SCRIPT', 'FLUSH'],
      ],
    ]);
  }
}

/** As of agents: a sender, an epoch and seqs. */
const HONEST_ID = /^[0-9a-f]{16}\.[0-9a-f-]{36}\./;
const epochOf = (id: string): string => id.split('.')[1] ?? '';

function connected(url: string): Redis {
  const redis = new Redis(url, {
    maxRetriesPerRequest: 0,
    commandTimeout: 30_000,
    retryStrategy: () => null,
  });
  // The command rejects too.
  redis.on('error', () => undefined);
  return redis;
}
