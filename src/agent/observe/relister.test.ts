/*
 * Relists that fail, from a simulated runtime's socket to the record, the metric and the log line of an observer.
 */
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { promisify } from 'node:util';
import { type MethodDefinition, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CRI_METHODS } from '../../../devtools/simulator/criClient.ts';
import {
  failingLists,
  hangingLists,
  type ListFault,
  malformedLists,
  oversizedLists,
  slowLists,
} from '../../../devtools/simulator/listFaults.ts';
import { PROFILES } from '../../../devtools/simulator/profiles.ts';
import type { SimulatedRuntime } from '../../../devtools/simulator/runtime.ts';
import { faultFacts, TestBed } from '../../../devtools/simulator/testBed.ts';
import { until } from '../../../test/support/waitFor.ts';
import { CriClient } from '../../cri/client.ts';
import { profileOf, type RuntimeVersion } from '../../cri/profiles.ts';
import { Container, PodSandbox } from '../../cri/runtime.ts';
import { monoNow } from '../../platform/clock.ts';
import type { Relist } from '../../protocol/observation.ts';
import type { EvidenceRecord, RecordOf } from '../../protocol/record.ts';
import { between, type Micros, type Mono, millis, shift } from '../../protocol/units.ts';
import { AgentMetrics } from '../metrics.ts';
import { Observer } from './observer.ts';
import { BURST_EVENTS, Relister, type RelistFailure } from './relister.ts';
import { NO_PACE_STORE } from './stream/subscribePolicy.ts';

const always = { seed: 1 };

let bed: TestBed;
let cleanUps: (() => Promise<void> | void)[];

beforeEach(() => {
  bed = new TestBed();
  cleanUps = [() => bed.close()];
});
afterEach(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
});

interface LogLine {
  readonly msg: string;
  readonly code?: string;
  readonly list?: string;
}

function logOf() {
  const lines: LogLine[] = [];
  const log = pino(
    { level: 'info' },
    new Writable({
      write: (chunk, _encoding, done) => {
        lines.push(JSON.parse(String(chunk)));
        done();
      },
    }),
  );
  return { log, lines, of: (message: string) => lines.filter(({ msg }) => msg === message) };
}

/** Watches by relists alone, ten times a second. `before`: what answered when the agent began. */
async function observe(runtime: Pick<SimulatedRuntime, 'socket'>, before?: RuntimeVersion) {
  const client = new CriClient(runtime.socket);
  const records: EvidenceRecord[] = [];
  const metrics = new AgentMetrics();
  const { log, of } = logOf();
  const observer = new Observer({
    config: {
      criEndpoint: runtime.socket,
      subscribe: 'never',
      relistPeriod: millis(100),
      overdueAfter: millis(2_000),
      missedAfter: millis(30_000),
      lateAfter: millis(1_000),
      intervalModeConfirmed: millis(120_000),
      podsApi: null,
      kubeletLateAfter: millis(10_000),
    },
    client,
    runtime: before ?? (await client.version(240_000)),
    agentVersion: '0.0.0',
    sink: {
      start: monoNow(),
      lastObserved: null,
      setContext: () => undefined,
      setKnown: () => undefined,
      append: (record) => void records.push(record),
    },
    metrics,
    log,
    kubelet: null,
    paceStore: NO_PACE_STORE,
  });
  cleanUps.push(() => client.close());
  cleanUps.push(() => observer.stop());
  /** A busy machine may make a list slow too. */
  const gaps = () =>
    records.filter(
      (record): record is RecordOf<'gap'> =>
        record.type === 'gap' && record.scope === 'list' && record.cause !== 'slow',
    );
  return { observer, metrics, records, gaps, logged: of };
}

