/*
 * Secrets that are rotated while the programs run. Their files change, as the kubelet changes those of a mounted Secret: what is
 * connected stays connected, and what is refused reads them again. Nothing restarts, and nothing is lost.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LocalPlegwatch } from '../../devtools/localServices/plegwatch.ts';
import { type LocalRedisCluster, startRedisCluster } from '../../devtools/localServices/redisCluster.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import { aclRules, type RedisUser } from '../../src/redis/users.ts';
import { query } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { CLUSTER, metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

/** How soon a refused connection is tried again. */
const SOON = { intervalRedisRetry: '1s' };
const UNACKED = 'plegwatch_unacked_records';
const READ_AGAIN = '--redis-secret-dir (PLEGWATCH_REDIS_SECRET_DIR) is read again before the next try';

needs('redis-server', 'postgres')('while the programs run', () => {
  let system: System;
  let cluster: LocalRedisCluster;
  let runtime: SimulatedRuntime;
  let pods = 0;
  let rotations = 0;

  beforeAll(async () => {
    system = await System.start({ kube: false });
    cluster = await startRedisCluster();
    await query(system.postgres.url, "CREATE ROLE ctl LOGIN PASSWORD 'first'");
    await query(system.postgres.url, "SELECT store.grant_controller('ctl')");
  });
  beforeEach(async () => {
    runtime = await startSimulatedRuntime({ socket: system.folder(`cri-${pods}.sock`), seed: 1 });
  });
  afterAll(async () => {
    await system?.stop();
    await cluster?.stop();
  });

  /** Writes the files of a Secret and returns their folder. */
  function secret(name: string, files: Readonly<Record<string, string>>): string {
    const dir = system.folder(name);
    mkdirSync(dir, { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(dir, file), text);
    return dir;
  }

  /** A password that no earlier one is. It would have to be escaped in a URL. */
  function newPassword(): string {
    rotations += 1;
    return `p@/%41 ${rotations}`;
  }

  const onEach = (urls: readonly string[], name: string, ...args: readonly string[]) =>
    Promise.all(
      urls.map(async (url) => {
        const redis = new Redis(url);
        await redis.call(name, ...args);
        redis.disconnect();
      }),
    );
  const nameOf = (user: RedisUser) => `rotated-${user}`;
  const setPassword = (urls: readonly string[], user: RedisUser, password: string) => {
    const hash = createHash('sha256').update(password).digest('hex');
    return onEach(urls, 'ACL', 'SETUSER', nameOf(user), 'resetpass', ...aclRules(user, CLUSTER, hash));
  };
  const disconnect = (urls: readonly string[], user: RedisUser) =>
    onEach(urls, 'CLIENT', 'KILL', 'USER', nameOf(user));

  async function stored(node: string): Promise<number> {
    const text = 'SELECT count(*)::int4 AS events FROM plegwatch.container_events WHERE node = $1';
    return (await system.sql<{ events: number }>(text, node))[0]?.events ?? 0;
  }

  function runPod(): void {
    pods += 1;
    runtime.runPod({ name: `pod-${pods}`, containers: ['app'] });
  }

  /** Runs one more pod, and waits until its events are in Postgres. */
  async function recordsOneMorePod(node: string): Promise<void> {
    const before = await stored(node);
    runPod();
    await waitFor('its events are stored', async () => (await stored(node)) >= before + 2);
  }

  const unready = (program: LocalPlegwatch, text: RegExp) =>
    waitFor(`not ready: ${text}`, async () => text.test((await program.ask('/readyz'))?.body ?? ''));
  const ready = (program: LocalPlegwatch) =>
    waitFor('ready', async () => (await program.ask('/readyz'))?.status === 200);

  test.each([
    ['one server', () => [system.redis.url]],
    ['a cluster', () => cluster.masters.map(({ url }) => url)],
  ])('agent and controller take a new password for Redis without a restart: %s', async (_, urls) => {
    const servers = urls();
    const hosts = servers.map((url) => new URL(url).host).join(',');
    const redisUrl = servers.length === 1 ? `redis://${hosts}` : `redis+cluster://${hosts}`;
    const node = `node-${servers.length}`;
    const dirOf = (user: RedisUser, password: string) =>
      secret(`${user}-${servers.length}`, { username: nameOf(user), password });
    const first = newPassword();
    await setPassword(servers, 'agent', first);
    await setPassword(servers, 'controller', first);
    const redisSecretDir = dirOf('controller', first);
    const controller = await system.controller({ redisUrl, redisSecretDir, ...SOON });

    // An agent whose password is refused starts and records.
    const wrong = { redisUrl, redisSecretDir: dirOf('agent', 'wrong'), ...SOON };
    const agent = await system.agent(node, runtime.socket, wrong);
    await waitFor('the agent is subscribed', () => runtime.subscribers > 0);
    runPod();
    await unready(agent, /redis.*--redis-secret-dir .* is read again/);
    await waitFor('records are in the spool', async () => ((await metric(agent, UNACKED)) ?? 0) > 3);
    expect(await stored(node)).toBe(0);
    dirOf('agent', first);
    await ready(agent);
    await waitFor('they are stored', async () => (await stored(node)) >= 3);

    // Open connections stay; disconnected programs wait for the new password, and take it.
    const next = newPassword();
    await setPassword(servers, 'agent', next);
    await setPassword(servers, 'controller', next);
    await recordsOneMorePod(node);
    await disconnect(servers, 'agent');
    await disconnect(servers, 'controller');
    await unready(agent, /redis/);
    await unready(controller, /redis/);
    await waitFor('the log says what is done', () => controller.log().includes(READ_AGAIN));
    dirOf('agent', next);
    dirOf('controller', next);
    await Promise.all([ready(agent), ready(controller)]);
    await recordsOneMorePod(node);
    expect(agent.log() + controller.log()).not.toContain(next);
    await agent.stop();
    await controller.stop();
    await runtime.stop();
  });

  test('a controller takes a new password for Postgres, and what it could not store meanwhile is stored then', async () => {
    const { host, pathname } = new URL(system.postgres.url);
    const databaseSecretDir = secret('database', { username: 'ctl', password: 'first' });
    const databaseUrl = `postgres://${host}${pathname}`;
    const controller = await system.controller({ databaseUrl, databaseSecretDir, ...SOON });
    const agent = await system.agent('node-pg', runtime.socket, SOON);
    await waitFor('the agent is subscribed', () => runtime.subscribers > 0);
    await recordsOneMorePod('node-pg');

    const password = newPassword();
    await system.sql(`ALTER ROLE ctl PASSWORD '${password}'`);
    await recordsOneMorePod('node-pg');
    await system.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ctl'");
    await unready(controller, /database/);
    await waitFor('the log says why', () => controller.log().includes('Postgres refuses the login'));
    expect(controller.log()).toContain(
      '--database-secret-dir (PLEGWATCH_DATABASE_SECRET_DIR) is read again before the next try',
    );
    const before = await stored('node-pg');
    runPod();
    await waitFor('a batch waits', () => controller.log().includes('waiting to store a batch'));
    expect(await stored('node-pg')).toBe(before);
    secret('database', { password });
    await ready(controller);
    await waitFor('its events are stored', async () => (await stored('node-pg')) >= before + 2);
    expect(controller.log()).not.toContain(password);
    expect(controller.log()).not.toContain('batch could not be stored and will be retried');
    await agent.stop();
    await controller.stop();
    await runtime.stop();
  });
});
