/*
 * Commands that nobody answers.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { freePort } from '../../devtools/localServices/process.ts';
import { messageOf } from '../platform/errors.ts';
import { millis } from '../protocol/units.ts';
import { connectRedis } from './client.ts';

const MINUTE_MS = 60_000;
/** The slot of the key `late`. */
const LATE_SLOT = 549;

afterEach(() => vi.useRealTimers());

const connectPatiently = (redisUrl: string) =>
  connectRedis({ redisUrl }, { maxRetry: millis(1_000), onError: () => undefined, patient: true });

test.each(['redis', 'redis+cluster'])(
  'a patient command waits for %s for a minute, and no longer',
  async (scheme) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const redisUrl = `${scheme}://127.0.0.1:${await freePort()}`;
    const redis = connectPatiently(redisUrl);
    let outcome = 'waits';
    const asked = redis.get('key').catch((error: unknown) => {
      outcome = messageOf(error);
    });
    await vi.advanceTimersByTimeAsync(MINUTE_MS - 1);
    expect(outcome).toBe('waits');
    await vi.advanceTimersByTimeAsync(1);
    await asked;
    expect(outcome).toMatch(/timed out/);
    redis.disconnect();
  },
);

test.each(['redis', 'redis+cluster'])(
  'a patient client keeps no command to %s that has ended, however long Redis is away',
  async (scheme) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const redis = connectPatiently(`${scheme}://127.0.0.1:${await freePort()}`);
    for (let second = 0; second < 600; second += 1) {
      redis.get('key').catch(() => undefined);
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(Reflect.get(redis, 'offlineQueue').length).toBeLessThanOrEqual(MINUTE_MS / 1_000);
    redis.disconnect();
  },
);

interface FakeRedis {
  /** Everything that it was sent. */
  sent(): string;
  readonly server: Server;
}

/** Answers every command, as a node of a cluster too, of which another one at `lateAt` owns the key `late`. */
async function startFake(port: number, lateAt = port): Promise<FakeRedis> {
  const range = (first: number, last: number, at: number) =>
    `*3\r\n:${first}\r\n:${last}\r\n*2\r\n$9\r\n127.0.0.1\r\n:${at}\r\n`;
  const slots = `*3\r\n${range(0, LATE_SLOT - 1, port)}${range(LATE_SLOT, LATE_SLOT, lateAt)}${range(LATE_SLOT + 1, 16_383, port)}`;
  const answerTo = (name: string | undefined, key: string | undefined): string => {
    if (name === 'cluster') return slots;
    return key === 'late' ? `-MOVED ${LATE_SLOT} 127.0.0.1:${lateAt}\r\n` : '$2\r\nOK\r\n';
  };
  let sent = '';
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      sent += data.toString();
      for (const [, name, key] of data.toString().matchAll(/\*\d\r\n\$\d+\r\n(\w+)\r\n(?:\$\d+\r\n(\w+))?/g))
        socket.write(answerTo(name, key));
    });
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return { sent: () => sent, server };
}

test.each(['redis', 'redis+cluster'])(
  'a command to %s that has timed out is not sent when Redis is back',
  async (scheme) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const port = await freePort();
    const redis = connectPatiently(`${scheme}://127.0.0.1:${port}`);
    const late = redis.get('late').catch(messageOf);
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(await late).toMatch(/timed out/);
    const { sent, server } = await startFake(port);
    let answer: unknown;
    void redis.get('next').then((value) => {
      answer = value;
    });
    await vi.waitFor(() => expect(answer).toBe('OK'), { timeout: 20_000 });
    expect(sent()).not.toContain('late');
    redis.disconnect();
    server.close();
  },
);

test('a command for a dead node of a cluster is not tried any more when it has timed out', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const port = await freePort();
  const { sent, server } = await startFake(port, await freePort());
  const redis = connectPatiently(`redis+cluster://127.0.0.1:${port}`);
  let outcome = 'waits';
  void redis.get('late').catch((error: unknown) => {
    outcome = messageOf(error);
  });
  const passMinutes = async (minutes: number) => {
    for (let second = 0; second < 60 * minutes; second += 1) {
      await vi.advanceTimersByTimeAsync(1_000);
      await redis.get('next');
    }
  };
  const timesSent = () => sent().split('late').length - 1;
  await passMinutes(1);
  expect(outcome).toMatch(/timed out/);
  expect(timesSent()).toBeGreaterThan(0);
  // It may be about to be tried once more.
  await passMinutes(1);
  const before = timesSent();
  await passMinutes(2);
  expect(timesSent()).toBe(before);
  redis.disconnect();
  server.close();
});
