import { afterEach, expect, test } from 'vitest';
import type { HttpServer } from '../platform/http.ts';
import { type Mono, mono } from '../protocol/units.ts';
import { AgentServer, type ServedEpoch } from './agentServer.ts';
import { AgentMetrics } from './metrics.ts';

const SECOND = 1_000_000;
let now: Mono = mono(0);
let http: HttpServer | undefined;
afterEach(async () => {
  await http?.stop();
});

const epoch = (some: Partial<ServedEpoch['shipper']> = {}): ServedEpoch => ({
  observer: {
    ...{ pendingEvents: 1, trackedContainers: 1, untrackedContainers: 0, overdueSuppressed: 0 },
    kubeletCounters: { lateSuppressed: 0, notBrought: 0, unobservedPods: 0 },
    ...{ readerError: null, relistError: null },
  },
  shipper: {
    ...{ unacknowledged: 1, oldestUnackedSeconds: 1, refusedAcks: 0, keyValidSeconds: 1 },
    ...{ error: null, ackError: null, enrolmentError: null, ...some },
  },
  spool: { bytes: 1, unackedBytes: 1, error: null, dropped: 0, isInMemory: false },
});

async function served(metrics = new AgentMetrics()) {
  const server = new AgentServer(metrics, { spoolMaxBytes: 1 }, () => now);
  const opened = await server.listen('127.0.0.1:0');
  http = opened;
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${opened.port}${path}`);
    return { status: answer.status, body: await answer.text() };
  };
  return { server, ask };
}

test('an agent whose first epoch starts is neither alive nor ready, and has metrics', async () => {
  const { ask } = await served();
  const starting = { status: 503, body: 'not ok epoch: the first epoch has not started\n' };
  expect(await ask('/livez')).toEqual(starting);
  expect(await ask('/readyz')).toEqual(starting);
  expect((await ask('/metrics')).body).toContain('plegwatch_stream_connected 0\n');
});

test('an agent between two epochs is alive as long as a start, or the pause after one, ends within two minutes', async () => {
  const { server, ask } = await served();
  server.epochRuns(epoch());
  now = mono(1_000 * SECOND);
  server.epochEnds();
  for (const at of [1_100, 1_200]) {
    now = mono(at * SECOND);
    expect(await ask('/livez')).toEqual({ status: 200, body: 'ok epoch\n' });
    server.progressed('no epoch can start: the disk is slow');
  }
  now = mono(1_321 * SECOND);
  expect(await ask('/livez')).toEqual({
    status: 503,
    body: 'not ok epoch: nothing for 121 s: no epoch can start: the disk is slow\n',
  });
  server.epochRuns(epoch());
  expect(await ask('/livez')).toEqual({ status: 200, body: 'ok reader\n' });
});

test('an agent between two epochs is not ready and says why, until the next one runs', async () => {
  const { server, ask } = await served();
  server.epochRuns(epoch());
  server.epochEnds();
  server.progressed('no epoch can start: the runtime is down');
  server.progressed();
  expect(await ask('/readyz')).toEqual({
    status: 503,
    body: 'not ok epoch: no epoch can start: the runtime is down\n',
  });
  server.epochRuns(epoch({ error: 'away' }));
  expect((await ask('/readyz')).body).toContain('ok relist\nnot ok redis: away\n');
});

test('a counter of several epochs is the sum of what each of them counted, also between them', async () => {
  const { server, ask } = await served();
  const refused = async () => /^plegwatch_refused_acks_total (\d+)$/m.exec((await ask('/metrics')).body)?.[1];
  const counts: (string | undefined)[] = [];
  for (const refusedAcks of [3, 0, 2]) {
    server.epochRuns(epoch({ refusedAcks }));
    counts.push(await refused());
    server.epochEnds();
    counts.push(await refused());
  }
  expect(counts).toEqual(['3', '3', '3', '3', '5', '5']);
});
