/*
 * The subscription and the kubelet: a simulated runtime and a kubelet's metrics over TLS, with real sockets and processes.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ProfileName } from '../../../../devtools/simulator/profiles.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../../../devtools/simulator/runtime.ts';
import {
  type Authority,
  type FakeFigures,
  FakeKubelet,
  makeAuthority,
  metricsText,
  plain,
  removeAuthority,
} from '../../../../test/support/fakeKubelet.ts';
import { startLastingReader } from '../../../../test/support/lastingReader.ts';
import { until } from '../../../../test/support/waitFor.ts';
import { wallNow } from '../../../platform/clock.ts';
import { millis, shift } from '../../../protocol/units.ts';
import { KubeletClient } from '../kubelet/client.ts';
import { KubeletScraper } from '../kubelet/scraper.ts';
import type { PaceStore, SavedPace, SubscribeSetting } from './subscribePolicy.ts';
import { Subscription, type SubscriptionOptions } from './subscription.ts';

let authority: Authority;
let folder: string;
let kubelet: FakeKubelet;
const cleanUps: (() => Promise<unknown> | unknown)[] = [];

beforeAll(() => {
  authority = makeAuthority();
});
afterAll(() => removeAuthority(authority));
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'plegwatch-policy-'));
  kubelet = await FakeKubelet.start(authority);
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  await kubelet.stop();
  rmSync(folder, { recursive: true });
});

const report = (figures: FakeFigures) => {
  kubelet.answer = plain(metricsText(figures));
};

async function runtimeOf(profile: ProfileName): Promise<SimulatedRuntime> {
  const runtime = await startSimulatedRuntime({ socket: join(folder, 'cri.sock'), profile });
  cleanUps.push(() => runtime.stop());
  return runtime;
}

function subscribe(
  runtime: SimulatedRuntime,
  setting: SubscribeSetting = 'always',
  options: Pick<SubscriptionOptions, 'paceStore' | 'kubeletWait'> = {},
) {
  const client = new KubeletClient({
    url: kubelet.url,
    tokenFile: undefined,
    identity: 'auto',
    caFiles: [authority.caFile],
    serverName: undefined,
    node: 'this-node',
    hostIps: [],
  });
  const log = pino({ level: 'silent' });
  const watch = new KubeletScraper({ client, log, period: millis(50), minPeriod: millis(20) });
  const states: string[] = [];
  const reasons: string[] = [];
  const ended: string[] = [];
  const endedAt: number[] = [];
  const nothing = () => undefined;
  const subscription = new Subscription(
    runtime.socket,
    setting,
    {
      identified: nothing,
      opened: nothing,
      event: nothing,
      drained: nothing,
      overflow: nothing,
      eventWithoutStatus: nothing,
      malformed: nothing,
      ended: (_session, _at, code) => {
        ended.push(code);
        endedAt.push(performance.now());
      },
      state: (state, reason) => {
        states.push(state);
        reasons.push(reason);
      },
    },
    { kubelet: watch, startReader: startLastingReader, ...options },
  );
  const stop = new AbortController();
  const running = watch.run(stop.signal);
  cleanUps.push(async () => {
    stop.abort();
    await subscription.stop();
    await running;
  });
  subscription.start();
  return { states, reasons, ended, endedAt, stopScraping: () => stop.abort() };
}

/** Long enough for several scrapes of the kubelet and several decisions of the policy. */
const scrapes = (count: number) => {
  const from = kubelet.requests.length;
  return until(() => kubelet.requests.length >= from + count);
};

/** How many subscribers have left. */
const closed = ({ truth }: SimulatedRuntime): number =>
  truth.entries.filter((entry) => entry.what === 'subscriber' && entry.change !== 'opened').length;

const everSubscribed = ({ truth }: SimulatedRuntime): boolean =>
  truth.entries.some(({ what }) => what === 'subscriber');

