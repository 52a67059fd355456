/*
 * Redis as agents see it, and the network before it, under simulated time: commands travel for a while, arrive or not, and are answered
 * or not. It can lose everything, fall back to an earlier state, be full, and be cut off.
 */
import type { Random } from '../../devtools/simulator/random.ts';
import { ackReplyKey, flowSettingsKey } from '../../src/protocol/redisKeys.ts';
import type { RedisConnection } from '../../src/redis/client.ts';
import type { SimulatedTime } from './time.ts';

interface State {
  readonly inbox: ReadonlyMap<string, string>;
  readonly replies: ReadonlyMap<string, string>;
}

interface Place {
  readonly cluster: string;
  readonly node: string;
}

export class SimulatedRedis {
  readonly time: SimulatedTime;
  readonly random: Random;
  readonly trace: (line: string) => void;
  /** The fields of all inboxes, and the signs of life. */
  inbox = new Map<string, string>();
  replies = new Map<string, string>();
  flow: string | null = null;
  isFull = false;
  /** The longest that a command or its answer travels, in milliseconds. */
  travelMs = 20;
  readonly #place: Place;
  #saved: State = { inbox: new Map(), replies: new Map() };
  #isCut = false;
  #connection: SimulatedConnection | null = null;
  #connections = 0;

  constructor(place: Place, time: SimulatedTime, random: Random, trace: (line: string) => void) {
    this.#place = place;
    this.time = time;
    this.random = random;
    this.trace = trace;
  }

  /** Takes the place of `connectRedis`. The connection before belonged to an agent that is gone. */
  connect({ onError, onReady = () => undefined }: RedisConnection): SimulatedConnection {
    this.abandon();
    this.#connections += 1;
    this.#connection = new SimulatedConnection(this, { onError, onReady, process: this.#connections });
    if (!this.#isCut) this.#connection.open();
    return this.#connection;
  }

  /** The agent at the other end is gone: it hears nothing more. */
  abandon(): void {
    this.#connection?.die();
    this.#connection = null;
  }

  cut(): void {
    this.#isCut = true;
    this.#connection?.close();
  }

  join(): void {
    this.#isCut = false;
    this.#connection?.open();
  }

  save(): void {
    this.#saved = { inbox: new Map(this.inbox), replies: new Map(this.replies) };
  }

  /** A replica that was behind takes over. */
  failOver(): void {
    this.#become(this.#saved);
  }

  wipe(): void {
    this.flow = null;
    this.#become({ inbox: new Map(), replies: new Map() });
  }

  #become({ inbox, replies }: State): void {
    this.inbox = new Map(inbox);
    this.replies = new Map(replies);
    const wasCut = this.#isCut;
    this.cut();
    if (!wasCut) this.join();
  }

  read(key: string): string | null {
    return key === flowSettingsKey(this.#place.cluster) ? this.flow : null;
  }

  field(key: string, field: string): string | null {
    const isOurs = key === ackReplyKey(this.#place.cluster, this.#place.node);
    return isOurs ? (this.replies.get(field) ?? null) : null;
  }

  add(key: string, id: string, data: string): number {
    if (this.isFull) throw new Error("OOM command not allowed when used memory > 'maxmemory'.");
    const place = `${key} ${id}`;
    if (this.inbox.has(place)) return 0;
    this.inbox.set(place, data);
    return 1;
  }

  set(key: string, field: string, data: string): number {
    this.inbox.delete(`${key} ${field}`);
    return this.add(key, field, data);
  }
}

interface Listeners extends Required<Pick<RedisConnection, 'onError' | 'onReady'>> {
  /** Ids of batches differ in each process of an agent. */
  readonly process: number;
}

/** The part of a client that a shipper uses. */
class SimulatedConnection {
  status: 'ready' | 'reconnecting' | 'end' = 'reconnecting';
  readonly #redis: SimulatedRedis;
  readonly #listeners: Listeners;
  /** Rises with every loss of the connection: what was under way before is lost. */
  #losses = 0;
  #isDead = false;

  constructor(redis: SimulatedRedis, listeners: Listeners) {
    this.#redis = redis;
    this.#listeners = listeners;
  }

  open(): void {
    if (this.status !== 'reconnecting') return;
    setTimeout(
      () => {
        if (this.status !== 'reconnecting' || this.#isDead) return;
        this.status = 'ready';
        this.#listeners.onReady();
      },
      this.#redis.random.between(1, 100),
    );
  }

  close(): void {
    if (this.status === 'end') return;
    this.#losses += 1;
    this.status = 'reconnecting';
    if (!this.#isDead) this.#listeners.onError('read ECONNRESET');
  }

  die(): void {
    this.#isDead = true;
    this.status = 'end';
  }

  disconnect(): void {
    this.#losses += 1;
    this.status = 'end';
  }

  getrange(key: string, from: number, to: number): Promise<string> {
    return this.#command(`getrange ${key}`, () => (this.#redis.read(key) ?? '').slice(from, to + 1));
  }

  hstrlen(key: string, field: string): Promise<number> {
    return this.#command(`hstrlen ${field}`, () => this.#redis.field(key, field)?.length ?? 0);
  }

  hmget(key: string, ...fields: string[]): Promise<(string | null)[]> {
    return this.#command(`hmget ${fields.join(' ')}`, () =>
      fields.map((field) => this.#redis.field(key, field)),
    );
  }

  hsetnx(key: string, id: string, data: string): Promise<number> {
    return this.#command(`hsetnx ${id}`, () =>
      this.#redis.add(key, `${id}.${this.#listeners.process}`, data),
    );
  }

  hset(key: string, field: string, data: string): Promise<number> {
    return this.#command(`hset ${field}`, () =>
      this.#redis.set(key, `${field}.${this.#listeners.process}`, data),
    );
  }

  async #command<T>(name: string, execute: () => T): Promise<T> {
    const losses = this.#losses;
    await this.#travel(losses);
    const answer = execute();
    this.#redis.trace(`${name} = ${JSON.stringify(answer)}`);
    await this.#travel(losses);
    return answer;
  }

  async #travel(losses: number): Promise<void> {
    const { time, random, travelMs } = this.#redis;
    time.happened();
    if (this.status === 'ready')
      await new Promise<void>((resolve) => setTimeout(resolve, random.between(0.1, travelMs)));
    time.happened();
    if (this.#isDead) await new Promise(() => undefined);
    if (this.status !== 'ready' || losses !== this.#losses) throw new Error('Connection is closed.');
  }
}
