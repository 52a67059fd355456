/*
 * An observer and its reader against a simulated runtime, over real sockets and with a real process.
 */
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { monoNow } from '../clock.ts';
import type { EvidenceRecord } from '../evidence/record.ts';
import { millis } from '../evidence/units.ts';
import { TestBed } from '../simulator/testBed.ts';
import { CriClient } from './cri/client.ts';
import { NO_MEMORY } from './cri/policy.ts';
import { AgentMetrics } from './metrics.ts';
import { Observer } from './observer.ts';

let bed: TestBed;
let cleanUps: (() => Promise<void> | void)[];

beforeEach(() => {
  bed = new TestBed();
  cleanUps = [() => bed.close()];
});
afterEach(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
});

test('a grace shorter than the beat of the reader makes no pause of every beat', {
  timeout: 60_000,
}, async () => {
  const runtime = await bed.start({ profile: 'containerd-2.1' });
  const client = new CriClient(runtime.socket);
  const records: EvidenceRecord[] = [];
  const observer = new Observer({
    config: {
      criEndpoint: runtime.socket,
      stream: 'auto',
      relistPeriod: millis(200),
      grace: millis(100),
      confirm: millis(30_000),
      lateLimit: millis(1_000),
    },
    client,
    runtime: await client.version(5_000),
    agentVersion: '0.0.0',
    sink: {
      start: monoNow(),
      lastAlive: null,
      setContext: () => undefined,
      append: (record) => void records.push(record),
    },
    metrics: new AgentMetrics(),
    log: pino({ level: 'silent' }),
    kubelet: null,
    paceMemory: NO_MEMORY,
  });
  cleanUps.push(() => client.close());
  cleanUps.push(() => observer.stop());
  const until = (condition: () => boolean) =>
    vi.waitFor(() => expect(condition()).toBe(true), { timeout: 50_000, interval: 20 });

  await until(() => runtime.subscribers === 1);
  runtime.runPod({ name: 'web', containers: ['app'] });
  await until(() => records.some((record) => record.kind === 'session' && record.armed !== null));
  await until(() => records.some(({ kind }) => kind === 'minute'));
  const pauses = records.filter((record) => record.kind === 'gap' && record.cause === 'agent_paused');
  // Some twenty beats; a busy machine may stand still at a few of them.
  expect(pauses.length).toBeLessThan(8);
});
