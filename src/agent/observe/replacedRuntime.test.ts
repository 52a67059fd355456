/*
 * A runtime that is replaced while it is asked for its version.
 */
import { setImmediate } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { until } from '../../../test/support/waitFor.ts';
import { CriClient } from '../../cri/client.ts';
import type { RuntimeVersion } from '../../cri/profiles.ts';
import { monoNow, wallNow } from '../../platform/clock.ts';
import { millis } from '../../protocol/units.ts';
import { AgentMetrics } from '../metrics.ts';
import { Observer } from './observer.ts';
import type { StartReader } from './stream/readerProcess.ts';
import { NO_PACE_STORE } from './stream/subscribePolicy.ts';

test('an answer that a runtime gave before it was replaced does not name the one that a session has found', async () => {
  const before = { name: 'containerd', version: 'v2.1.9' };
  const now = { name: 'containerd', version: 'v2.2.0' };
  const answer = Promise.withResolvers<RuntimeVersion>();
  const client = new CriClient('/nowhere');
  const version = vi.spyOn(client, 'version').mockReturnValue(answer.promise);
  vi.spyOn(client, 'listSandboxes').mockImplementation(async () => Buffer.alloc(0));
  vi.spyOn(client, 'listContainers').mockImplementation(async () => Buffer.alloc(0));
  const startReader: StartReader = (_socket, events) => {
    // The first list that succeeds is a reason to ask.
    void until(() => version.mock.calls.length > 0).then(() =>
      events.frame({ is: 'version', at: monoNow(), ...now }),
    );
    return {
      subscribe: () => events.frame({ is: 'opened', at: monoNow(), wallNs: BigInt(wallNow()) * 1_000n }),
      kill: () => queueMicrotask(() => events.gone(null)),
      lastHeartbeat: monoNow,
      pid: process.pid,
    };
  };
  const named: string[] = [];
  let hasSession = false;
  const observer = new Observer({
    config: {
      criEndpoint: '/nowhere',
      subscribe: 'auto',
      relistPeriod: millis(3_600_000),
      overdueAfter: millis(2_000),
      missedAfter: millis(30_000),
      lateAfter: millis(1_000),
      intervalModeConfirmed: millis(120_000),
      podsApi: null,
      kubeletLateAfter: millis(10_000),
    },
    client,
    runtime: before,
    agentVersion: '0.0.0',
    sink: {
      start: monoNow(),
      lastObserved: null,
      setKnown: () => undefined,
      setContext: ({ runtime }) => void named.push(runtime.version),
      append: ({ type }) => {
        hasSession ||= type === 'stream_session';
      },
    },
    metrics: new AgentMetrics(),
    log: pino({ level: 'silent' }),
    kubelet: null,
    paceStore: NO_PACE_STORE,
    startReader,
  });
  await until(() => hasSession);
  answer.resolve(before);
  await setImmediate();
  await observer.stop();
  client.close();
  expect(named).toEqual(['v2.1.9', 'v2.2.0']);
});
