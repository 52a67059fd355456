/*
 * From a real container's start to `kubectl get plegreports`: a real containerd, a proxy in front of it that drops chosen
 * events, the real API server, and the built programs.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type LocalContainerd, startContainerd } from '../../devtools/localServices/containerd.ts';
import { type LocalCollector, startCollector } from '../../devtools/localServices/otelcol.ts';
import type { LocalPlegwatch, PlegwatchSettings } from '../../devtools/localServices/plegwatch.ts';
import { createPodDriver, type DrivenPod, type PodDriver } from '../../devtools/simulator/podDriver.ts';
import { type CriProxy, startCriProxy } from '../../devtools/simulator/proxy.ts';
import type { ContainerEventResponse } from '../../src/cri/runtime.ts';
import { NODES } from '../../src/kube/object.ts';
import { EVENT_TYPES, type EventType } from '../../src/protocol/record.ts';
import { churnUntil } from '../support/churn.ts';
import { needs } from '../support/needs.ts';
import { LASTING_READER, metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

/** Pods run one after another, and a busy agent relists every ten seconds: this only ends a test that hangs. */
const TIMEOUT_MS = 1_800_000;
/**
 * A busy machine holds events and programs up for seconds: that alone makes no event late or missed, and no stretch a gap.
 */
const PATIENT: PlegwatchSettings = { lateAfter: '10m', overdueAfter: '40s', missedAfter: '1m' };

let system: System;
let containerd: LocalContainerd;
let proxy: CriProxy;
let pods: PodDriver;
let collector: LocalCollector;
let controller: LocalPlegwatch;
let agents: LocalPlegwatch[] = [];
let nodes = 0;

needs(
  'root',
  'containerd-2.1',
  'redis-server',
  'postgres',
  'kube-apiserver',
  'etcd',
  'kubectl',
  'otelcol',
)('from a real container to kubectl', () => {
  beforeAll(async () => {
    [system, containerd, collector] = await Promise.all([
      System.start({ kube: true }),
      startContainerd({ version: '2.1' }),
      startCollector(),
    ]);
    proxy = await startCriProxy({ upstream: containerd.socket, socket: system.folder('cri.sock') });
    pods = createPodDriver({ socket: containerd.socket, cgroupParent: containerd.cgroupParent });
    controller = await system.controller({ otlpEndpoint: collector.url });
  });
  afterEach(async () => {
    for (const agent of agents) await agent.stop();
    agents = [];
    await pods.cleanup();
  });
  afterAll(async () => {
    try {
      await system?.expectNoDifference();
    } finally {
      await pods?.close();
      await proxy?.stop();
      await containerd?.stop();
      await system?.stop();
      await collector?.stop();
    }
  });

  test('exactly the three dropped events are reported as missed, and the findings outlive the report', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const node = await newNode();
    const agent = await watched(node);
    const dropped = dropOnce({ 'pod-2': 'STARTED', 'pod-5': 'STOPPED', 'pod-8': 'DELETED' });
    const podsByName = await runPods(10);
    await settled(agent, node);

    const expected = Object.entries(dropped).map(([pod, type]) => {
      const container = podsByName.get(pod)?.containers['app'];
      return { event_type: type, pod_name: pod, container_name: 'app', container_id: container };
    });
    const missed = await system.sql(
      `SELECT event_type, pod_name, container_name, container_id FROM plegwatch.findings
        WHERE node = $1 AND kind = 'missed' ORDER BY length(pod_name), pod_name`,
      node,
    );
    expect(missed).toEqual(expected);
    expect(proxy.dropped).toHaveLength(3);
    await expectEveryDeliveredEventOnce(node);

    const row = await waitFor('the report shows three missed events', async () => {
      const table = await system.kubectl('get', 'plegreports', node);
      return table.split('\n').find((line) => new RegExp(`^${node} +\\S+ +Active +3 `).test(line));
    });
    expect(row).toMatch(
      new RegExp(`^${node} +Unknown +Active +3 +[\\dhms]+ +(True|False|Unknown) +[\\dhms]+$`),
    );

    const collected = await waitFor('the collector has all three', () => {
      const misses = collector
        .records()
        .flatMap(({ resource, attributes }) =>
          resource['k8s.node.name'] === node && attributes['plegwatch.kind'] === 'missed'
            ? `${attributes['plegwatch.event_type']} ${attributes['k8s.pod.name']}`
            : [],
        );
      return new Set(misses).size >= 3 ? [...new Set(misses)] : undefined;
    });
    expect(collected.sort()).toEqual(['DELETED pod-8', 'STARTED pod-2', 'STOPPED pod-5']);

    await system.kube.delete(NODES, node);
    await waitFor('the report is gone', async () => {
      const left = await system.kubectl('get', 'plegreports', '-o', 'name');
      return left.includes(node) ? undefined : true;
    });
    const [rows] = await system.sql<{ n: number }>(
      "SELECT count(*)::int AS n FROM plegwatch.findings WHERE node = $1 AND kind = 'missed'",
      node,
    );
    expect(rows?.n).toBe(3);
  });

  test('an agent that starts under load reports no event as missed', { timeout: TIMEOUT_MS }, async () => {
    const node = await newNode();
    const [agent] = await Promise.all([
      start(node),
      churnUntil(pods, 'events are stored', async () => (await stored(node)) > 0),
    ]);
    await runPods(4);
    await settled(agent, node);
    expect(await missedEvents(node)).toEqual([]);
  });

  test('a controller that is killed and restarted loses and duplicates nothing', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const node = await newNode();
    const agent = await watched(node);
    dropOnce({ 'pod-3': 'STOPPED', 'pod-6': 'STARTED' });
    const before = await stored(node);
    const churn = runPods(10);
    await waitFor('something was stored', async () => (await stored(node)) > before);
    await controller.kill('SIGKILL');
    await waitFor(
      'unacknowledged records are in the spool',
      async () => ((await metric(agent, 'plegwatch_unacked_records')) ?? 0) > 0,
    );
    await controller.restart();
    await churn;
    await settled(agent, node);
    const missed = await missedEvents(node);
    expect(missed.map(({ event_type, pod_name }) => [pod_name, event_type]).sort()).toEqual([
      ['pod-3', 'STOPPED'],
      ['pod-6', 'STARTED'],
    ]);
    await expectEveryDeliveredEventOnce(node);
  });
});

