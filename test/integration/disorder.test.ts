/*
 * Order and time on a real containerd: a proxy holds back, reorders and repeats chosen events of an agent's stream. Each gets exactly the
 * finding of its kind, and a model of the kubelet's cache says which of them a kubelet would have ignored.
 *
 * The cache refuses a pod's status that is older than the one it has (kubelet, pkg/kubelet/container/cache.go, Set): that of an event is as
 * old as its `created_at`, that of a relist as its beginning.
 */
import { beforeAll, expect, test } from 'vitest';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import type { PlegwatchSettings } from '../../devtools/localServices/plegwatch.ts';
import type { DrivenPod, PodDriver } from '../../devtools/simulator/podDriver.ts';
import type { CriProxy, EventDecision } from '../../devtools/simulator/proxy.ts';
import { CriClient } from '../../src/cri/client.ts';
import { EVENT_TYPES, type EventType } from '../../src/protocol/record.ts';
import { BLUR } from '../support/completeness.ts';
import { needs } from '../support/needs.ts';
import { metric } from '../support/system.ts';
import { RUNTIME_NEEDS, SystemBed } from '../support/systemBed.ts';
import { MAIN } from '../support/testedVersions.ts';
import { waitFor } from '../support/waitFor.ts';
import type { Accusation, WatchedNode } from '../support/watchedNode.ts';

/** Nothing is missed or late by these, however slow the machine: each test shortens the one that it is about. */
const PATIENT: PlegwatchSettings = { lateAfter: '10m', overdueAfter: '60s', missedAfter: '10m' };

const bed = new SystemBed({ kube: false });
let containerd: LocalContainerd;
let pods: PodDriver;
let nodes = 0;

/** An agent behind a proxy. */
interface Watch {
  readonly proxy: CriProxy;
  readonly node: WatchedNode;
}
let patient: Watch;
/** That of the present test. */
let proxy: CriProxy;
let node: WatchedNode;

/** Events that are not simply delivered. */
let decide: (container: string, type: EventType) => EventDecision;

needs(...RUNTIME_NEEDS, `containerd-${MAIN.containerd}`)('on a stream out of order', () => {
  beforeAll(async () => {
    containerd = await bed.containerd();
    pods = bed.pods(containerd);
    patient = await watch(PATIENT);
  });

  test('an event that a later one of its container overtook is out_of_order, and a kubelet ignores it', async () => {
    const held = hold(patient, 'STARTED');
    const pod = await pods.runToEnd();
    await passed(pod, ['CREATED', 'STOPPED', 'DELETED']);
    held.release();
    const late = await passed(pod, ['CREATED', 'STOPPED', 'DELETED', 'STARTED']);
    const [finding] = await expectFindings(pod, ['out_of_order STARTED']);
    expect(finding?.proof).toMatchObject({ after: 'DELETED', habitOfRuntime: false });
    expect(ignoredByKubelet(pod)).toEqual([late]);
  });

  test('an event that arrives long after its true time is late by exactly that, and a kubelet takes it', async () => {
    const held = hold(await watch({ ...PATIENT, lateAfter: '20s' }), 'STARTED');
    const pod = await pods.runPod({ name: 'late' });
    await passed(pod, ['CREATED']);
    const started = await startedAt(pod);
    await waitFor('it is late', () => Date.now() > started + 20_500 || undefined);
    held.release();
    await passed(pod, ['CREATED', 'STARTED']);
    await expectFindings(pod, ['late STARTED']);
    const [finding] = await bed.system.sql<{ lateness: number; occurred: number; received: number }>(
      `SELECT f.lateness_ms AS lateness, (extract(epoch FROM f.occurred_at) * 1000)::float8 AS occurred,
              (extract(epoch FROM e.received_at) * 1000)::float8 AS received
         FROM plegwatch.findings f
         JOIN plegwatch.container_events e USING (node, container_id, event_type) WHERE f.node = $1 AND f.container_id = $2`,
      node.name,
      idOf(pod),
    );
    expect(Math.abs((finding?.occurred ?? 0) - started)).toBeLessThan(BLUR);
    // Both are on the agent's monotonic clock, to the microsecond.
    expect(finding?.lateness).toBeCloseTo((finding?.received ?? 0) - (finding?.occurred ?? 0), 2);
    expect(ignoredByKubelet(pod)).toEqual([]);
    await pods.removePod(pod);
  });

  test('an event that arrives after a list has shown a later stage is stale, and a kubelet that relisted ignores it', async () => {
    const held = hold(await watch({ ...PATIENT, overdueAfter: '20s' }), 'CREATED', 'STARTED');
    const pod = await pods.runPod({ name: 'stale' });
    await waitFor('a list shows that it runs', async () => {
      const states = await node.changes(idOf(pod));
      return states.includes('running') || undefined;
    });
    const listed = Date.now();
    await waitFor('it is stale', () => Date.now() > listed + 20_500 || undefined);
    held.release();
    const [created] = await passedAll(pod, ['CREATED', 'STARTED']);
    await expectFindings(pod, ['stale CREATED']);
    expect(ignoredByKubelet(pod, listed)).toContainEqual(created);
    await pods.removePod(pod);
  });

  test('an event that arrives twice is a duplicate once, and a kubelet takes both', async () => {
    hold(patient);
    decide = (_, type) => (type === 'STOPPED' ? 'twice' : 'deliver');
    const pod = await pods.runToEnd();
    await passed(pod, ['CREATED', 'STARTED', 'STOPPED', 'STOPPED', 'DELETED']);
    await expectFindings(pod, ['duplicate STOPPED']);
    expect(ignoredByKubelet(pod)).toEqual([]);
  });

  test('events that are only held for a moment, in their order, are no finding', async () => {
    const held = hold(patient, ...EVENT_TYPES);
    const pod = await pods.runToEnd();
    held.release();
    await passed(pod, EVENT_TYPES);
    await expectFindings(pod, []);
    expect(ignoredByKubelet(pod)).toEqual([]);
  });
});

