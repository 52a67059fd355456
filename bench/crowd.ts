/*
 * Idle pods: each a sandbox and one container with the labels and annotations of a kubelet and an ordinary Deployment, so that
 * list items are as long as on a real node.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { LocalContainerd } from '../devtools/localServices/containerd.ts';
import { type CriTestClient, connectCri } from '../devtools/simulator/criClient.ts';
import { CriClient } from '../src/cri/client.ts';
import { type ContainerConfig, NamespaceMode, type PodSandboxConfig } from '../src/cri/runtime.ts';

const CONCURRENCY = 3;
const CALL_TIMEOUT_MS = 120_000;

/** Adds pods until there are `count`, of which `existing` exist already. The runtime's stop removes them. */
export async function createPods(runtime: LocalContainerd, existing: number, count: number): Promise<void> {
  const driver = connectCri(runtime.socket);
  let last = existing;
  const work = async () => {
    while (last < count) {
      last += 1;
      await run(driver, runtime, last);
    }
  };
  try {
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
  } finally {
    driver.close();
  }
}

/** The mean size of a list item in bytes. */
export async function meanItemBytes(runtime: LocalContainerd, pods: number): Promise<number> {
  const client = new CriClient(runtime.socket);
  try {
    const sandboxes = await client.listSandboxes({ timeoutMs: CALL_TIMEOUT_MS });
    const containers = await client.listContainers({ timeoutMs: CALL_TIMEOUT_MS });
    return (sandboxes.length + containers.length) / (2 * pods);
  } finally {
    client.close();
  }
}

async function run(driver: CriTestClient, runtime: LocalContainerd, number: number): Promise<void> {
  const sandbox = sandboxConfig(number, runtime.cgroupParent);
  const { podSandboxId } = await driver.call('runPodSandbox', { config: sandbox }, within());
  const config = containerConfig(sandbox, runtime.importedImages.busybox);
  const request = { podSandboxId, config, sandboxConfig: sandbox };
  const { containerId } = await driver.call('createContainer', request, within());
  await driver.call('startContainer', { containerId }, within());
}

function sandboxConfig(number: number, cgroupParent: string): PodSandboxConfig {
  const hash = randomBytes(5).toString('hex');
  const metadata = {
    name: `storefront-${hash}-${randomBytes(3).toString('hex')}`,
    uid: randomUUID(),
    namespace: `team-${number % 7}`,
    attempt: 0,
  };
  const namespaceOptions = {
    network: NamespaceMode.NODE,
    pid: NamespaceMode.CONTAINER,
    ipc: NamespaceMode.POD,
  };
  return {
    metadata,
    hostname: '',
    logDirectory: '',
    labels: {
      ...kubeletLabels(metadata),
      'app.kubernetes.io/instance': 'storefront',
      'app.kubernetes.io/name': 'storefront',
      'pod-template-hash': hash,
    },
    annotations: {
      'kubernetes.io/config.seen': new Date().toISOString(),
      'kubernetes.io/config.source': 'api',
    },
    linux: { cgroupParent, securityContext: { namespaceOptions } },
  };
}

function containerConfig({ metadata }: PodSandboxConfig, image: string): ContainerConfig {
  return {
    metadata: { name: 'storefront', attempt: 0 },
    image: { image },
    command: ['sleep', '86400'],
    args: [],
    labels: { 'io.kubernetes.container.name': 'storefront', ...kubeletLabels(metadata) },
    annotations: {
      'io.kubernetes.container.hash': randomBytes(4).toString('hex'),
      'io.kubernetes.container.ports': '[{"name":"http","containerPort":8080,"protocol":"TCP"}]',
      'io.kubernetes.container.restartCount': '0',
      'io.kubernetes.container.terminationMessagePath': '/dev/termination-log',
      'io.kubernetes.container.terminationMessagePolicy': 'File',
      'io.kubernetes.pod.terminationGracePeriod': '30',
    },
    logPath: '',
    linux: undefined,
  };
}

const kubeletLabels = (pod: PodSandboxConfig['metadata']): Record<string, string> => ({
  'io.kubernetes.pod.name': pod?.name ?? '',
  'io.kubernetes.pod.namespace': pod?.namespace ?? '',
  'io.kubernetes.pod.uid': pod?.uid ?? '',
});

const within = () => ({ deadline: Date.now() + CALL_TIMEOUT_MS });
