/*
 * Senders that cost little: batches are planned and sealed beforehand, as an agent builds them, and then each is added at its time with the
 * agent's own inbox, and its answer asked for as often as an agent asks. They share 16 connections, never send twice, and never slow down.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Inbox } from '../../src/agent/ship/inbox.ts';
import { SealedBatch } from '../../src/agent/ship/sealedBatch.ts';
import { invariant } from '../../src/platform/invariant.ts';
import { batchId, encodeBatch } from '../../src/protocol/batch.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../src/protocol/record.ts';
import {
  ackReplyKey,
  flowSettingsKey,
  MAX_VALUE_BYTES,
  parseAckReply,
} from '../../src/protocol/redisKeys.ts';
import { millis } from '../../src/protocol/units.ts';
import { connectRedis, type RedisClient } from '../../src/redis/client.ts';
import { agentIncarnation, type BatchIncarnation, CLUSTER } from '../../test/support/batches.ts';
import { streamSession } from '../../test/support/records.ts';
import type { ControllerSystem, ProcessorTime } from './controllerSystem.ts';
import { drained } from './drain.ts';

/** Times of the records of a plan, which has milliseconds since its beginning. */
export interface PlanClock {
  /** Microseconds since the start of the node's epoch. */
  readonly t: (ms: number) => number;
  /** Microseconds since 1970. */
  readonly wall: (ms: number) => number;
}

export interface PlannedBatch {
  readonly node: string;
  /** When it is sent. */
  readonly at: number;
  readonly objects: readonly ContainerIdentity[];
  readonly records: (clock: PlanClock) => EvidenceRecord[];
  /** It has no record, and shows that the node's agent runs: no answer is asked for. */
  readonly isSign?: boolean;
}

export interface PlayedPlan {
  /** When it began and when its last batch was due, in milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
  /** How much later than planned batches were sent, in milliseconds. */
  readonly late: readonly number[];
  /** Between the two. */
  readonly used: ProcessorTime;
  readonly sendersMs: number;
  /** Batches without an answer a while after the end. */
  readonly unanswered: number;
}

interface Ready {
  readonly at: number;
  readonly isSign: boolean;
  readonly agent: Agent;
  readonly batch: SealedBatch;
}

interface Agent {
  readonly name: string;
  readonly redis: RedisClient;
  readonly inbox: Inbox;
  readonly incarnation: BatchIncarnation;
  /** The start of its epoch, in microseconds since 1970. */
  readonly startedUs: number;
  next: number;
  /** The last seq that was sent, and when its answer is asked for; null while none is awaited. */
  sent: number;
  askAt: number | null;
  wait: number;
}

const TICK_MS = 5;
/** As in src/agent/ship/shipper.ts and ackReader.ts. */
const PASS_MS = 250;
const MIN_WAIT_MS = 200;
const MAX_WAIT_MS = 5_000;
/** How long answers are waited for after the end. */
const END_WITHIN_MS = 60_000;
const AT_ONCE = 64;
const CONNECTIONS = 16;
/** Records of minutes lie after the start of their epoch. */
const STARTED_AGO_MS = 600_000;
const CALIBRATION = 200;

export class SealedSenders {
  readonly #system: ControllerSystem;
  readonly #cluster: string;
  readonly #connections: readonly RedisClient[];
  readonly #agents: ReadonlyMap<string, Agent>;
  #failure: unknown = null;

