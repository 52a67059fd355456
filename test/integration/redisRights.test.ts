/*
 * The check of what a Redis user may do runs none of the commands that it asks about, wherever its connection breaks.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalRedis, startRedis } from '../../devtools/localServices/redis.ts';
import { millis } from '../../src/protocol/units.ts';
import { connectRedis, type RedisClient } from '../../src/redis/client.ts';
import { missingRights } from '../../src/redis/rights.ts';
import { redisGrants } from '../../src/redis/users.ts';
import { needs } from '../support/needs.ts';

needs('redis-server')('the check of rights', () => {
  let redis: LocalRedis;
  let admin: Redis;
  let front: Server;
  let port: number;
  /** After how many answers of Redis a connection is cut, the first time. */
  let cutAfter = Number.POSITIVE_INFINITY;
  const sockets = new Set<Socket>();

  beforeAll(async () => {
    redis = await startRedis();
    admin = new Redis(redis.url);
    const { port: behind } = new URL(redis.url);
    front = createServer((client) => {
      const server = connect(Number(behind), '127.0.0.1');
      const end = () => {
        client.destroy();
        server.destroy();
      };
      for (const socket of [client, server]) {
        sockets.add(socket);
        socket.on('error', end);
        socket.on('close', end);
      }
      client.pipe(server);
      server.on('data', (answer) => {
        cutAfter -= 1;
        if (cutAfter !== 0) client.write(answer);
        else end();
      });
    });
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    const address = front.address();
    if (address === null || typeof address === 'string') throw new Error('the front has no port');
    port = address.port;
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => front.close(resolve));
    admin.disconnect();
    await redis.stop();
  });

  /** As `plegwatch doctor` connects: commands wait until Redis is back. */
  async function connected(): Promise<RedisClient> {
    const settings = { redisUrl: redis.urlOf('controller').replace(/:\d+$/, `:${port}`) };
    const client = connectRedis(settings, { maxRetry: millis(1), onError: () => undefined, patient: true });
    await client.ping();
    return client;
  }

  test('a check whose connection breaks after any answer fails, and writes nothing', async () => {
    const grants = redisGrants('controller', 'test');
    for (let answers = 1; ; answers += 1) {
      const client = await connected();
      cutAfter = answers;
      const outcome = await missingRights(client, grants).then(
        (missing) => missing?.needs,
        () => 'failed',
      );
      client.disconnect();
      expect(await admin.dbsize()).toBe(0);
      if (cutAfter > 0) {
        expect(outcome).toEqual([]);
        expect(answers).toBeGreaterThan(50);
        return;
      }
      expect(outcome).toBe('failed');
    }
  });

  test('the commands of others on the same connection are neither queued nor discarded by it', async () => {
    const client = await connected();
    const check = missingRights(client, redisGrants('controller', 'test'));
    let asked = 0;
    const others = (async () => {
      for (; asked < 100; asked += 1) expect(await client.ping()).toBe('PONG');
    })();
    await Promise.all([check, others]);
    expect(asked).toBe(100);
    client.disconnect();
  });
});
