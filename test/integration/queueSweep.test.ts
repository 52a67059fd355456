/*
 * The search of a real Redis for jobs in no list, locks that never expire and keys that belong to no job.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { BatchQueue } from '../../src/agent/ship/batchQueue.ts';
import { SealedBatch } from '../../src/agent/ship/sealedBatch.ts';
import { loadAgentScript } from '../../src/controller/ingest/agentScript.ts';
import type { QueueRepair } from '../../src/controller/ingest/queueGuard.ts';
import { sweepQueues } from '../../src/controller/ingest/queueSweep.ts';
import { MAX_QUEUES, QUEUE_NAME, queueOf, queuePrefix } from '../../src/protocol/redisKeys.ts';
import { millis } from '../../src/protocol/units.ts';
import { connectRedis, type RedisClient } from '../../src/redis/client.ts';
import { CLUSTER } from '../support/batches.ts';
import { needs } from '../support/needs.ts';

const FOREIGN_KEYS = 5_000;

needs('redis-server')('the sweep of the queues', () => {
  let server: LocalRedis;
  let redis: RedisClient;
  /** As a controller and as an agent. */
  let sweeper: RedisClient;
  let agent: RedisClient;

  beforeAll(async () => {
    server = await startRedis();
    const connect = (redisUrl: string) =>
      connectRedis({ redisUrl }, { maxRetry: millis(1_000), onError: () => undefined, patient: true });
    redis = connect(server.url);
    sweeper = connect(server.urlOf('controller'));
    agent = connect(server.urlOf('agent'));
  });
  afterAll(async () => {
    redis.disconnect();
    sweeper.disconnect();
    agent.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    await redis.flushall();
    const pairs = Array.from({ length: FOREIGN_KEYS }, (_, n) => [`of-others:${n}`, '1']);
    await redis.mset(...pairs.flat());
  });

  const queueKey = (queue: number, cluster = CLUSTER) => `${queuePrefix(cluster, queue)}:${QUEUE_NAME}`;

  /** Sweeps, and returns what was repaired, sorted by the key of the queue: Redis lists keys in any order. */
  async function sweep(
    queues: number,
    signal = new AbortController().signal,
  ): Promise<[string, QueueRepair][]> {
    const repaired: [string, QueueRepair][] = [];
    await sweepQueues({
      redis: sweeper,
      cluster: CLUSTER,
      queues,
      report: async (key, repairs) => {
        for (const repair of repairs) repaired.push([key, repair]);
      },
      now: () => performance.now(),
      signal,
    });
    return repaired.sort(([a], [b]) => a.localeCompare(b));
  }

  async function scansOf(queues: number): Promise<number> {
    await redis.config('RESETSTAT');
    await sweep(queues);
    return Number(/cmdstat_scan:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]);
  }

  it('all keys are read once, however many queues there are', async () => {
    const once = await scansOf(1);
    expect(once).toBeGreaterThan(1);
    // A search of a table that Redis is just resizing takes a step more or less.
    expect(await scansOf(16)).toBeLessThan(2 * once);
  });

  it('a job in no list is put into the list of its own queue', async () => {
    for (const queue of [0, 3])
      await redis.hset(`${queueKey(queue)}:job-${queue}`, 'name', 'batch', 'data', '{}');
    expect(await sweep(4)).toEqual([
      [queueKey(0), { kind: 'orphan', name: 'job-0', detail: '' }],
      [queueKey(3), { kind: 'orphan', name: 'job-3', detail: '' }],
    ]);
    for (const queue of [0, 3]) {
      expect(await redis.lrange(`${queueKey(queue)}:wait`, 0, -1)).toEqual([`job-${queue}`]);
    }
    expect(await sweep(4)).toEqual([]);
  });

  it('a name of any length or bytes that no key of a queue has is removed where it is', async () => {
    const long = `${queueKey(1)}:${'x'.repeat(2 ** 20)}`;
    const binary = Buffer.concat([Buffer.from(`${queueKey(1)}:`), Buffer.from([0, 0xff, 0x0a])]);
    await redis.set(long, '1');
    await redis.set(binary, '1');
    const repaired = await sweep(4);
    expect(repaired.map(([key, { kind }]) => [key, kind])).toEqual(
      Array.from({ length: 2 }, () => [queueKey(1), 'unused_key']),
    );
    expect(repaired.every(([, { name }]) => name.length <= 100)).toBe(true);
    expect(await redis.exists(long, binary)).toBe(0);
    expect(await redis.exists('of-others:0')).toBe(1);
  });

  it('a lock that never expires is removed', async () => {
    await redis.set(`${queueKey(2)}:job-1:lock`, 'forged');
    expect(await sweep(4)).toEqual([[queueKey(2), { kind: 'forged_lock', name: 'job-1', detail: '' }]]);
    expect(await redis.exists(`${queueKey(2)}:job-1:lock`)).toBe(0);
  });

  it('the keys of another cluster, whose name begins in the same way, are left alone', async () => {
    const others = [queueKey(0, `${CLUSTER}-1`), queueKey(0, `${CLUSTER}-1-2`), queueKey(9, `${CLUSTER}-1`)];
    for (const key of others) await redis.hset(`${key}:job`, 'data', '{}');
    expect(await sweep(4)).toEqual([]);
    for (const key of others) expect(await redis.exists(`${key}:job`)).toBe(1);
  });

  /** Adds batches as an agent that believes in so many queues, with its Redis user. Returns the number of its queue. */
  async function addAsAgent(queues: number, ids: readonly string[]): Promise<number> {
    const number = queueOf('node', queues);
    await loadAgentScript(sweeper);
    await sweeper.hset(`${queueKey(number)}:meta`, 'opts.maxLenEvents', 100);
    const queue = new BatchQueue({ cluster: CLUSTER, node: 'node', onError: expect.unreachable }, agent);
    await queue.select(queues);
    for (const id of ids) await queue.add(new SealedBatch(id, { z: id }, 1));
    await queue.close();
    return number;
  }

  const keysOf = (queue: number) => redis.keys(`${queueKey(queue)}:*`);

  it('the jobs of a queue that no controller works on are moved to one, and its keys are removed', async () => {
    const ids = Array.from({ length: 120 }, (_, n) => `node.${n}`);
    const dead = await addAsAgent(MAX_QUEUES, ids);
    expect(dead).toBeGreaterThan(4);
    const repaired = await sweep(4);
    expect(await keysOf(dead)).toEqual([]);
    const live = queueKey(dead % 4);
    const moved = await redis.lrange(`${live}:wait`, 0, -1);
    expect(moved.map((id) => id.split('.').slice(0, 2).join('.')).sort()).toEqual(ids.toSorted());
    for (const id of moved) {
      const { name, data } = await redis.hgetall(`${live}:${id}`);
      expect({ name, data }).toEqual({
        name: 'batch',
        data: JSON.stringify({ z: id.split('.').slice(0, 2).join('.') }),
      });
    }
    const where = new Map<string, number>();
    for (const [key, { kind, detail }] of repaired) {
      const name = `${key} ${kind} ${detail}`;
      where.set(name, (where.get(name) ?? 0) + 1);
    }
    expect(where.get(`${queueKey(dead)} dead_queue job moved`)).toBe(120);
    expect(where.get(`${queueKey(dead)} dead_queue removed`)).toBe(1);
    expect(await sweep(4)).toEqual([]);
  });

  it('a job of a dead queue that somebody works on stays there with its queue', async () => {
    const dead = await addAsAgent(MAX_QUEUES, ['node.1']);
    const [id = ''] = await redis.lrange(`${queueKey(dead)}:wait`, 0, -1);
    await redis.set(`${queueKey(dead)}:${id}:lock`, 'of another controller', 'PX', 3_600_000);
    expect(await sweep(4)).toEqual([]);
    expect(await redis.lrange(`${queueKey(dead)}:wait`, 0, -1)).toEqual([id]);
    await redis.del(`${queueKey(dead)}:${id}:lock`);
    await sweep(4);
    expect(await keysOf(dead)).toEqual([]);
    expect(await redis.lrange(`${queueKey(dead % 4)}:wait`, 0, -1)).toEqual([id]);
  });

  it('a sweep that is stopped leaves a dead queue for the next one, however many jobs it has', async () => {
    // Without the keys of others, the first step finds all of its jobs.
    await redis.flushall();
    const dead = await addAsAgent(MAX_QUEUES, ['node.1', 'node.2']);
    await expect(sweep(4, AbortSignal.abort('stopped'))).rejects.toBe('stopped');
    expect(await redis.llen(`${queueKey(dead)}:wait`)).toBe(2);
    await sweep(4);
    expect(await redis.llen(`${queueKey(dead % 4)}:wait`)).toBe(2);
  });

  it('what is no whole job in a dead queue is removed and not moved', async () => {
    await redis.hset(`${queueKey(9)}:node.1`, 'name', 'batch');
    await redis.rpush(`${queueKey(9)}:node.2`, 'x');
    await redis.set(`${queueKey(9)}:wait`, 'x');
    expect((await sweep(4)).map(([key, { kind, name }]) => [key, kind, name]).sort()).toEqual(
      [
        [queueKey(9), 'bad_job', 'node.1'],
        [queueKey(9), 'bad_job', 'node.2'],
        [queueKey(9), 'dead_queue', ''],
        [queueKey(9), 'wrong_type', 'wait'],
      ].sort(),
    );
    expect(await keysOf(9)).toEqual([]);
    expect(await redis.exists(`${queueKey(1)}:wait`)).toBe(0);
  });

  it('keys that an agent made under the number of no queue are removed', async () => {
    const head = `{plegwatch:${CLUSTER}:`;
    const numbers = [`${MAX_QUEUES}`, '007', '-1', '1e3', 'x', '99999999999999999999'];
    for (const number of numbers) await agent.hmset(`${head}${number}}:${QUEUE_NAME}:node.1`, { data: 'x' });
    expect((await redis.keys(`${head}*`)).length).toBe(numbers.length);
    const repaired = await sweep(4);
    const settings = [0, 1, 2, 3].map((queue) => `${queueKey(queue)}:meta`);
    expect((await redis.keys(`${head}*`)).sort()).toEqual(settings);
    expect(repaired.map(([, { kind }]) => kind)).toEqual(numbers.map(() => 'unused_key'));
    const names = repaired.map(([, { name }]) => name);
    expect(names.sort()).toEqual(numbers.map((number) => `${number}}:${QUEUE_NAME}:node.1`).sort());
  });
});