  private constructor(
    system: ControllerSystem,
    connections: readonly RedisClient[],
    { nodes, cluster }: { readonly nodes: readonly string[]; readonly cluster: string },
  ) {
    this.#system = system;
    this.#cluster = cluster;
    this.#connections = connections;
    this.#agents = new Map(
      nodes.map((name, n) => [
        name,
        agentOf({ name, cluster }, connections[n % connections.length], system.queues),
      ]),
    );
  }

  /** Returns when the store knows each node. */
  static async start(
    system: ControllerSystem,
    nodes: readonly string[],
    cluster = CLUSTER,
  ): Promise<SealedSenders> {
    const connections = Array.from({ length: CONNECTIONS }, () => connectTo(system, cluster));
    const senders = new SealedSenders(system, connections, { nodes, cluster });
    const hello = nodes.map((node) => ({ node, at: 0, objects: [], records: () => [streamSession()] }));
    for (const one of hello) {
      const { batch, agent } = await senders.#seal(one, Date.now());
      await agent.inbox.add(batch);
    }
    await drained(system);
    return senders;
  }

  /**
   * Sends the batches of a plan, which are in the order of their times. `everyMs`: how often each node asks for the flow settings. `begin`: when,
   * at the earliest after its sealing time and that of others that begin then; default: after its own.
   */
  async play(plan: readonly PlannedBatch[], everyMs: number, begin?: number): Promise<PlayedPlan> {
    const ready: Ready[] = [];
    const from = begin ?? Date.now() + (await this.sealingTime(plan));
    const sealing = this.#sealAll(plan, from, ready);
    while (Date.now() < from) await delay(Math.min(100, Math.max(1, from - Date.now())));
    const last = plan.at(-1)?.at ?? 0;
    const counted = this.#system.countProcessorTime();
    const ownBefore = process.cpuUsage();
    const asking = this.#askForSettings(everyMs);
    const late = await this.#send(ready, { from, count: plan.length });
    const { user, system } = process.cpuUsage(ownBefore);
    const used = counted();
    clearInterval(asking);
    await sealing;
    const deadline = Date.now() + END_WITHIN_MS;
    while (this.#awaiting > 0 && Date.now() < deadline) {
      this.#askForReplies();
      await delay(TICK_MS);
    }
    const unanswered = await this.#system.left();
    return { from, to: from + last, late, used, sendersMs: (user + system) / 1000, unanswered };
  }

  readonly #failed = (error: unknown): void => {
    this.#failure ??= error;
  };

  close(): void {
    for (const redis of this.#connections) redis.disconnect();
  }

  async #send(
    ready: readonly Ready[],
    { from, count }: { readonly from: number; readonly count: number },
  ): Promise<number[]> {
    const late: number[] = [];
    while (late.length < count) {
      for (let one = ready[late.length]; one !== undefined; one = ready[late.length]) {
        const now = Date.now();
        if (from + one.at > now) break;
        late.push(now - from - one.at);
        const { agent, batch, isSign } = one;
        if (!isSign) {
          agent.sent = batch.last;
          agent.wait = MIN_WAIT_MS;
          agent.askAt = Math.min(agent.askAt ?? Number.POSITIVE_INFINITY, now + PASS_MS);
        }
        (isSign ? agent.inbox.showLife(batch) : agent.inbox.add(batch)).catch(this.#failed);
      }
      this.#askForReplies();
      await delay(TICK_MS);
      if (this.#failure !== null) throw this.#failure;
    }
    return late;
  }

  get #awaiting(): number {
    return [...this.#agents.values()].filter(({ askAt }) => askAt !== null).length;
  }

  #askForReplies(): void {
    const now = Date.now();
    for (const agent of this.#agents.values()) {
      if (agent.askAt === null || agent.askAt > now) continue;
      agent.wait = Math.min(MAX_WAIT_MS, 2 * agent.wait);
      agent.askAt = now + Math.max(PASS_MS, agent.wait);
      this.#askFor(agent).catch(this.#failed);
    }
  }

  async #askFor(agent: Agent): Promise<void> {
    const [json] = await agent.redis.hmget(ackReplyKey(this.#cluster, agent.name), agent.incarnation.epoch);
    const reply = parseAckReply(json ?? '');
    if (reply.ok && reply.value.ackedSeq >= agent.sent) agent.askAt = null;
  }

  #askForSettings(everyMs: number): NodeJS.Timeout {
    const perTick = (this.#agents.size * 100) / everyMs;
    let due = 0;
    return setInterval(() => {
      for (due += perTick; due >= 1; due -= 1) {
        const redis = this.#connections[Math.floor(due) % this.#connections.length];
        redis?.getrange(flowSettingsKey(this.#cluster), 0, MAX_VALUE_BYTES).catch(this.#failed);
      }
    }, 100);
  }

  /** Half as much again as all of them will take, by the first ones, once their code has run. */
  async sealingTime(plan: readonly PlannedBatch[]): Promise<number> {
    const some = plan.slice(0, CALIBRATION);
    const timed = async () => {
      const began = performance.now();
      await Promise.all(some.map((one) => encodeBatch(this.#batchOf(one, Date.now()))));
      return performance.now() - began;
    };
    await timed();
    return 2_000 + (1.5 * plan.length * Math.min(await timed(), await timed())) / Math.max(1, some.length);
  }

  async #sealAll(plan: readonly PlannedBatch[], from: number, ready: Ready[]): Promise<void> {
    for (let i = 0; i < plan.length; i += AT_ONCE)
      ready.push(...(await Promise.all(plan.slice(i, i + AT_ONCE).map((one) => this.#seal(one, from)))));
  }

  /** Takes the next seqs of the node. */
  async #seal(planned: PlannedBatch, from: number): Promise<Ready> {
    const agent = this.#agentOf(planned);
    const batch = this.#batchOf(planned, from);
    agent.next = batch.last + 1;
    return {
      at: planned.at,
      isSign: planned.isSign ?? false,
      agent,
      batch: new SealedBatch(batchId(batch), await encodeBatch(batch), batch.last),
    };
  }

  #batchOf(planned: PlannedBatch, from: number) {
    const { incarnation, startedUs, next } = this.#agentOf(planned);
    const wall = (ms: number) => Math.round((from + ms) * 1000);
    const t = (ms: number) => wall(ms) - startedUs;
    const { at, isSign = false, objects } = planned;
    const times = { mono0: t(at), wall0: wall(at) };
    const known = isSign ? { known: { decided: t(at - 10_000), scraped: t(at - 1_000) } } : {};
    return incarnation.batch(next, planned.records({ t, wall }), {
      ...{ cluster: this.#cluster, ...times, ...known, objects },
    });
  }

  #agentOf({ node }: PlannedBatch): Agent {
    const agent = this.#agents.get(node);
    if (agent === undefined) throw new Error(`there is no agent on ${node}`);
    return agent;
  }
}

function agentOf(
  { name, cluster }: { readonly name: string; readonly cluster: string },
  redis: RedisClient | undefined,
  queues: number,
): Agent {
  invariant(redis, 'there is a connection');
  const incarnation = agentIncarnation(name, 1, STARTED_AGO_MS);
  const { wall0, mono0 } = incarnation.batch(1, []);
  const inbox = new Inbox(redis, cluster, name);
  inbox.select(queues);
  return {
    ...{ name, redis, inbox, incarnation, startedUs: wall0 - mono0 },
    ...{ next: 1, sent: 0, askAt: null, wait: 0 },
  };
}

/** A connection as an agent's, for many nodes. */
const connectTo = ({ redis: { urlOf } }: ControllerSystem, cluster: string): RedisClient =>
  connectRedis(
    { redisUrl: urlOf('agent', cluster) },
    { maxRetry: millis(1_000), onError: () => undefined, patient: true },
  );

/** The processor time while several senders played, in shares of a core. Each of them counts what all take, in its own time. */
export function sharesOf(played: readonly PlayedPlan[]): { used: ProcessorTime; senders: number } {
  const share = (of: (one: PlayedPlan) => number) =>
    played.reduce((sum, one) => sum + of(one) / (one.to - one.from), 0) / played.length;
  return {
    used: {
      controller: share(({ used }) => used.controller),
      postgres: share(({ used }) => used.postgres),
      redis: share(({ used }) => used.redis),
    },
    senders: share(({ sendersMs }) => sendersMs),
  };
}
