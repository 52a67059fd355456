/*
 * The system that a schedule breaks: a real Redis and Postgres, processes of two controllers and some agents, each with its own
 * routes, and simulated runtimes with pod churn.
 *
 * Each part has one fault at a time: the next one waits until the one before has ended.
 */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
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
import { run, tail } from '../../devtools/localServices/process.ts';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import {
  abandonedFolders,
  type TemporaryFolder,
  temporaryFolder,
} from '../../devtools/localServices/temporaryFolder.ts';
import type { KubeletServer } from '../../devtools/simulator/kubeletServer.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import type { Mono } from '../../src/protocol/units.ts';
import { aclRules, REDIS_USERS, type RedisUser, redisUserName } from '../../src/redis/users.ts';
import { CLUSTER, inputsLeft } from '../support/batches.ts';
import { failingDiskArgs } from '../support/failingDisk.ts';
import { clockArgs } from '../support/movedClock.ts';
import { AckWatch } from './ackWatch.ts';
import { Attacker } from './attacker.ts';
import { readAudit, readSpool, readStarts } from './audit.ts';
import type { Death } from './checker.ts';
import { LimitedDisk } from './disk.ts';
import type { Attempt } from './facts.ts';
import type { KubeletTruth } from './kubeletCheck.ts';
import { BreakableRoute } from './route.ts';
import type { Part } from './schedule.ts';
import { readCommittedAcks, withClient } from './store.ts';

export const QUEUES = 2;
/** The log message of an agent that was given a forged acknowledgement. */
export const REFUSED_ACK = 'acknowledgement of records that were never written refused';

/** Short intervals. `overdueAfter` stays long: half of it is how long a busy machine may stall an agent. */
const AGENT_INTERVALS: PlegwatchSettings = {
  intervalAckGeneration: '4s',
  intervalRetiredEpochs: '8s',
  intervalResend: '3s',
  intervalIdle: '2s',
  intervalSpoolSweep: '1s',
  intervalRedisRetry: '2s',
};
const INGEST_INTERVALS: PlegwatchSettings = {
  intervalFlow: '2s',
  intervalStoreWait: '4s',
  intervalJobDelay: '1s',
  intervalFaultDelay: '1s',
  intervalJobLock: '3s',
  intervalSweep: '2s',
  intervalRedisRetry: '2s',
};
const AGENT = {
  relistPeriod: '500ms',
  overdueAfter: '4s',
  missedAfter: '5s',
  kubeletLateAfter: '2s',
  spoolFsync: '200ms',
  logLevel: 'info',
};
const STARTS_WITHIN_MS = 240_000;
const LOGGED_LINES = 8;
const LOGGED_CHARACTERS = 300;

export interface WorldOptions {
  /** The checkout of the program under test: this one, or one that is broken on purpose. */
  readonly root: string;
  readonly seed: number;
  readonly nodes: number;
  readonly controllers: number;
  /** Nodes that delete acknowledged records at once, by number. */
  readonly forgetful: ReadonlySet<number>;
}

export interface Node {
  readonly name: string;
  readonly runtime: SimulatedRuntime;
  readonly agent: LocalPlegwatch;
  readonly spool: string;
  readonly audit: string;
  /** The file that holds the offset of its clock. */
  readonly clock: string;
  /** The file that says how its disk fails. */
  readonly diskFailures: string;
  readonly redis: BreakableRoute;
  /** A disk that can be filled; null if this machine cannot mount one. */
  readonly disk: LimitedDisk | null;
}

export interface Controller {
  readonly program: LocalPlegwatch;
  readonly redis: BreakableRoute;
  readonly postgres: BreakableRoute;
}

/** The passwords of the users of Redis, at present. */
type Passwords = Record<RedisUser, string>;

export class World {
  readonly nodes: Node[] = [];
  readonly controllers: Controller[] = [];
  /** The highest seq in the spool of each epoch whose agent has died. */
  readonly ended = new Map<string, number>();
  /** When each epoch began, on the monotonic clock. */
  readonly starts = new Map<string, Mono>();
  /** Every agent that was killed, and when. */
  readonly deaths: Death[] = [];
  readonly dir: string;
  readonly options: WorldOptions;
  readonly redis: LocalRedis;
  readonly postgres: LocalPostgres;
  readonly ackWatch: AckWatch;
  readonly #passwords: Passwords;
  readonly #place: TemporaryFolder;
  readonly #turns = new Map<string, Promise<void>>();
  readonly #cleanUps: (() => Promise<void> | void)[] = [];

