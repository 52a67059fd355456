import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { passes } from '../../test/support/waitFor.ts';
import { createPodDriver, type PodDriver } from './podDriver.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from './runtime.ts';

let folder: string;
let runtime: SimulatedRuntime;
let driver: PodDriver;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'plegwatch-driver-'));
  runtime = await startSimulatedRuntime({ socket: join(folder, 'cri.sock') });
  driver = createPodDriver({ socket: runtime.socket });
});

afterEach(async () => {
  await driver.close();
  await runtime.stop();
  rmSync(folder, { recursive: true });
});

const transitions = (id: string) =>
  runtime.truth.entries.flatMap((entry) =>
    entry.what === 'transition' && entry.id === id ? [entry.transition] : [],
  );

test('runToEnd takes the sandbox and the container through every transition', async () => {
  const pod = await driver.runToEnd();
  const stages = ['created', 'started', 'stopped', 'deleted'];
  expect(transitions(pod.sandbox)).toEqual(stages);
  expect(transitions(pod.containers['app'] ?? '')).toEqual(stages);
});

test('sandbox and containers have the labels of the kubelet', async () => {
  const pod = await driver.runPod({ name: 'web', namespace: 'shop', containers: [{ name: 'front' }] });
  const labels = {
    'io.kubernetes.pod.name': 'web',
    'io.kubernetes.pod.namespace': 'shop',
    'io.kubernetes.pod.uid': pod.uid,
  };
  expect(runtime.pods.sandbox(pod.sandbox).labels).toEqual(labels);
  expect(runtime.pods.container(pod.containers['front'] ?? '').labels).toEqual({
    ...labels,
    'io.kubernetes.container.name': 'front',
  });
});

test('a container exits when its command ends', async () => {
  const pod = await driver.runPod({ name: 'job', containers: [{ name: 'app', command: ['false'] }] });
  const id = pod.containers['app'] ?? '';
  await passes(() => expect(runtime.pods.container(id)).toMatchObject({ state: 'exited', exitCode: 1 }));
});

test('cleanup removes every pod of the driver with all its containers, and no other pod', async () => {
  const other = runtime.runPod({ name: 'other', containers: ['app'] });
  const pod = await driver.runPod({ name: 'web' });
  await driver.runContainer(pod, { name: 'app', attempt: 1 });
  await driver.runPod({ name: 'api' });
  await driver.cleanup();
  expect([...runtime.pods.sandboxes.keys()]).toEqual([other.sandbox.id]);
  expect([...runtime.pods.containers.keys()]).toEqual([other.containers[0]?.id]);
});