/** Relists alone, without an observer. */
function relist(
  { socket }: Pick<SimulatedRuntime, 'socket'>,
  options: { readonly period: Micros; readonly timeoutMs?: number },
) {
  const client = new CriClient(socket);
  const relists: Relist[] = [];
  const failures: RelistFailure[] = [];
  const profile = profileOf({ name: 'containerd', version: '2.1.0' });
  const relister = new Relister(
    { client, profile, log: logOf().log, ...options },
    {
      relisted: (each) => relists.push(each),
      failed: (failure) => failures.push(failure),
      malformed: () => undefined,
    },
  );
  const abort = new AbortController();
  const running = relister.run(abort.signal);
  const stop = () => {
    abort.abort();
    return running;
  };
  const burst = () => {
    for (let n = 0; n < BURST_EVENTS; n += 1) relister.eventReceived();
  };
  cleanUps.push(() => client.close());
  cleanUps.push(stop);
  return { relists, failures, burst, stop };
}

/** A runtime that does nothing but list this many sandboxes and as many containers. */
async function crowd(size: number): Promise<{ readonly socket: string }> {
  const socket = join(bed.folder, 'crowd.sock');
  const ids = Array.from({ length: size }, (_, n) => `id-${n}`);
  const items = ids.map((id) => PodSandbox.fromPartial({ id }));
  const containers = ids.map((id) => Container.fromPartial({ id: `c-${id}`, podSandboxId: id }));
  const server = new Server();
  const answer = <Q, A>({ path, responseSerialize, requestDeserialize }: MethodDefinition<Q, A>, value: A) =>
    server.register<Q, A>(
      path,
      (_call: unknown, done: (error: null, value: A) => void) => done(null, value),
      responseSerialize,
      requestDeserialize,
      'unary',
    );
  answer(CRI_METHODS.version, {
    version: '0.1.0',
    runtimeName: 'containerd',
    runtimeVersion: '2.1.0',
    runtimeApiVersion: 'v1',
  });
  answer(CRI_METHODS.listPodSandbox, { items });
  answer(CRI_METHODS.listContainers, { containers });
  await promisify(server.bindAsync.bind(server))(`unix:${socket}`, ServerCredentials.createInsecure());
  cleanUps.push(() => server.forceShutdown());
  return { socket };
}

const oneList: [string, ListFault][] = [
  ['UNAVAILABLE', failingLists(always, status.UNAVAILABLE)],
  ['UNIMPLEMENTED', failingLists(always, status.UNIMPLEMENTED)],
  ['DEADLINE_EXCEEDED', failingLists(always, status.DEADLINE_EXCEEDED)],
  ['RESOURCE_EXHAUSTED', failingLists(always, status.RESOURCE_EXHAUSTED)],
  ['OVER_RUNTIME_LIMIT', oversizedLists(always)],
  ['MALFORMED', malformedLists(always, 'truncated')],
];

/** The codes that were counted. */
const relistErrorCodes = async ({ relistErrors }: AgentMetrics) =>
  (await relistErrors.get()).values.filter(({ value }) => value > 0).map(({ labels }) => labels.code);