async function newNode(): Promise<string> {
  nodes += 1;
  const node = `node-${nodes}`;
  await system.addNode(node);
  proxy.setFilter(() => 'deliver');
  proxy.delivered.length = 0;
  proxy.dropped.length = 0;
  return node;
}

async function start(node: string): Promise<LocalPlegwatch> {
  const agent = await system.agent(node, proxy.socket, { ...PATIENT, ...LASTING_READER });
  agents.push(agent);
  return agent;
}

/** An agent whose coverage has begun: a pod's event armed the stream, and a later relist was compared. */
async function watched(node: string): Promise<LocalPlegwatch> {
  const agent = await start(node);
  await waitFor('the reader listens', () => proxy.streams > 0);
  const pod = await pods.runPod({ name: 'first', containers: [{ name: 'app' }] });
  await waitFor('a relist shows it', async () => {
    const [row] = await system.sql<{ n: number }>(
      "SELECT count(*)::int AS n FROM plegwatch.relist_changes WHERE node = $1 AND pod_name = 'first' AND new_state = 'running'",
      node,
    );
    return (row?.n ?? 0) > 0;
  });
  await pods.removePod(pod);
  await waitFor('a relist shows that it is gone', async () => {
    const [row] = await system.sql<{ n: number }>(
      "SELECT count(*)::int AS n FROM plegwatch.relist_changes WHERE node = $1 AND pod_name = 'first' AND new_state = 'non-existent'",
      node,
    );
    return (row?.n ?? 0) > 1;
  });
  return agent;
}

/** Runs pods one after another: most far shorter than a relist period, every third longer than two. */
async function runPods(count: number): Promise<Map<string, DrivenPod>> {
  const podsByName = new Map<string, DrivenPod>();
  for (let i = 1; i <= count; i += 1) {
    const name = `pod-${i}`;
    const containers = [{ name: 'app' }];
    if (i % 3 !== 0) {
      podsByName.set(name, await pods.runToEnd({ name, namespace: 'shop', containers }));
      continue;
    }
    const pod = await pods.runPod({ name, namespace: 'shop', containers });
    podsByName.set(name, pod);
    await relisted();
    await pods.removePod(pod);
  }
  return podsByName;
}

/** Waits until every agent has relisted twice more. */
async function relisted(): Promise<void> {
  const count = (agent: LocalPlegwatch) => metric(agent, 'plegwatch_relist_duration_seconds_count');
  for (const agent of agents) {
    const before = (await count(agent)) ?? 0;
    await waitFor('two more relists', async () => ((await count(agent)) ?? 0) >= before + 2);
  }
}

/** Drops one event of the container of each named pod. */
function dropOnce<const T extends Readonly<Record<string, EventType>>>(plan: T): T {
  const left = new Map<string, EventType>(Object.entries(plan));
  proxy.setFilter((event) => {
    const pod = event.podSandboxStatus?.metadata?.name ?? '';
    if (isSandbox(event) || left.get(pod) !== EVENT_TYPES[event.containerEventType]) return 'deliver';
    left.delete(pod);
    return 'drop';
  });
  return plan;
}

const isSandbox = (event: ContainerEventResponse): boolean =>
  event.podSandboxStatus?.id === event.containerId;

/** Waits until no event is pending and the store has every record. */
async function settled(agent: LocalPlegwatch, node: string): Promise<void> {
  await relisted();
  await waitFor('every expected event is received or judged', async () => {
    return (await metric(agent, 'plegwatch_pending_events')) === 0;
  });
  await waitFor('everything is acknowledged', async () => {
    return (await metric(agent, 'plegwatch_unacked_records')) === 0;
  });
  expect(await stored(node)).toBeGreaterThan(0);
  expect(await system.undeclaredGaps(node)).toEqual([]);
}

async function stored(node: string): Promise<number> {
  const [row] = await system.sql<{ n: number }>(
    'SELECT count(*)::int AS n FROM plegwatch.container_events WHERE node = $1',
    node,
  );
  return row?.n ?? 0;
}

function missedEvents(node: string) {
  return system.sql<{ event_type: string; pod_name: string; cause: string }>(
    "SELECT event_type, pod_name, cause FROM plegwatch.findings WHERE node = $1 AND kind = 'missed'",
    node,
  );
}

async function expectEveryDeliveredEventOnce(node: string): Promise<void> {
  const rows = await system.sql<{ container_id: string; event_type: string }>(
    'SELECT container_id, event_type FROM plegwatch.container_events WHERE node = $1',
    node,
  );
  const key = (id: string, type: string | undefined) => `${id} ${type}`;
  const delivered = proxy.delivered.map(({ event }) =>
    key(event.containerId, EVENT_TYPES[event.containerEventType]),
  );
  expect(rows.map((row) => key(row.container_id, row.event_type)).sort()).toEqual(delivered.sort());
}