/** Starts a proxy and an agent whose stream is active. */
async function watch(settings: PlegwatchSettings): Promise<Watch> {
  nodes += 1;
  decide = () => 'deliver';
  const started = await bed.proxy(containerd, ({ containerId, containerEventType, podSandboxStatus }) => {
    const type = EVENT_TYPES[containerEventType] ?? 'CREATED';
    return containerId === podSandboxStatus?.id ? 'deliver' : decide(containerId, type);
  });
  const watching = await bed.watch(`disorder-${nodes}`, started.socket, settings);
  await watching.armed(pods);
  await watching.relisted();
  return { proxy: started, node: watching };
}

/** Makes the test about this agent, and holds these events of every container from now on. */
function hold(watched: Watch, ...held: EventType[]): { release(): void } {
  ({ proxy, node } = watched);
  const { promise, resolve } = Promise.withResolvers<void>();
  decide = (_, type) => (held.includes(type) ? { until: promise } : 'deliver');
  return { release: resolve };
}

const idOf = ({ containers }: DrivenPod): string => containers['app'] ?? '';

interface Passed {
  readonly type: EventType;
  readonly createdNs: bigint;
  readonly at: number;
}

const eventsAbout = (pod: DrivenPod): Passed[] =>
  proxy.delivered.flatMap(({ event, mono }) =>
    event.containerId === idOf(pod)
      ? [{ type: EVENT_TYPES[event.containerEventType] ?? 'CREATED', createdNs: event.createdAt, at: mono }]
      : [],
  );

/** Waits until the agent was given exactly these, and has stored them. */
async function passedAll(pod: DrivenPod, types: readonly EventType[]): Promise<Passed[]> {
  await waitFor(`${types} were passed on`, async () => {
    expect(eventsAbout(pod).map(({ type }) => type)).toEqual(types);
    const [row] = await bed.system.sql<{ n: number }>(
      'SELECT count(*)::int4 AS n FROM plegwatch.container_events WHERE node = $1 AND container_id = $2',
      node.name,
      idOf(pod),
    );
    return row?.n === types.length || undefined;
  });
  return eventsAbout(pod);
}

/** The last of them. */
async function passed(pod: DrivenPod, types: readonly EventType[]): Promise<Passed | undefined> {
  return (await passedAll(pod, types)).at(-1);
}

/** Expects exactly these accusations once all is stored, and returns them. A short life that lists missed accuses nobody. */
async function expectFindings(pod: DrivenPod, expected: readonly string[]): Promise<Accusation[]> {
  await node.relisted();
  await waitFor(
    'everything is stored',
    async () => (await metric(node.agent, 'plegwatch_unacked_records')) === 0 || undefined,
  );
  const found = await node.accusations(idOf(pod));
  expect(found.map(({ finding }) => finding.split(' ').slice(0, 2).join(' '))).toEqual(expected);
  return found;
}

/** When containerd itself says that it started, in milliseconds of the wall clock. */
async function startedAt(pod: DrivenPod): Promise<number> {
  const client = new CriClient(containerd.socket);
  try {
    const status = await client.containerStatus(idOf(pod), { timeoutMs: 30_000 });
    return Number(status?.startedAt) / 1e6;
  } finally {
    client.close();
  }
}

/** The events that the cache of a kubelet refuses which was given the same stream. `relisted`: when it had also relisted. */
function ignoredByKubelet(pod: DrivenPod, relisted?: number): Passed[] {
  let modified = relisted === undefined ? 0n : BigInt(relisted) * 1_000_000n;
  return eventsAbout(pod).filter(({ createdNs }) => {
    const ignored = createdNs < modified;
    if (!ignored) modified = createdNs;
    return ignored;
  });
}
