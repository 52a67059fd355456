/*
 * An observer of a node on which nothing happens for minutes: what it does meanwhile, and in which order its records are when something happens.
 */
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CriClient } from '../../cri/client.ts';
import { monoNow } from '../../platform/clock.ts';
import type { Known } from '../../protocol/batch.ts';
import type { RecordOf } from '../../protocol/record.ts';
import { millis } from '../../protocol/units.ts';
import { AgentMetrics } from '../metrics.ts';
import { Observer } from './observer.ts';
import { NO_PACE_STORE } from './stream/subscribePolicy.ts';

// So that waits of the agent follow the time of the test too.
vi.mock('node:timers/promises', async (original) => ({
  ...(await original<typeof import('node:timers/promises')>()),
  setTimeout: (ms: number, _value: unknown, { signal }: { signal?: AbortSignal } = {}) =>
    new Promise<void>((resolve) => {
      setTimeout(resolve, ms);
      signal?.addEventListener('abort', () => resolve());
    }),
}));

let observer: Observer;
let client: CriClient;
let version: string;
let listsFail: boolean;
/** Records by type, and `context` with the version of the runtime. */
let written: string[];
let minutes: RecordOf<'relist_minute'>[];
let told: Known[];
/** The last statement before each of the minutes. */
let said: (Known | undefined)[];

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['hrtime', 'Date', 'setTimeout', 'setInterval', 'clearTimeout', 'clearInterval'],
    // A calm time ends with an hour.
    now: Date.parse('2026-01-01T12:10:00Z'),
  });
  version = 'v2.1.9';
  listsFail = false;
  written = [];
  minutes = [];
  told = [];
  said = [];
  client = new CriClient('/nowhere');
  vi.spyOn(client, 'version').mockImplementation(async () => {
    return { name: 'containerd', version };
  });
  vi.spyOn(client, 'listSandboxes').mockImplementation(async () => {
    if (listsFail) throw new Error('gone');
    return Buffer.alloc(0);
  });
  vi.spyOn(client, 'listContainers').mockImplementation(async () => {
    return Buffer.alloc(0);
  });
  observer = new Observer({
    config: {
      criEndpoint: '/nowhere',
      subscribe: 'never',
      relistPeriod: millis(5_000),
      overdueAfter: millis(2_000),
      missedAfter: millis(30_000),
      lateAfter: millis(1_000),
      intervalModeConfirmed: millis(120_000),
      podsApi: null,
      kubeletLateAfter: millis(10_000),
    },
    client,
    runtime: { name: 'containerd', version },
    agentVersion: '0.0.0',
    sink: {
      start: monoNow(),
      lastObserved: null,
      setKnown: (given) => void told.push(given),
      setContext: ({ runtime }) => void written.push(`context ${runtime.version}`),
      append: (record) => {
        written.push(record.type);
        if (record.type !== 'relist_minute') return;
        minutes.push(record);
        said.push(told.at(-1));
      },
    },
    metrics: new AgentMetrics(),
    log: pino({ level: 'silent' }),
    kubelet: null,
    paceStore: NO_PACE_STORE,
    readPressure: () => null,
  });
});
afterEach(async () => {
  const stopped = observer.stop();
  await pass(10);
  await stopped;
  client.close();
  vi.useRealTimers();
});

const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1_000);

/** Ends the short first minute, and lets a calm one pass. */
async function beCalm(): Promise<void> {
  await pass(11);
  expect(minutes).toHaveLength(1);
  await pass(70);
  expect(minutes).toHaveLength(1);
}

test('a runtime that is replaced while nothing happens is noticed within a minute, and what was calm until then is a record of before', async () => {
  await beCalm();
  await pass(60);
  const before = written.length;
  version = 'v2.2.0';
  await pass(61);
  expect(minutes).toHaveLength(2);
  expect(written.slice(before, before + 2)).toEqual(['relist_minute', 'context v2.2.0']);
});

test('a calm time until something happens is recorded before it, and says no more to be decided than was said before', async () => {
  await beCalm();
  await pass(30);
  const before = written.length;
  listsFail = true;
  await pass(10);
  expect(written.slice(before, before + 2)).toEqual(['relist_minute', 'gap']);
  expect(minutes.at(-1)).toMatchObject({ decided: said[1]?.decided, errors: 0 });
  expect(minutes.at(-1)?.span).toBeGreaterThanOrEqual(90e6);
});

test('it is said every few seconds up to when everything is decided', async () => {
  await beCalm();
  const ages = told.map(({ decided }, i) => decided - (told[i - 1]?.decided ?? 0));
  expect(told.length).toBeGreaterThan(10);
  expect(Math.max(...ages.slice(1))).toBeLessThan(12e6);
});