describe('a relist that fails', () => {
  test.each(oneList)(
    'a relist that fails with %s has that code in its gap, its metric and its log line, once',
    async (code, fault) => {
      const runtime = await bed.start();
      runtime.runPod({ name: 'web', containers: ['app'] });
      runtime.setListFaults([fault]);
      const { observer, metrics, gaps, logged } = await observe(runtime);
      await until(() => gaps().length > 0);
      runtime.setListFaults([]);
      await until(() => gaps().length > 1);
      expect(gaps()).toMatchObject([
        { cause: code.toLowerCase(), to: null },
        { cause: code.toLowerCase(), to: expect.any(Number) },
      ]);
      expect(await relistErrorCodes(metrics)).toEqual([code]);
      expect(logged('relist failed')).toMatchObject([{ code }]);
      expect(observer.relistError).toBeNull();
    },
  );

  test('a relist that fails for another reason than the one before is another gap and another log line', async () => {
    const runtime = await bed.start();
    runtime.setListFaults([failingLists(always, status.UNAVAILABLE)]);
    const { gaps, logged } = await observe(runtime);
    await until(() => gaps().length > 0);
    runtime.setListFaults([failingLists(always, status.RESOURCE_EXHAUSTED)]);
    await until(() => gaps().length > 2);
    const [first, ended, second] = gaps();
    expect([first, ended, second]).toMatchObject([
      { cause: 'unavailable', to: null },
      { cause: 'unavailable', gapId: first?.gapId, to: second?.from },
      { cause: 'resource_exhausted', to: null },
    ]);
    expect(logged('relist failed').map(({ code }) => code)).toEqual(['UNAVAILABLE', 'RESOURCE_EXHAUSTED']);
  });

  test('a relist that exceeds our own deadline fails with DEADLINE_EXCEEDED', async () => {
    const { failures } = relist(await bed.start({ listFaults: [hangingLists(always)] }), {
      period: millis(100),
      timeoutMs: 300,
    });
    await until(() => failures.length > 0);
    expect(failures[0]).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    expect(failures[0]?.at).toBeGreaterThan(failures[0]?.from ?? Number.POSITIVE_INFINITY);
  });

  test('a relist cancelled by a stop is no failure, and does not delay the stop', async () => {
    const runtime = await bed.start({ listFaults: [hangingLists(always)] });
    const { observer, gaps } = await observe(runtime);
    await until(() => faultFacts(runtime.truth, 'list_hang').length > 0);
    await observer.stop();
    expect(gaps()).toEqual([]);
  });
});

test('a list that outgrows a message is streamed from then on, without a gap and without affecting the other list', async () => {
  const runtime = await bed.start({ profile: { ...PROFILES['crio-1.36'], listBatch: 5 } });
  for (let n = 0; n < 20; n += 1) runtime.runPod({ name: `pod-${n}`, containers: ['app'] });
  runtime.setListFaults([oversizedLists({ ...always, of: 'containers' })]);
  const { observer, metrics, gaps, logged } = await observe(runtime);
  await until(() => logged('list is streamed').length > 0);
  await until(() => observer.relistError === null);
  expect(logged('list is streamed')).toMatchObject([{ list: 'containers', code: 'OVER_OUR_LIMIT' }]);
  expect(await relistErrorCodes(metrics)).toEqual([]);
  expect(gaps()).toEqual([]);
  expect(observer.relistError).toBeNull();
});

test('containers beyond the limit are counted each time they are listed, and are a gap', async () => {
  const { observer, metrics, records } = await observe(await crowd(25_001));
  await expect.poll(() => observer.untrackedContainers, { timeout: 240_000 }).toBeGreaterThan(0);
  expect(observer.trackedContainers).toBe(50_000);
  expect(observer.untrackedContainers).toBe(2);
  expect(records).toContainEqual(expect.objectContaining({ type: 'gap', cause: 'too_many_ids', to: null }));
  metrics.untrackedContainers.set(observer.untrackedContainers);
  metrics.untrackedContainers.set(observer.untrackedContainers);
  expect(await metrics.registry.getSingleMetricAsString('plegwatch_untracked_containers_total')).toMatch(
    /counter\nplegwatch_untracked_containers_total 2$/,
  );
});

test('lists are streamed after the runtime was replaced by one that offers streaming', async () => {
  const runtime = await bed.start({ profile: { ...PROFILES['crio-1.36'], listBatch: 5 } });
  for (let n = 0; n < 20; n += 1) runtime.runPod({ name: `pod-${n}`, containers: ['app'] });
  runtime.setListFaults([failingLists(always, status.UNAVAILABLE)]);
  const { gaps, logged } = await observe(runtime, { name: 'cri-o', version: '1.33.0' });
  await until(() => gaps().length > 0);
  runtime.setListFaults([]);
  await until(() => logged('runtime identified').length > 0);
  runtime.setListFaults([oversizedLists({ ...always, of: 'sandboxes' })]);
  // On a busy machine lists are slow, and the slower they are the longer is the wait for the next.
  await expect
    .poll(() => logged('list is streamed'), { timeout: 240_000 })
    .toMatchObject([{ list: 'sandboxes' }]);
});

