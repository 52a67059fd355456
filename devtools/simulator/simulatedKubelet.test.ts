import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PodsStream } from '../../src/agent/observe/pods/podsStream.ts';
import type { KubeletSight } from '../../src/protocol/observation.ts';
import { until } from '../../test/support/waitFor.ts';
import { drop } from './eventFaults.ts';
import type { PodStatus, StatusFact } from './groundTruth.ts';
import { SimulatedKubelet, type SimulatedKubeletOptions } from './simulatedKubelet.ts';
import { faultFacts, TestBed } from './testBed.ts';
import { VirtualRuntime } from './virtualRuntime.ts';

/** A kubelet beside a runtime in virtual time that has been up for a second. */
function kubeletOf(
  options: SimulatedKubeletOptions = {},
  runtime = new VirtualRuntime(),
): { readonly runtime: VirtualRuntime; readonly kubelet: SimulatedKubelet; readonly shown: string[] } {
  const kubelet = new SimulatedKubelet(runtime.core, (ms, run) => runtime.later(ms, run), options);
  const shown: string[] = [];
  kubelet.comeUp();
  runtime.advance(1_000);
  kubelet.watch({
    show: (change, pod) => shown.push(`${change} ${textOf(pod)}`.trim()),
    synced: () => shown.push('synced'),
    end: (code) => shown.push(status[code]),
  });
  return { runtime, kubelet, shown };
}

const textOf = ({ isTerminating, containers }: PodStatus): string =>
  [
    ...(isTerminating ? ['terminating'] : []),
    ...containers.map(
      ({ name, state, lastId }) => `${name} ${state}${lastId === null ? '' : ' after another one'}`,
    ),
  ].join(', ');

/** A pod whose container runs. */
function runPod({ core }: VirtualRuntime) {
  const pod = core.pods.runPod({ name: 'web' });
  const container = core.pods.createContainer(pod.id, { name: 'app' });
  core.pods.startContainer(container.id);
  return { sandbox: pod.id, uid: pod.pod.uid, container: container.id };
}

const statuses = ({ core }: VirtualRuntime): StatusFact[] =>
  core.truth.entries.filter((entry) => entry.what === 'status');

