import { join } from 'node:path';
import { type ServiceError, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../../test/support/waitFor.ts';
import { PROFILES } from './profiles.ts';
import { faultFacts, subscribe, TestBed, transitionFacts } from './testBed.ts';

let bed: TestBed;
beforeEach(() => {
  bed = new TestBed();
});
afterEach(() => bed.close());

const none = { filter: undefined };
const codeOf = (call: Promise<unknown>): Promise<status> =>
  call.then(
    () => status.OK,
    ({ code }: ServiceError) => code,
  );

test('a stopped CRI-O ends its streams with OK before it closes its socket', async () => {
  const runtime = await bed.start({ profile: 'crio-1.33' });
  const { ended } = await bed.listen(runtime);
  await runtime.goDown('stopped');
  expect(await ended).toEqual({ code: status.OK });
});

test.each(['killed', 'stopped'] as const)('a %s containerd breaks its streams', async (how) => {
  const runtime = await bed.start();
  const { ended } = await bed.listen(runtime);
  await runtime.goDown(how);
  expect(await ended).toEqual({ code: status.UNAVAILABLE });
});

test('a restart plan restarts the runtime repeatedly, ends containers meanwhile and changes the version', async () => {
  const restarts = { everyMs: 30, downMs: 30, exits: 1, as: 'containerd-2.3' } as const;
  const runtime = await bed.start({ restarts });
  runtime.runPod({ name: 'web', containers: ['app', 'sidecar'] });
  await until(() => faultFacts(runtime.truth, 'up').length >= 2);
  const stopped = transitionFacts(runtime.truth).filter(({ transition }) => transition === 'stopped');
  expect(stopped.map(({ silent }) => silent)).toEqual(['down', 'down']);
  expect(runtime.profile.runtimeVersion).toBe('2.3.7');
  expect(faultFacts(runtime.truth, 'down').length).toBeGreaterThanOrEqual(2);
});

test('a CRI-O that crashes after a disconnect comes back on its socket', async () => {
  const runtime = await bed.start({ profile: 'crio-1.30', crashProbability: 1 });
  const leaver = await bed.listen(runtime);
  leaver.cancel();
  await until(() => runtime.subscribers === 0);
  const { ended } = await bed.listen(runtime);
  runtime.runPod({ name: 'web' });
  expect(await ended).toEqual({ code: status.UNAVAILABLE });
  await until(() => faultFacts(runtime.truth, 'up').length === 1);
  expect(faultFacts(runtime.truth).map(({ fault }) => fault)).toEqual(['crash', 'down', 'up']);
  const version = bed.connect(runtime).call('version', { version: 'v1' });
  expect((await version).runtimeVersion).toBe('1.30.0');
});

test('a starting runtime answers only Version, and everything once it has started', async () => {
  const runtime = await bed.start({ startingMs: 600_000 });
  const client = bed.connect(runtime);
  expect(await codeOf(client.call('version', { version: 'v1' }))).toBe(status.OK);
  expect(await codeOf(client.call('listContainers', none))).toBe(status.UNAVAILABLE);
  expect(await codeOf(client.call('containerStatus', { containerId: 'x', verbose: false }))).toBe(14);
  expect(await subscribe(client).ended).toEqual({ code: status.UNAVAILABLE });
  const next = await bed.start({ startingMs: 20, socket: join(bed.folder, 'next.sock') });
  await until(() => !next.core.isStarting);
  expect(await codeOf(bed.connect(next).call('listContainers', none))).toBe(status.OK);
});

test('churn waits while the runtime is down, and continues when it is back', async () => {
  const runtime = await bed.start({ churn: { pods: 10, meanMs: 600, restarts: 1 }, keepTruth: true });
  await until(() => transitionFacts(runtime.truth).length > 20);
  await runtime.goDown();
  const before = runtime.truth.entries.length;
  await until(() => runtime.truth.entries.length > before);
  await runtime.comeUp();
  const down = runtime.truth.entries.findIndex((entry) => entry.what === 'fault' && entry.fault === 'down');
  const up = runtime.truth.entries.findIndex((entry) => entry.what === 'fault' && entry.fault === 'up');
  const meanwhile = runtime.truth.entries
    .slice(down, up)
    .flatMap((entry) => (entry.what === 'transition' ? [entry.transition] : []));
  expect(new Set(meanwhile)).toEqual(new Set(['stopped']));
  const present = runtime.truth.entries.length;
  await until(() => runtime.truth.entries.length > present + 20);
});

test('with freeze, a subscriber that does not read blocks pod starts of containerd 2 until it reads', async () => {
  const slow = { effect: 'freeze', events: 5, room: 5 } as const;
  const runtime = await bed.start({ freeze: true, profile: { ...PROFILES['containerd-2.1'], slow } });
  const frozen = bed.connect(runtime).events();
  frozen.on('error', () => {});
  await until(() => runtime.subscribers === 1);
  frozen.once('data', () => frozen.pause());
  const annotations = { filler: 'x'.repeat(50_000) };
  let made = 0;
  while (!runtime.core.channel.frozen && made < 2000) {
    runtime.pods.runPod({ name: `pod-${made}`, annotations });
    made += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(runtime.core.channel.frozen).toBe(true);
  const config = {
    metadata: { name: 'late', uid: 'u', namespace: 'default', attempt: 0 },
    hostname: '',
    logDirectory: '',
    labels: {},
    annotations: {},
    linux: undefined,
  };
  const client = bed.connect(runtime);
  const deadline = Date.now() + 100;
  expect(await codeOf(client.call('runPodSandbox', { config }, { deadline }))).toBe(status.DEADLINE_EXCEEDED);
  expect(await codeOf(client.call('listContainers', none))).toBe(status.OK);
  const waiting = client.call('runPodSandbox', { config });
  frozen.resume();
  expect((await waiting).podSandboxId).not.toBe('');
  expect(faultFacts(runtime.truth, 'held_up').length).toBeGreaterThan(0);
});

test.each([
  ['containerd-2.1', 'none', 0],
  ['containerd-2.0.0', 'nanoseconds', 0],
  ['crio-1.26', 'seconds', 1],
  ['crio-1.31', 'seconds', 1],
  ['crio-1.32', 'nanoseconds', 1],
  ['isulad-2.1.6', 'nanoseconds', 1],
] as const)(
  'PodSandboxStatus of %s has a timestamp in %s and statuses of %i containers',
  async (profile, unit, n) => {
    const runtime = await bed.start({ profile });
    const { sandbox } = runtime.runPod({ name: 'web', containers: ['app'] });
    const request = { podSandboxId: sandbox.id, verbose: false };
    const secondsNow = () => BigInt(Math.floor(Date.now() / 1000));
    const before = secondsNow();
    const answer = await bed.connect(runtime).call('podSandboxStatus', request);
    const inSeconds = { none: 0n, seconds: answer.timestamp, nanoseconds: answer.timestamp / 1_000_000_000n }[
      unit
    ];
    if (unit === 'none') expect(answer.timestamp).toBe(0n);
    else {
      expect(inSeconds).toBeGreaterThanOrEqual(before);
      expect(inSeconds).toBeLessThanOrEqual(secondsNow());
    }
    expect(answer.containersStatuses).toHaveLength(n);
  },
);
