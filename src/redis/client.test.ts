/*
 * A Redis that became a replica, at the address of one server.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { millis } from '../protocol/units.ts';
import { connectRedis, type RedisClient } from './client.ts';

const READ_ONLY = "-READONLY You can't write against a read only replica.\r\n";
const WRITES = 20;

let server: Server | undefined;
let redis: RedisClient | undefined;
afterEach(() => {
  redis?.disconnect();
  server?.close();
});

/** Connects to a server that answers a write by the number of its connection. Returns how many there are. */
async function connectTo(answerOf: (connection: number) => string): Promise<() => number> {
  let connections = 0;
  server = createServer((socket) => {
    connections += 1;
    const answer = answerOf(connections);
    socket.on('error', () => undefined);
    socket.on('data', (data) => socket.write(data.includes('hset') ? answer : '$2\r\nOK\r\n'));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const redisUrl = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
  redis = connectRedis({ redisUrl }, { maxRetry: millis(3_600_000), onError: () => undefined });
  await once(redis, 'ready');
  return () => connections;
}

const write = () => redis?.hset('key', 'field', 'value');
const isReady = () => redis && once(redis, 'ready');

test('a client whose Redis became a replica connects again, to the one that is at its address by then', async () => {
  await connectTo((connection) => (connection === 1 ? READ_ONLY : ':1\r\n'));
  await expect(write()).rejects.toThrow('READONLY');
  await isReady();
  expect(await write()).toBe(1);
});

test('a client whose address stays that of a replica does not connect again at each write', async () => {
  const connections = await connectTo(() => READ_ONLY);
  await expect(write()).rejects.toThrow('READONLY');
  await isReady();
  for (let n = 0; n < WRITES; n += 1) await expect(write()).rejects.toThrow('READONLY');
  expect(connections()).toBe(2);
});