describe('a simulated kubelet', () => {
  test('a Generic kubelet knows the pod that it creates at once, and shows its containers after its next relist', () => {
    const { runtime, shown } = kubeletOf();
    runPod(runtime);
    expect(shown).toEqual(['synced', 'added']);
    runtime.advance(1_020);
    expect(shown).toEqual(['synced', 'added', 'modified app running']);
  });

  test('a Generic kubelet does not show what happens between two of its relists', () => {
    const { runtime, shown } = kubeletOf();
    const { container } = runPod(runtime);
    runtime.core.pods.exitContainer(container);
    runtime.advance(5_000);
    expect(shown).toEqual(['synced', 'added', 'modified app terminated']);
  });

  test('an Evented kubelet shows what an event announces within milliseconds', () => {
    const { runtime, shown } = kubeletOf({ evented: true });
    const { container } = runPod(runtime);
    runtime.advance(20);
    expect(shown.at(-1)).toBe('modified app running');
    runtime.core.pods.exitContainer(container);
    runtime.advance(20);
    expect(shown.at(-1)).toBe('modified app terminated');
  });

  test('an Evented kubelet whose event is lost shows the change at its next relist, within five minutes', () => {
    const { runtime, shown } = kubeletOf({ evented: true });
    const { container } = runPod(runtime);
    runtime.advance(20);
    runtime.core.setFaults([drop({ seed: 1, probability: 1 })]);
    runtime.core.pods.exitContainer(container);
    runtime.advance(1_100);
    expect(shown.at(-1)).toBe('modified app running');
    runtime.advance(300_000);
    expect(shown.at(-1)).toBe('modified app terminated');
  });

  test('an Evented kubelet without a stream relists each second, and subscribes again', () => {
    const { runtime, shown } = kubeletOf({ evented: true });
    const { container } = runPod(runtime);
    runtime.advance(20);
    runtime.restart({ downMs: 500 });
    runtime.core.pods.exitContainer(container);
    runtime.advance(3_000);
    expect(shown.at(-1)).toBe('modified app terminated');
    expect(runtime.core.subscribers).toBe(1);
  });

  test('a kubelet that is held up notices nothing, and everything afterwards', () => {
    for (const evented of [false, true]) {
      const { runtime, kubelet, shown } = kubeletOf({ evented });
      kubelet.holdUp(10_000);
      runPod(runtime);
      runtime.advance(9_900);
      expect(shown).toEqual(['synced', 'added']);
      runtime.advance(1_200);
      expect(shown.at(-1)).toBe('modified app running');
      expect(faultFacts(runtime.core.truth).map(({ fault }) => fault)).toEqual([
        'kubelet_held_up',
        'kubelet_released',
      ]);
    }
  });

  test('a kubelet overlooks one container and shows the others, until it notices it', () => {
    const { runtime, kubelet, shown } = kubeletOf();
    const { container, sandbox } = runPod(runtime);
    runtime.advance(1_020);
    kubelet.overlook(container);
    const other = runtime.core.pods.createContainer(sandbox, { name: 'other' });
    runtime.core.pods.startContainer(other.id);
    runtime.core.pods.exitContainer(container);
    runtime.advance(5_000);
    expect(shown.at(-1)).toBe('modified app running, other running');
    kubelet.notice(container);
    runtime.advance(1_020);
    expect(shown.at(-1)).toBe('modified app terminated, other running');
  });

  test('a restarted container has the id of the one before it, for as long as that is listed', () => {
    const { runtime, shown } = kubeletOf();
    const { container, sandbox } = runPod(runtime);
    runtime.core.pods.exitContainer(container);
    const next = runtime.core.pods.createContainer(sandbox, { name: 'app', attempt: 1 });
    runtime.core.pods.startContainer(next.id);
    runtime.advance(1_020);
    expect(shown.at(-1)).toBe('modified app running after another one');
    runtime.core.pods.removeContainer(container);
    runtime.advance(1_020);
    expect(shown.at(-1)).toBe('modified app running');
  });

  test('a pod with a stopped sandbox is terminating, and one without its sandbox has ended and is not found', () => {
    const { runtime, kubelet, shown } = kubeletOf();
    const { sandbox, uid } = runPod(runtime);
    runtime.advance(1_020);
    runtime.core.pods.stopPod(sandbox);
    runtime.advance(1_020);
    expect(shown.at(-1)).toBe('modified terminating, app terminated');
    runtime.core.pods.beginRemoval(sandbox);
    runtime.core.pods.finishRemoval(sandbox);
    runtime.advance(1_020);
    expect(shown.at(-1)).toBe('deleted terminating, app terminated');
    expect(kubelet.pod(uid)).toBeUndefined();
  });

  test('a kubelet that restarted has its old status until it has looked again', () => {
    const { runtime, kubelet, shown } = kubeletOf();
    const { container, uid } = runPod(runtime);
    runtime.advance(1_020);
    kubelet.goDown();
    expect(shown.at(-1)).toBe('UNAVAILABLE');
    runtime.core.pods.exitContainer(container);
    runtime.advance(5_000);
    kubelet.comeUp(100);
    expect(kubelet.isInitialising).toBe(true);
    expect(kubelet.pod(uid)?.containers[0]?.state).toBe('running');
    runtime.advance(1_120);
    expect(kubelet.isInitialising).toBe(false);
    expect(kubelet.pod(uid)?.containers[0]?.state).toBe('terminated');
  });

  test('a change of which the message is lost is in the status, and reaches no watcher', () => {
    const { runtime, kubelet, shown } = kubeletOf({ loses: 1 });
    const { uid } = runPod(runtime);
    runtime.advance(1_020);
    expect(shown).toEqual(['synced']);
    expect(kubelet.pod(uid)?.containers[0]?.state).toBe('running');
    expect(faultFacts(runtime.core.truth, 'status_lost')).toHaveLength(2);
  });

  test('the pods that exist at its start are known at once', () => {
    const runtime = new VirtualRuntime();
    runPod(runtime);
    expect(kubeletOf({}, runtime).shown).toEqual(['added app running', 'synced']);
  });

  test('the same seed gives the same statuses at the same times, and another seed other times', () => {
    const run = (seed: number) => {
      const { runtime } = kubeletOf({ evented: true, loses: 0.1 }, new VirtualRuntime({ seed }));
      runtime.play({ pods: 3, meanMs: 2_000, restarts: 1 }, 20_000);
      runtime.advance(40_000);
      return JSON.stringify(statuses(runtime));
    };
    expect(run(7)).toBe(run(7));
    expect(run(7)).not.toBe(run(8));
  });
});