describe('a burst of events', () => {
  const HOUR = millis(3_600_000);
  /** A slow list brings the wait to its maximum, a minute, which jitter prolongs by a tenth. */
  const maximumWait = { timeout: 240_000 };
  /** A timer may fire so much early. */
  const early = (at: Mono): Mono => shift(at, -millis(3));
  const endOf = (each: Relist | undefined): Mono => each?.containers.end ?? monoNow();

  /** A second after this relist, and no sooner than listing takes a hundredth of the time, but after a minute less jitter. */
  function soonestAfter(each: Relist | undefined): Mono {
    const took = between(each?.sandboxes.start ?? monoNow(), endOf(each));
    return shift(endOf(each), Math.min(0.9 * millis(60_000), Math.max(millis(1_000), 100 * took)));
  }

  test.each([
    ['within a second of the one before', []],
    ['before listing takes a hundredth of the time at most', [slowLists(always, 10)]],
  ])('a burst brings no relist %s', async (_when, listFaults) => {
    const { relists, burst } = relist(await bed.start({ listFaults }), { period: HOUR });
    await until(() => relists.length === 1);
    burst();
    await expect.poll(() => relists.length, maximumWait).toBe(2);
    burst();
    await expect.poll(() => relists.length, maximumWait).toBe(3);
    const [first, second, third] = relists;
    expect(second?.sandboxes.start).toBeGreaterThan(early(soonestAfter(first)));
    expect(third?.sandboxes.start).toBeGreaterThan(early(soonestAfter(second)));
  });

  test('a burst after the minimum wait brings a relist at once, without a timer warning', async () => {
    const warnings: Error[] = [];
    const warned = (warning: Error) => void warnings.push(warning);
    process.on('warning', warned);
    cleanUps.push(() => void process.off('warning', warned));
    const { relists, burst } = relist(await bed.start(), { period: HOUR });
    await until(() => relists.length === 1);
    const over = shift(soonestAfter(relists[0]), millis(100));
    await expect.poll(() => monoNow() > over, maximumWait).toBe(true);
    burst();
    await until(() => relists.length === 2);
    expect(warnings).toEqual([]);
  });

  test('a burst brings no relist forward by less than a second', async () => {
    const period = millis(1_500);
    const { relists, burst } = relist(await bed.start(), { period });
    for (let count = 1; count <= 3; count += 1) {
      await expect.poll(() => relists.length, maximumWait).toBe(count);
      burst();
    }
    await expect.poll(() => relists.length, maximumWait).toBe(4);
    const gaps = relists.slice(1).map(({ sandboxes }, n) => between(endOf(relists[n]), sandboxes.start));
    // Jitter takes a tenth off at most.
    expect(Math.min(...gaps)).toBeGreaterThan(0.9 * period - millis(3));
  });

  test('a burst brings no relist forward after one that failed', async () => {
    const runtime = await bed.start({ listFaults: [failingLists(always, status.RESOURCE_EXHAUSTED)] });
    const { failures, burst } = relist(runtime, { period: millis(3_000) });
    await until(() => failures.length === 1);
    burst();
    await expect.poll(() => failures.length, maximumWait).toBe(2);
    // Jitter takes a tenth off at most.
    const due = shift(failures[0]?.at ?? monoNow(), 0.9 * millis(3_000));
    expect(failures[1]?.from).toBeGreaterThan(early(due));
  });

  test('a burst brings no relist after a stop, and does not delay the stop', async () => {
    const { relists, burst, stop } = relist(await bed.start(), { period: HOUR });
    await until(() => relists.length === 1);
    const stopped = stop();
    burst();
    await stopped;
    burst();
    expect(relists).toHaveLength(1);
  });
});