describe('always, where subscribers steal or nobody knows,', () => {
  test.each(['containerd-1.7', 'crio-1.27', 'unknown'] as const)(
    'joins %s once the kubelet proves that its gate is off',
    async (profile) => {
      kubelet.answer = plain('', {}, 403);
      const runtime = await runtimeOf(profile);
      const log = subscribe(runtime);
      await until(() => log.reasons.some((reason) => reason.includes('Forbidden')));
      expect(log.states.at(-1)).toBe('Unsafe');
      expect(everSubscribed(runtime)).toBe(false);
      report({ gate: 0 });
      await until(() => runtime.subscribers === 1);
      expect(log.states.at(-1)).toBe('Connected');
      expect(log.reasons.at(-1)).toContain('while the kubelet proves');
    },
  );

  test('always: no subscription while the gate is on', async () => {
    report({ gate: 1 });
    const runtime = await runtimeOf('containerd-1.7');
    const log = subscribe(runtime);
    await until(() => log.reasons.some((reason) => reason.includes('EventedPLEG is on')));
    await scrapes(10);
    expect(everSubscribed(runtime)).toBe(false);
    // On a busy machine a reader may take so long to identify the runtime that another one is started.
    expect(log.states).not.toContain('Connected');
    expect(log.states.at(-1)).toBe('Unsafe');
  });

  test.each([
    ['the gate turns on', () => report({ gate: 1 })],
    ['a scrape fails', () => (kubelet.answer = plain('', {}, 500))],
    ['the gate is no longer reported', () => (kubelet.answer = plain('kubelet_pleg_discard_events 0\n'))],
    ['another kubelet answers', () => report({ gate: 0, start: 1.7e9 + 60 })],
    ['the kubelet closes the connection', () => kubelet.cut()],
  ] as const)('leaves at once when %s', async (_when, happens) => {
    const runtime = await runtimeOf('containerd-1.7');
    const log = subscribe(runtime);
    await until(() => runtime.subscribers === 1);
    happens();
    // One that was under way, and the one that shows it: both were answered when the next one is sent, which may show nothing more.
    await scrapes(3);
    log.stopScraping();
    await until(() => log.ended.length > 0);
    expect(log.ended[0]).toBe('POLICY');
    await until(() => closed(runtime) > 0);
    // On a busy machine the scrapes may take so long that it joins again.
    await until(() => log.states.lastIndexOf('Unsafe') > log.states.indexOf('Connected'));
    expect(log.states[log.states.indexOf('Connected') + 1]).toBe('Unsafe');
  });
});

describe('always', () => {
  test('always: the subscription returns when the gate is proven off again, after at least a second', async () => {
    const runtime = await runtimeOf('containerd-1.7');
    const log = subscribe(runtime);
    await until(() => runtime.subscribers === 1);
    report({ gate: 1 });
    // Both: the runtime may hear of the end after the agent, and would then still have its subscriber.
    await until(() => log.ended.length === 1 && closed(runtime) > 0);
    report({ gate: 0 });
    await until(() => runtime.subscribers === 1);
    expect(performance.now() - (log.endedAt[0] ?? Number.POSITIVE_INFINITY)).toBeGreaterThan(900);
  });

  test('always: a safe runtime needs no proof', async () => {
    report({ gate: 1 });
    const runtime = await runtimeOf('containerd-2.1');
    const log = subscribe(runtime);
    await until(() => runtime.subscribers === 1);
    kubelet.answer = plain('', {}, 500);
    await scrapes(10);
    expect(runtime.subscribers).toBe(1);
    expect(log.ended).toEqual([]);
  });

  test.each(['crio-1.30', 'isulad-2.1.6'] as const)(
    'always: %s, which may crash, is subscribed to with a reason, and not again for ten minutes',
    async (profile) => {
      const runtime = await runtimeOf(profile);
      const log = subscribe(runtime);
      await until(() => runtime.subscribers === 1);
      expect(log.reasons.at(-1)).toContain('may crash when a subscriber leaves');
      report({ gate: 1 });
      await until(() => log.states.at(-1) === 'Unsafe');
      report({ gate: 0 });
      await until(() => log.states.at(-1) === 'Interrupted');
      expect(log.reasons.at(-1)).toContain('every ten minutes at most');
      await scrapes(10);
      expect(runtime.subscribers).toBe(0);
    },
  );
});