  private constructor(
    options: WorldOptions,
    place: TemporaryFolder,
    passwords: Passwords,
    redis: LocalRedis,
    postgres: LocalPostgres,
  ) {
    this.options = options;
    this.dir = place.dir;
    this.#place = place;
    this.#passwords = passwords;
    this.redis = redis;
    this.postgres = postgres;
    this.ackWatch = new AckWatch({
      redisUrl: redis.url,
      databaseUrl: postgres.url,
      cluster: CLUSTER,
      nodes: Array.from({ length: options.nodes }, (_, i) => `node-${i}`),
    });
  }

  static async start(options: WorldOptions): Promise<World> {
    // A killed run leaves its disk mounted.
    const left = abandonedFolders('torture');
    for (const folder of left) await LimitedDisk.sweep(join(folder, 'node-0', 'disk'));
    const place = temporaryFolder('torture', undefined, left);
    const passwords = { agent: 'agent-1', controller: 'controller-1' };
    const [redis, postgres] = await Promise.all([
      startRedis({
        dir: join(place.dir, 'redis'),
        clusters: [CLUSTER],
        passwordOf: (user) => passwords[user],
      }),
      startPostgres({
        dir: join(place.dir, 'postgres'),
        settings: { fsync: 'off', wal_level: 'minimal', max_wal_senders: '0' },
      }),
    ]);
    const cli = join(options.root, 'dist', 'cli.js');
    await createControllerRole(postgres.url);
    const migrate = [cli, 'migrate', '--database-url', postgres.url, '--queues', `${QUEUES}`];
    await run(process.execPath, [...migrate, '--controller-roles', `${CONTROLLER_ROLE}=${CLUSTER}`]);
    const world = new World(options, place, passwords, redis, postgres);
    for (const user of REDIS_USERS) world.#writeSecret(user);
    try {
      for (let i = 0; i < options.controllers; i += 1) world.controllers.push(await world.#controller());
      for (let i = 0; i < options.nodes; i += 1) world.nodes.push(await world.#node(i));
    } catch (error) {
      await world.stop();
      throw error;
    }
    return world;
  }

  /** Runs work on parts after the work queued before it on any of them. */
  inTurn(parts: readonly string[], work: () => Promise<void>): Promise<void> {
    const turn = Promise.all(parts.map((part) => this.#turns.get(part))).then(work);
    const ended = turn.catch(() => undefined);
    for (const part of parts) this.#turns.set(part, ended);
    return turn;
  }

  node(i: number): Node {
    const node = this.nodes[i];
    if (node === undefined) throw new Error(`there is no node ${i}`);
    return node;
  }

  controller(i: number): Controller {
    const controller = this.controllers[i];
    if (controller === undefined) throw new Error(`there is no controller ${i}`);
    return controller;
  }

  kubelet(i: number): KubeletServer {
    const { kubelet } = this.node(i).runtime;
    if (kubelet === null) throw new Error(`node ${i} has no kubelet`);
    return kubelet;
  }

  /** The process of a part. */
  service(part: Part): LocalPlegwatch | LocalRedis | LocalPostgres {
    if (part === 'redis') return this.redis;
    if (part === 'postgres') return this.postgres;
    const i = Number(part.split(' ')[1]);
    return part.startsWith('agent') ? this.node(i).agent : this.controller(i).program;
  }

  /** Restarts a part, repeatedly if needed: without its services a program exits, and a supervisor would retry. */
  async startAgain(part: Part): Promise<void> {
    const deadline = performance.now() + STARTS_WITHIN_MS;
    for (;;) {
      try {
        return await this.service(part).restart();
      } catch (error) {
        if (performance.now() > deadline) throw error;
        await delay(200);
      }
    }
  }

  /** Records what is in the spool of a dead agent. Call it before the next one starts. */
  agentDied(i: number): void {
    this.deaths.push({ node: this.node(i).name, at: Date.now() });
    this.#learnStarts(i);
    for (const [epoch, last] of readSpool(this.node(i).spool)) {
      if (!this.ended.has(epoch)) this.ended.set(epoch, last);
    }
  }

  /** The truth about each runtime and its kubelet. */
  kubeletTruths(): KubeletTruth[] {
    return this.nodes.map(({ name, runtime }, i) => {
      this.#learnStarts(i);
      return { node: name, entries: runtime.truth.entries };
    });
  }

  #learnStarts(i: number): void {
    for (const [epoch, start] of readStarts(this.node(i).spool)) this.starts.set(epoch, start);
  }

  attempts(): Attempt[] {
    return this.nodes.flatMap(({ name, audit }) => readAudit(audit, name));
  }

  /** Runs commands on Redis directly, not over a route. */
  async inRedis<T>(work: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis(this.redis.url, {
      maxRetriesPerRequest: 0,
      commandTimeout: 120_000,
      retryStrategy: () => null,
    });
    // The command rejects too.
    redis.on('error', () => undefined);
    try {
      return await work(redis);
    } finally {
      redis.disconnect();
    }
  }

  /** The number of batches that are not handled. */
  undrained(): Promise<number> {
    return this.inRedis((redis) => inputsLeft(redis, QUEUES));
  }

  /** An attacker beside the agents. */
  attack(operations: number, pauseMs: number): Attacker {
    const attacker = new Attacker({
      seed: this.options.seed,
      operations,
      pauseMs,
      queues: QUEUES,
      nodes: this.nodes.map(({ name }) => name),
      agentUrl: () => this.redis.urlOf('agent'),
      adminUrl: this.redis.url,
    });
    this.#cleanUps.push(() => attacker.abandon());
    return attacker;
  }

  /** The refusals of agents and controllers that their logs tell of, as marks. */
  refusals(): string[] {
    const marks: string[] = [];
    for (const { log } of [
      ...this.controllers.map(({ program }) => program),
      ...this.nodes.map(({ agent }) => agent),
    ]) {
      for (const line of log().split('\n')) {
        const [, kind] = /"reason":"(\w+)".*"msg":"removed from an inbox unread"/.exec(line) ?? [];
        const [, claim] = /"claim":"(\w+)".*"msg":"claim of a batch not believed"/.exec(line) ?? [];
        if (kind !== undefined) marks.push(`removal ${kind}`);
        if (claim !== undefined) marks.push(`unbelieved ${claim}`);
        if (line.includes(REFUSED_ACK)) marks.push('refused ack never_written');
      }
    }
    return marks;
  }

  /** A controller that started while Redis had another password has ended: a supervisor starts it again. */
  async startControllers(): Promise<void> {
    for (const [i, { program }] of this.controllers.entries())
      if (!program.running()) await this.startAgain(`controller ${i}`);
  }

  endedControllers(): string[] {
    return this.controllers.flatMap(({ program }, i) =>
      program.running() ? [] : [`controller ${i} has ended`],
    );
  }

  /** Stops Postgres, copies its files and starts it again. */
  async copyPostgres(): Promise<void> {
    await this.#endPostgres();
    await this.#replace('copy', 'data');
    await this.startAgain('postgres');
  }

  /** Restarts Postgres from the copy. */
  async restorePostgres(): Promise<void> {
    if (!existsSync(join(this.dir, 'postgres', 'copy'))) return;
    const committed = await withClient(this.postgres.url, async (client) => {
      // However long it takes until Postgres has ended, no batch is committed, and so none acknowledged, that was not read here.
      await client.query('BEGIN; LOCK TABLE store.epoch IN EXCLUSIVE MODE');
      const acks = await readCommittedAcks(client);
      await this.#endPostgres();
      return acks;
    });
    await this.ackWatch.restoring(committed);
    await this.#replace('data', 'copy');
    await this.startAgain('postgres');
  }

  async copyRedis(): Promise<void> {
    await this.inRedis((redis) => redis.call('SAVE'));
    renameSync(join(this.dir, 'redis', 'dump.rdb'), join(this.dir, 'redis', 'copy.rdb'));
  }

  async restoreRedis(): Promise<void> {
    if (!existsSync(join(this.dir, 'redis', 'copy.rdb'))) return;
    await this.redis.kill();
    cpSync(join(this.dir, 'redis', 'copy.rdb'), join(this.dir, 'redis', 'dump.rdb'));
    await this.startAgain('redis');
    rmSync(join(this.dir, 'redis', 'dump.rdb'));
  }

  /** Redis has the new password at once, the Secret only after this long. */
  async changePassword(user: RedisUser, afterMs: number): Promise<void> {
    const [name, number] = this.#passwords[user].split('-');
    const password = `${name}-${Number(number) + 1}`;
    const hash = createHash('sha256').update(password).digest('hex');
    const of = redisUserName(user, CLUSTER);
    await this.inRedis(async (redis) => {
      await redis.call('ACL', 'SETUSER', of, 'resetpass', ...aclRules(user, CLUSTER, hash));
      await redis.call('CLIENT', 'KILL', 'USER', of);
    });
    this.#passwords[user] = password;
    await delay(afterMs);
    this.#writeSecret(user);
  }

  #secretOf(user: RedisUser): string {
    return join(this.dir, `secret-${user}`);
  }

  #writeSecret(user: RedisUser): void {
    mkdirSync(this.#secretOf(user), { recursive: true });
    writeFileSync(join(this.#secretOf(user), 'username'), redisUserName(user, CLUSTER));
    writeFileSync(join(this.#secretOf(user), 'password'), this.#passwords[user]);
  }

  agentSettings(i: number, spool: string): PlegwatchSettings {
    const { socket } = this.node(i).runtime;
    return this.#agentSettings(i, spool, socket, this.node(i).redis);
  }

  /** The end of every program's log. */
  logs(): string[] {
    const programs = [
      ...this.nodes.map(({ agent }) => agent),
      ...this.controllers.map(({ program }) => program),
    ];
    return programs.map(({ logFile }) => {
      const lines = tail(logFile).split('\n').slice(-LOGGED_LINES);
      return ['---', ...lines.map((line) => line.slice(0, LOGGED_CHARACTERS))].join('\n');
    });
  }

  async stop(): Promise<void> {
    await this.ackWatch.stop();
    for (const { agent } of this.nodes) await agent.kill('SIGKILL');
    for (const { program } of this.controllers) await program.kill('SIGKILL');
    for (const cleanUp of this.#cleanUps.reverse()) await cleanUp();
    await Promise.all([this.redis.stop(), this.postgres.stop()]);
    this.#place.remove();
  }

  async #endPostgres(): Promise<void> {
    await this.postgres.kill('SIGINT');
    for (let i = 0; i < 100 && this.postgres.running(); i += 1) await delay(50);
    if (this.postgres.running()) await this.postgres.kill('SIGKILL');
  }

  /** Replaces files of Postgres by a copy of others, keeping their owner. */
  async #replace(there: string, by: string): Promise<void> {
    const [to, from] = [there, by].map((name) => join(this.dir, 'postgres', name));
    await run('/bin/sh', ['-c', 'rm -rf "$0" && cp -a "$1" "$0"', `${to}`, `${from}`]);
  }

  async #controller(): Promise<Controller> {
    const redis = await this.#route(this.redis.port);
    const postgres = await this.#route(this.postgres.port);
    const databaseUrl = new URL(over(postgres, this.postgres.url));
    databaseUrl.username = CONTROLLER_ROLE;
    const program = await startPlegwatch({
      cli: join(this.options.root, 'dist', 'cli.js'),
      command: 'controller',
      settings: {
        cluster: CLUSTER,
        redisUrl: over(redis, this.redis.url),
        redisSecretDir: this.#secretOf('controller'),
        databaseUrl: databaseUrl.href,
        noKube: 'true',
        ...INGEST_INTERVALS,
      },
    });
    this.#cleanUps.push(() => program.stop());
    return { program, redis, postgres };
  }

  async #node(i: number): Promise<Node> {
    const name = `node-${i}`;
    const folder = join(this.dir, name);
    mkdirSync(folder);
    const disk = i === 0 ? await LimitedDisk.make(join(folder, 'disk')) : null;
    if (disk !== null) this.#cleanUps.push(() => disk.remove());
    const runtime = await startSimulatedRuntime({
      socket: join(folder, 'cri.sock'),
      seed: this.options.seed * 100 + i,
      churn: { pods: 6, meanMs: 2_500, restarts: 1, odds: { lasting: 0.3 }, oddForMs: 8_000 },
      kubelet: { podsApi: this.#podsApi(i), evented: i % 2 === 1, loses: 0.02 },
      keepTruth: true,
    });
    this.#cleanUps.push(() => runtime.stop());
    const redis = await this.#route(this.redis.port);
    const spool = join(disk?.dir ?? folder, 'spool');
    const clock = join(folder, 'clock');
    const diskFailures = join(folder, 'disk-failures');
    const agent = await startPlegwatch({
      cli: join(this.options.root, 'dist', 'cli.js'),
      command: 'agent',
      settings: this.#agentSettings(i, spool, runtime.socket, redis),
      nodeArgs: [...clockArgs(clock), ...failingDiskArgs(diskFailures)],
    });
    this.#cleanUps.push(() => agent.stop());
    return { name, runtime, agent, spool, audit: join(folder, 'audit'), redis, disk, clock, diskFailures };
  }

  #agentSettings(i: number, spoolDir: string, socket: string, redis: BreakableRoute): PlegwatchSettings {
    return {
      cluster: CLUSTER,
      node: `node-${i}`,
      redisUrl: over(redis, this.redis.url),
      redisSecretDir: this.#secretOf('agent'),
      criEndpoint: `unix://${socket}`,
      podsApi: this.#podsApi(i),
      spoolDir,
      spoolRetention: this.options.forgetful.has(i) ? '0' : '24h',
      auditFile: join(this.dir, `node-${i}`, 'audit'),
      ...AGENT,
      ...AGENT_INTERVALS,
    };
  }

  #podsApi(i: number): string {
    return join(this.dir, `node-${i}`, 'pods-api.sock');
  }

  async #route(port: number): Promise<BreakableRoute> {
    const route = await BreakableRoute.to(port);
    this.#cleanUps.push(() => route.cut());
    return route;
  }
}

/** This checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The same URL, but over a route. */
function over({ port }: BreakableRoute, url: string): string {
  const result = new URL(url);
  result.port = `${port}`;
  return result.href;
}
