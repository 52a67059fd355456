import { type ServiceError, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ListContainersResponse, ListPodSandboxResponse } from '../../src/cri/runtime.ts';
import type { CriTestClient } from './criClient.ts';
import {
  failingLists,
  hangingLists,
  malformedLists,
  oversizedLists,
  paddedLists,
  slowLists,
} from './listFaults.ts';
import { PROFILE_NAMES, PROFILES } from './profiles.ts';
import { faultFacts, TestBed } from './testBed.ts';
import { type VirtualListOutcome, VirtualRuntime } from './virtualRuntime.ts';

const always = { seed: 1 };

/** The answer to one list, after a minute at most; null: there was none. */
function ask(
  runtime: VirtualRuntime,
  call: Parameters<VirtualRuntime['list']>[0],
): VirtualListOutcome | null {
  const answers: VirtualListOutcome[] = [];
  runtime.list(call, (answer) => answers.push(answer));
  runtime.advance(60_000);
  return answers[0] ?? null;
}

function withPods(runtime: VirtualRuntime, pods: number): VirtualRuntime {
  for (let n = 0; n < pods; n += 1) runtime.core.pods.runPod({ name: `pod-${n}` });
  return runtime;
}

describe('in virtual time', () => {
  test('a slow list takes the configured time and shows the state of a moment in between', () => {
    const runtime = withPods(new VirtualRuntime({ listFaults: [slowLists(always, 5000)] }), 1);
    runtime.every(1000, () => runtime.core.pods.runPod({ name: 'more' }));
    const answer = ask(runtime, 'listPodSandbox');
    expect(answer?.tookMs).toBe(5000);
    const shown = ListPodSandboxResponse.decode(answer?.messages[0] ?? new Uint8Array()).items.length;
    expect(shown).toBeGreaterThanOrEqual(1);
    expect(shown).toBeLessThanOrEqual(6);
    expect(faultFacts(runtime.core.truth, 'list_slow')).toHaveLength(1);
  });

  test('a list that hangs never returns', () => {
    const runtime = new VirtualRuntime({ listFaults: [hangingLists(always)] });
    expect(ask(runtime, 'listContainers')).toBe(null);
    expect(faultFacts(runtime.core.truth, 'list_hang')).toHaveLength(1);
  });

  test.each(['sandboxes', 'containers', 'both'] as const)('a list fault applies to %s only', (of) => {
    const runtime = new VirtualRuntime({ listFaults: [failingLists({ ...always, of }, status.INTERNAL)] });
    const codes = (['listPodSandbox', 'listContainers'] as const).map(
      (call) => ask(runtime, call)?.failure?.code ?? status.OK,
    );
    expect(codes).toEqual([
      of === 'containers' ? status.OK : status.INTERNAL,
      of === 'sandboxes' ? status.OK : status.INTERNAL,
    ]);
  });

  test('a fault hits calls with its probability, and the same calls for the same seed', () => {
    const failures = () => {
      const listFaults = [failingLists({ seed: 4, probability: 0.3 }, status.UNAVAILABLE)];
      const runtime = new VirtualRuntime({ listFaults });
      return Array.from({ length: 200 }, () => ask(runtime, 'listContainers')?.failure?.code);
    };
    const failed = failures().filter((code) => code === status.UNAVAILABLE).length;
    expect(failed).toBeGreaterThan(35);
    expect(failed).toBeLessThan(85);
    expect(failures()).toEqual(failures());
  });

  test('items are padded by the configured bytes', () => {
    const size = (runtime: VirtualRuntime) =>
      ask(withPods(runtime, 10), 'listPodSandbox')?.messages[0]?.length ?? 0;
    const padded = size(new VirtualRuntime({ listFaults: [paddedLists(always, 1000)] }));
    expect(padded - size(new VirtualRuntime())).toBeGreaterThan(10_000);
  });

  test.each(['containerd-2.1', 'crio-1.33'] as const)(
    'an oversized list of %s fails with RESOURCE_EXHAUSTED',
    (profile) => {
      const runtime = withPods(new VirtualRuntime({ profile, listFaults: [oversizedLists(always)] }), 3);
      expect(ask(runtime, 'listPodSandbox')?.failure?.code).toBe(status.RESOURCE_EXHAUSTED);
      expect(faultFacts(runtime.core.truth, 'list_oversized')).toHaveLength(1);
    },
  );

  test('a malformed list differs from the correct one', () => {
    const good = ask(withPods(new VirtualRuntime(), 1), 'listPodSandbox')?.messages[0]?.length ?? 0;
    const listFaults = [malformedLists(always, 'truncated')];
    const bad = ask(withPods(new VirtualRuntime({ listFaults }), 1), 'listPodSandbox');
    expect(bad?.messages[0]?.length).toBe(Math.floor(good / 2));
  });

  test('a streaming list is sent in batches, and a failing one ends after the first', () => {
    const profile = { ...PROFILES['containerd-2.4'], listBatch: 2 };
    const runtime = withPods(new VirtualRuntime({ profile }), 5);
    const batches = ask(runtime, 'streamPodSandboxes')?.messages ?? [];
    expect(batches.map((bytes) => ListPodSandboxResponse.decode(bytes).items.length)).toEqual([2, 2, 1]);
    runtime.core.setListFaults([failingLists(always, status.INTERNAL)]);
    const broken = ask(runtime, 'streamPodSandboxes');
    expect([broken?.messages.length, broken?.failure?.code]).toEqual([1, status.INTERNAL]);
  });

  test('a runtime that is down or starting answers no list', () => {
    const runtime = new VirtualRuntime({ startingMs: 500 });
    const codeNow = () => {
      let code: status | null = null;
      runtime.list('listContainers', ({ failure }) => {
        code = failure?.code ?? status.OK;
      });
      return code;
    };
    expect(codeNow()).toBe(status.UNAVAILABLE);
    runtime.advance(600);
    expect(codeNow()).toBe(status.OK);
    runtime.restart({ downMs: 100 });
    expect(codeNow()).toBe(status.UNAVAILABLE);
  });
});