describe('auto', () => {
  test('auto: no subscription where subscribers steal, whatever the kubelet proves', async () => {
    const runtime = await runtimeOf('containerd-1.7');
    const log = subscribe(runtime, 'auto');
    await until(() => log.states.length > 0);
    await scrapes(10);
    expect(log.states).toEqual(['Unsafe']);
    expect(everSubscribed(runtime)).toBe(false);
  });

  test('auto: the kubelet subscribes first when the runtime is back and the gate is on', async () => {
    report({ gate: 1, successes: 1 });
    const runtime = await runtimeOf('containerd-2.1');
    const log = subscribe(runtime, 'auto', { kubeletWait: millis(3_600_000) });
    await until(() => runtime.subscribers === 1);
    await scrapes(3);
    await runtime.goDown();
    await until(() => log.ended.length === 1);
    await runtime.comeUp();
    await until(() => log.reasons.at(-1) === 'waiting for the kubelet to subscribe first');
    await scrapes(5);
    expect(runtime.subscribers).toBe(0);
    report({ gate: 1, successes: 2, errors: 1 });
    await until(() => runtime.subscribers === 1);
    expect(log.states.at(-1)).toBe('Connected');
  });

  test('auto: the wait for a kubelet that does not subscribe is bounded', async () => {
    report({ gate: 1, successes: 1, errors: 1 });
    const runtime = await runtimeOf('containerd-2.1');
    const log = subscribe(runtime, 'auto', { kubeletWait: millis(1_000) });
    await until(() => runtime.subscribers === 1);
    await scrapes(3);
    runtime.breakStreams();
    await until(() => log.reasons.includes('waiting for the kubelet to subscribe first'));
    await until(() => log.states.at(-1) === 'Connected' && runtime.subscribers === 1);
  });

  test('auto: the wait for the kubelet ends when it gives up its stream', async () => {
    report({ gate: 1, successes: 1 });
    const runtime = await runtimeOf('containerd-2.1');
    const log = subscribe(runtime, 'auto', { kubeletWait: millis(3_600_000) });
    await until(() => runtime.subscribers === 1);
    await scrapes(3);
    runtime.breakStreams();
    await until(() => log.reasons.at(-1) === 'waiting for the kubelet to subscribe first');
    report({ gate: 1, successes: 1, errors: 4 });
    await scrapes(5);
    expect(runtime.subscribers).toBe(0);
    report({ gate: 1, successes: 1, errors: 5 });
    await until(() => runtime.subscribers === 1);
  });

  test('auto: no wait for a kubelet that has given up its stream', async () => {
    report({ gate: 1, successes: 1, errors: 5 });
    const runtime = await runtimeOf('containerd-2.1');
    const log = subscribe(runtime, 'auto', { kubeletWait: millis(3_600_000) });
    await until(() => runtime.subscribers === 1);
    await scrapes(3);
    runtime.breakStreams();
    await until(() => log.ended.length === 1);
    await until(() => runtime.subscribers === 1);
    expect(log.reasons).not.toContain('waiting for the kubelet to subscribe first');
  });

  test('auto: no wait for the kubelet if the gate is off', async () => {
    const runtime = await runtimeOf('containerd-2.1');
    const log = subscribe(runtime, 'auto');
    await until(() => runtime.subscribers === 1);
    await scrapes(3);
    runtime.breakStreams();
    await until(() => log.ended.length === 1);
    await until(() => runtime.subscribers === 1);
    expect(log.reasons).not.toContain('waiting for the kubelet to subscribe first');
  });
});

describe('a process that follows one which died with its subscription', () => {
  /** A store that outlives subscriptions. */
  function storeOf(kept: SavedPace | null): PaceStore & { kept: SavedPace | null } {
    const store = {
      kept,
      load: async () => store.kept,
      save: (pace: SavedPace) => {
        store.kept = pace;
      },
      saved: async () => undefined,
    };
    return store;
  }

  test('a process that follows one which died while subscribed waits before it subscribes, and continues the count of attempts', async () => {
    const runtime = await runtimeOf('containerd-2.1');
    const store = storeOf(null);
    subscribe(runtime, 'auto', { paceStore: store });
    await until(() => runtime.subscribers === 1);
    expect(store.kept?.attempts).toBe(1);
    for (const cleanUp of cleanUps.splice(1).reverse()) await cleanUp();
    // As if it had been just now, however long that took; a time to come counts as now.
    store.kept = { attempts: 1, subscribed: shift(wallNow(), millis(3_600_000)) };
    const start = performance.now();
    const log = subscribe(runtime, 'auto', { paceStore: store });
    await until(() => log.states.length > 0);
    expect(log.states).toEqual(['Interrupted']);
    await until(() => log.states.at(-1) === 'Connected');
    expect(performance.now() - start).toBeGreaterThan(500);
    expect(store.kept?.attempts).toBe(2);
  });
});
