/*
 * The limits of a Redis that sends to agents: servers that answer as no Redis does, and a count of what they could send.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { Shipper } from '../../src/agent/ship/shipper.ts';
import { createLogger } from '../../src/platform/log.ts';
import { millis } from '../../src/protocol/units.ts';
import { checkRedis } from '../../src/redis/check.ts';
import { connectRedis } from '../../src/redis/client.ts';
import { MAX_REPLY_BYTES, ReplyGuard } from '../../src/redis/replyGuard.ts';
import { SpoolBed } from '../support/spoolBed.ts';
import { waitFor } from '../support/waitFor.ts';

const MIB = 1024 * 1024;
/** The limit, and what lies in the buffers of the system when a connection is closed. */
const PER_CONNECTION = 16 * MIB;
const HUGE = '$2147483648\r\n';
const TOO_LONG = `a reply is longer than ${MAX_REPLY_BYTES} bytes`;
const PIECE = Buffer.alloc(64 * 1024, 'x');
const ENDLESS = millis(600_000);

type Answer = (command: string) => { readonly reply: string; readonly isEndless?: boolean };

class HostileServer {
  readonly #answer: Answer;
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  /** When each connection was opened. */
  readonly connections: number[] = [];
  sentBytes = 0;

  constructor(answer: Answer) {
    this.#answer = answer;
    this.#server = createServer((client) => this.#serve(client));
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(client: Socket): void {
    this.connections.push(performance.now());
    this.#clients.add(client);
    client.on('error', () => client.destroy());
    client.on('close', () => this.#clients.delete(client));
    client.on('data', (command) => {
      const { reply, isEndless = false } = this.#answer(String(command));
      client.write(reply);
      if (!isEndless) return;
      client.removeAllListeners('data');
      client.on('drain', () => this.#flood(client));
      this.#flood(client);
    });
  }

  #flood(client: Socket): void {
    do this.sentBytes += PIECE.length;
    while (!client.destroyed && client.write(PIECE));
  }
}

const bed = new SpoolBed();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function serve(answer: Answer): Promise<HostileServer> {
  const server = await new HostileServer(answer).start();
  stops.push(() => server.stop());
  return server;
}

async function ship(server: HostileServer): Promise<Shipper> {
  const shipper = new Shipper({
    redis: { redisUrl: `redis://${server.address}` },
    cluster: 'prod',
    node: 'node-1',
    spool: await bed.open(),
    log: createLogger('fatal', 'test'),
    intervals: {
      intervalAckGeneration: millis(200),
      intervalRetiredEpochs: millis(200),
      intervalResend: millis(200),
      intervalIdle: millis(100),
      intervalRedisRetry: ENDLESS,
    },
  });
  stops.push(() => shipper.stop(0));
  return shipper;
}

test.each([
  ['a string of 2 GiB', HUGE, TOO_LONG],
  ['an array of two billion elements', '*2000000000\r\n', TOO_LONG],
  ['a line without an end', '+', TOO_LONG],
  ['arrays in arrays that are together too long', '*9\r\n*40000\r\n*40000\r\n', TOO_LONG],
  ['a number without an end', '(', 'its answer is no reply'],
  ['another protocol', 'HTTP/1.1 200 OK\r\n', 'its answer is no reply'],
])(
  '%s ends the connection of an agent, with the reason, and the check at its start',
  async (_, reply, fault) => {
    const server = await serve(() => ({ reply, isEndless: true }));
    const shipper = await ship(server);
    await waitFor('the second connection', () => server.connections.length === 2);
    expect(shipper.error).toBe(`the connection to Redis was closed: ${fault}`);
    expect(server.sentBytes).toBeLessThan(2 * PER_CONNECTION);
    await expect(checkRedis({ redisUrl: `redis://${server.address}` })).rejects.toThrow(fault);
  },
);

test('such a reply is the reason until shipping works again, whatever fails after it, and the connections after it come ever more seldom', async () => {
  const ready = '%1\r\n+proto\r\n:3\r\n';
  const info = '$19\r\nredis_version:8.0.0\r\n';
  const server = await serve((command) => {
    if (/hello/i.test(command)) return { reply: ready };
    if (/info/i.test(command)) return { reply: info };
    return { reply: HUGE, isEndless: true };
  });
  const shipper = await ship(server);
  const reasons = new Set<string | null>();
  await waitFor('four connections', () => {
    if (server.connections.length > 1) reasons.add(shipper.error);
    return server.connections.length === 4;
  });
  expect([...reasons]).toEqual([`the connection to Redis was closed: ${TOO_LONG}`]);
  expect(server.sentBytes).toBeLessThan(4 * PER_CONNECTION);
  const [first = 0, , , last = 0] = server.connections;
  // The waits are at least half of 1 s, 2 s and 4 s.
  expect(last - first).toBeGreaterThan(3_000);
});

test.each(['redis+cluster', 'redis+sentinel'])('%s: every connection is bounded', async (scheme) => {
  const server = await serve(() => ({ reply: HUGE, isEndless: true }));
  const faults: string[] = [];
  const guard = new ReplyGuard({ maxPause: ENDLESS, onFault: (fault) => faults.push(fault) });
  const redisUrl = `${scheme}://${server.address}${scheme === 'redis+sentinel' ? '/main' : ''}`;
  const client = connectRedis({ redisUrl }, { maxRetry: millis(10), onError: () => undefined, guard });
  stops.push(async () => client.disconnect());
  await waitFor('the second fault', () => faults.length === 2);
  expect(faults).toEqual(Array(2).fill(`the connection to Redis was closed: ${TOO_LONG}`));
  expect(server.sentBytes).toBeLessThan(3 * PER_CONNECTION);
  await expect(checkRedis({ redisUrl })).rejects.toThrow(TOO_LONG);
});

test('a client that is closed at once opens no connection', async () => {
  const server = await serve(() => ({ reply: '+OK\r\n' }));
  const guard = new ReplyGuard({ maxPause: ENDLESS, onFault: () => undefined });
  const redisUrl = `redis://${server.address}`;
  const client = connectRedis({ redisUrl }, { maxRetry: millis(10), onError: () => undefined, guard });
  client.disconnect();
  await waitFor('its end', () => client.status === 'end');
  expect(server.connections).toEqual([]);
});