describe('on a socket', () => {
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

  async function streamed(
    client: CriTestClient,
  ): Promise<{ readonly sizes: number[]; readonly code: status }> {
    const sizes: number[] = [];
    const { promise, resolve } = Promise.withResolvers<status>();
    client
      .stream('streamContainers', none)
      .on('data', (batch: ListContainersResponse) => sizes.push(batch.containers.length))
      .on('error', ({ code }: ServiceError) => resolve(code))
      .on('end', () => resolve(status.OK));
    return { code: await promise, sizes };
  }

  test('a list that hangs ends at the deadline of the caller', async () => {
    const runtime = await bed.start({ listFaults: [hangingLists(always)] });
    const call = bed.connect(runtime).call('listContainers', none, { deadline: Date.now() + 50 });
    expect(await codeOf(call)).toBe(status.DEADLINE_EXCEEDED);
  });

  test('a slow list takes the configured time', async () => {
    const runtime = await bed.start({ listFaults: [slowLists(always, 60)] });
    const start = performance.now();
    await bed.connect(runtime).call('listContainers', none);
    expect(performance.now() - start).toBeGreaterThan(55);
  });

  test('a failing list has the configured status, and the other list succeeds', async () => {
    const listFaults = [failingLists({ ...always, of: 'sandboxes' }, status.PERMISSION_DENIED)];
    const client = bed.connect(await bed.start({ listFaults }));
    expect(await codeOf(client.call('listPodSandbox', none))).toBe(status.PERMISSION_DENIED);
    expect(await codeOf(client.call('listContainers', none))).toBe(status.OK);
  });

  test.each(['containerd-2.1', 'crio-1.33'] as const)(
    'a list of %s over 16 MiB ends with RESOURCE_EXHAUSTED, from the runtime or at the client',
    async (profile) => {
      const runtime = await bed.start({ profile, listFaults: [oversizedLists(always)] });
      runtime.runPod({ name: 'web' });
      const call = bed.connect(runtime).call('listPodSandbox', none);
      expect(await codeOf(call)).toBe(status.RESOURCE_EXHAUSTED);
    },
  );

  test.each(PROFILE_NAMES)('%s streams its lists or answers UNIMPLEMENTED', async (profile) => {
    const runtime = await bed.start({ profile });
    runtime.runPod({ name: 'web', containers: ['app', 'sidecar'] });
    const has = PROFILES[profile].listBatch !== null;
    expect(await streamed(bed.connect(runtime))).toEqual(
      has ? { sizes: [2], code: status.OK } : { sizes: [], code: status.UNIMPLEMENTED },
    );
  });

  test('a streaming list sends each item once, in batches, and ends where it fails', async () => {
    const runtime = await bed.start({ profile: { ...PROFILES['crio-1.36'], listBatch: 2 } });
    const client = bed.connect(runtime);
    runtime.runPod({ name: 'web', containers: ['a', 'b', 'c', 'd', 'e'] });
    expect(await streamed(client)).toEqual({ sizes: [2, 2, 1], code: status.OK });
    runtime.setListFaults([failingLists(always, status.UNAVAILABLE)]);
    expect(await streamed(client)).toEqual({ sizes: [2], code: status.UNAVAILABLE });
  });
});