describe('its PodsAPI', () => {
  let bed: TestBed;
  beforeEach(() => {
    bed = new TestBed();
  });
  afterEach(() => bed.close());

  /** An agent's stream, and what it was told. */
  function streamTo(socket: string) {
    const sights: KubeletSight[] = [];
    const ends: string[] = [];
    const stream = new PodsStream(socket, {
      mayTake: () => true,
      sight: (sight) => sights.push(sight),
      malformed: () => ends.push('malformed'),
      ended: (cause) => ends.push(cause),
    });
    return { stream, sights, ends };
  }
  const start = async () => {
    const podsApi = join(bed.folder, 'pods-api.sock');
    const runtime = await bed.start({ kubelet: { podsApi } });
    if (runtime.kubelet === null) throw new Error('there is no kubelet');
    return { runtime, server: runtime.kubelet, podsApi };
  };

  test('the PodsAPI serves its status to a watch and to GetPod, as an agent decodes them', async () => {
    const { runtime, podsApi } = await start();
    const { sandbox, containers } = runtime.runPod({ name: 'web', containers: ['app'] });
    const { stream, sights, ends } = streamTo(podsApi);
    const pod = { podUid: sandbox.pod.uid, namespace: 'default', pod: 'web', isTerminating: false };
    const app = { id: containers[0]?.id, name: 'app', state: 'running' };
    // The kubelet may learn of the pod only after it has sent all that it knew.
    await until(
      () => stream.isSynced && sights.some((sight) => sight.is === 'pod' && sight.pod.containers.length > 0),
    );
    expect(sights[0]).toMatchObject({ is: 'opened' });
    expect(sights.findLast(({ is }) => is === 'pod')).toMatchObject({ pod: { ...pod, containers: [app] } });
    expect(await stream.getPod(pod.podUid)).toMatchObject({ found: true, pod: { containers: [app] } });
    expect(await stream.getPod('another')).toMatchObject({ found: false, reason: 'NOT_FOUND' });
    stream.close();
    const { truth } = runtime;
    await until(() => truth.entries.some((entry) => entry.what === 'watch' && entry.cause === 'cancelled'));
    expect(ends).toEqual([]);
  });

  test('a watch that the kubelet drops, and one of a kubelet that ends, end with their causes', async () => {
    const { runtime, server, podsApi } = await start();
    const dropped = streamTo(podsApi);
    await until(() => dropped.stream.isSynced);
    server.kubelet.endWatches(status.RESOURCE_EXHAUSTED);
    await until(() => dropped.ends.length > 0);
    expect(dropped.ends).toEqual(['closed_by_kubelet']);
    const ended = streamTo(podsApi);
    await until(() => ended.stream.isSynced);
    await server.goDown();
    await until(() => ended.ends.length > 0);
    expect(ended.ends).toEqual(['kubelet_unavailable']);
    const closed = runtime.truth.entries.flatMap((entry) =>
      entry.what === 'watch' && entry.change === 'closed' ? [entry.cause] : [],
    );
    expect(closed).toEqual(['RESOURCE_EXHAUSTED', 'UNAVAILABLE']);
  });

  test('a kubelet that initialises refuses a watch, and serves one later', async () => {
    const { server, podsApi } = await start();
    await server.goDown();
    await server.comeUp(3_600_000);
    const refused = streamTo(podsApi);
    await until(() => refused.ends.length > 0);
    expect(refused.ends).toEqual(['kubelet_initializing']);
    await server.goDown();
    await server.comeUp();
    const { stream } = streamTo(podsApi);
    await until(() => stream.isSynced);
    stream.close();
  });
});
