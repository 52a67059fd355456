/*
 * Commands that nobody answers.
 */
import { afterEach, expect, test, vi } from 'vitest';
import { freePort } from '../../devtools/localServices/process.ts';
import { messageOf } from '../platform/errors.ts';
import { millis } from '../protocol/units.ts';
import { connectRedis } from './client.ts';

const MINUTE_MS = 60_000;

afterEach(() => vi.useRealTimers());

test.each(['redis', 'redis+cluster'])(
  'a patient command waits for %s for a minute, and no longer',
  async (scheme) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const redisUrl = `${scheme}://127.0.0.1:${await freePort()}`;
    const redis = connectRedis(
      { redisUrl },
      { maxRetry: millis(1_000), onError: () => undefined, patient: true },
    );
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
