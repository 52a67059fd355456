/*
 * The conditions that a leader publishes on Nodes, from evidence in a real Postgres to a real API server, with exactly the rights that the publisher
 * and the removal declare.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { lead } from '../../src/controller/leader/leadership.ts';
import {
  applyConditions,
  CONDITIONS_MANAGER,
  PUBLISHING_RIGHTS,
  withdrawConditions,
} from '../../src/controller/nodeConditions/nodeStatus.ts';
import {
  type ConditionPublisher,
  startConditionPublisher,
} from '../../src/controller/nodeConditions/publisher.ts';
import { REMOVAL_RIGHTS, removeConditions } from '../../src/controller/nodeConditions/removal.ts';
import { withdrawProblems } from '../../src/controller/nodeConditions/unknown.ts';
import { NODE_RIGHTS, type NodeWatch, startNodeWatch } from '../../src/controller/nodes/nodeWatch.ts';
import { startReportWriter } from '../../src/controller/reports/writer.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { NODES } from '../../src/kube/object.ts';
import { nodeOf, PUBLISHED_TYPES, type PublishedCondition } from '../../src/kube/projection.ts';
import { CLUSTER } from '../support/batches.ts';
import { silent } from '../support/database.ts';
import { KubeBed } from '../support/kubeBed.ts';
import { needs } from '../support/needs.ts';
import { conditionsOf, installPlegReports } from '../support/plegreports.ts';
import { passes, waitFor } from '../support/waitFor.ts';

const bed = new KubeBed();
const { signal } = new AbortController();
let nodes: NodeWatch;
let counted: Record<string, number> = {};
const running: { stop(): Promise<void> }[] = [];

needs(
  'kube-apiserver',
  'etcd',
  'kubectl',
  'postgres',
)('conditions published on a Node', () => {
  beforeAll(async () => {
    await installPlegReports(bed.admin);
    await bed.grant(PUBLISHING_RIGHTS);
    nodes = startNodeWatch({ kube: bed.admin, log: silent, backoff: { firstMs: 20, maxMs: 200 } });
  });
  afterEach(async () => {
    for (const program of running.splice(0).reverse()) await program.stop();
  });
  afterAll(() => nodes?.stop());

  test('follow its report, beside those of others, and change their transition time only with their status', async () => {
    const id = await addNode('follows');
    await statusOf('follows', { type: 'Ready', status: 'True', reason: 'KubeletReady' });
    await bed.evidence.state(id, { mode: 'Evented' });
    await bed.evidence.minutes(id, 60);
    await bed.evidence.due(id);
    start();
    const well = await published('follows', 'False,False,False');
    await bed.evidence.state(id, { mode: 'Fallback', modeReason: 'StreamBroke' });
    await bed.evidence.due(id);
    const fell = await published('follows', 'True,False,False');
    expect(fell[0]).toMatchObject({
      type: 'PLEGKubeletFallback',
      reason: 'FellBack',
      message: expect.stringContaining('until it restarts'),
    });
    expect(fell[1]?.lastTransitionTime).toBe(well[1]?.lastTransitionTime);
    await bed.evidence.state(id, {
      mode: 'Evented',
      relistReason: 'the runtime has not answered a list for 30 s',
    });
    await bed.evidence.due(id);
    const hangs = await published('follows', 'False,True,False');
    expect(hangs[1]?.message).toBe('the runtime has not answered a list for 30 s');
    expect(conditionsOf(await bed.admin.get(NODES, 'follows'))).toEqual(
      new Map([
        ['Ready', 'True'],
        ['PLEGKubeletFallback', 'False'],
        ['PLEGListsFailing', 'True'],
        ['PLEGEvidenceIncomplete', 'False'],
      ]),
    );
    expect(await managersOf('follows')).toContain(CONDITIONS_MANAGER.name);
    expect(await bed.kubectl('describe', 'node', 'follows')).toMatch(/PLEGListsFailing +True/);
  });

  test('conditions of a report that was built before are published by a new leader, and written again by none', async () => {
    await bed.evidence.state(await addNode('before'), { mode: 'Fallback' });
    await buildReports('before');
    start({ withReports: false });
    await published('before', 'True,False,Unknown');
    await running.pop()?.stop();
    const version = await versionOf('before');
    await addNode('after');
    await buildReports('after');
    start({ withReports: false });
    await published('after', 'Unknown,False,Unknown');
    await passes(() => expect(counted).toEqual({ written: 1 }));
    expect(await versionOf('before')).toBe(version);
  });

  test('are left to another manager of the same type, which keeps them without a fight', async () => {
    await bed.evidence.state(await addNode('taken'), { mode: 'Fallback' });
    await applyAs('someone', 'taken', [
      { type: 'PLEGKubeletFallback', status: 'False', reason: 'Mine', message: '' },
    ]);
    const version = await versionOf('taken');
    await buildReports('taken');
    start();
    await waitFor('the conflict', () => counted['conflict'] === 1);
    await bed.evidence.due(await addNode('untaken'));
    await published('untaken', 'Unknown,False,Unknown');
    expect(counted['conflict']).toBe(1);
    expect(await versionOf('taken')).toBe(version);
    expect(await managersOf('taken')).not.toContain(CONDITIONS_MANAGER.name);
    // The publishers of other tests would meet the conflict too.
    await bed.admin.delete(NODES, 'taken');
    await waitFor('it is gone', () => nodes.get('taken') === undefined);
  });

  test('are withdrawn from a Node where somebody changed one, so that none is out of date or fought over', async () => {
    const id = await addNode('edited');
    start();
    await bed.evidence.due(id);
    await published('edited', 'Unknown,False,Unknown');
    await statusOf('edited', {
      type: 'PLEGListsFailing',
      status: 'True',
      reason: 'Mine',
      message: 'by hand',
    });
    await waitFor('the conflict', () => counted['conflict'] === 1);
    await waitFor('ours are withdrawn', async () => {
      const conditions = conditionsOf(await bed.admin.get(NODES, 'edited'));
      return conditions.size === 0;
    });
    await bed.evidence.due(await addNode('unedited'));
    await published('unedited', 'Unknown,False,Unknown');
    expect(conditionsOf(await bed.admin.get(NODES, 'edited')).size).toBe(0);
    expect(counted['conflict']).toBe(1);
  });

  test('are never those of an earlier machine of its name', async () => {
    await addNode('replaced');
    const conditions = PUBLISHED_TYPES.map(conditionOfType);
    const uid = nodes.get('replaced')?.uid ?? '';
    await bed.admin.delete(NODES, 'replaced');
    const gone = { name: 'replaced', uid };
    await expect(applyConditions(bed.controller, gone, conditions, signal)).rejects.toMatchObject({
      code: 404,
    });
    expect(await withdrawConditions(bed.controller, gone, signal)).toBe(false);
    await bed.admin.apply(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'replaced' } });
    await expect(applyConditions(bed.controller, gone, conditions, signal)).rejects.toMatchObject({
      name: 'KubeStatusError',
      code: expect.toSatisfy((code) => code === 409 || code === 422),
    });
    expect(await withdrawConditions(bed.controller, gone, signal)).toBe(false);
    expect(conditionsOf(await bed.admin.get(NODES, 'replaced')).size).toBe(0);
  });

  test('are published once the API server is back from an outage, or lets the controller write', async () => {
    const id = await addNode('outage');
    await bed.evidence.state(id, { mode: 'Fallback' });
    await buildReports('outage');
    await bed.revoke();
    start({ withReports: false });
    await bed.server.kill();
    await bed.server.restart();
    await waitFor('the API server answers', () => bed.admin.get(NODES, 'outage').catch(() => undefined));
    expect(conditionsOf(await bed.admin.get(NODES, 'outage')).size).toBe(0);
    await bed.grant(PUBLISHING_RIGHTS);
    await published('outage', 'True,False,Unknown');
  });

  test('turn from a problem into Unknown while no controller can work, and back when one leads again', async () => {
    const id = await addNode('unconfirmed');
    await bed.evidence.state(id, { mode: 'Fallback' });
    await buildReports('unconfirmed');
    start({ withReports: false });
    await published('unconfirmed', 'True,False,Unknown');
    for (const program of running.splice(0).reverse()) await program.stop();
    await addNode('others');
    await applyAs('someone', 'others', [
      { type: 'PLEGListsFailing', status: 'True', reason: 'Mine', message: '' },
    ]);
    await bed.grant([...NODE_RIGHTS, ...PUBLISHING_RIGHTS]);
    expect(await withdrawProblems(bed.controller, () => new Date(), signal)).toBeGreaterThanOrEqual(1);
    const [fallback] = await published('unconfirmed', 'Unknown,False,Unknown');
    expect(fallback).toMatchObject({ reason: 'ControllerFails' });
    expect(conditionsOf(await bed.admin.get(NODES, 'others')).get('PLEGListsFailing')).toBe('True');
    expect(await withdrawProblems(bed.controller, () => new Date(), signal)).toBe(0);
    await bed.grant(PUBLISHING_RIGHTS);
    await bed.admin.delete(NODES, 'others');
    start({ withReports: false });
    await published('unconfirmed', 'True,False,Unknown');
  });

  test('are written by no controller that has lost its Lease', async () => {
    await bed.evidence.state(await addNode('deposed'), { mode: 'Fallback' });
    await buildReports('deposed');
    let holds = false;
    const stopping = new AbortController();
    let refused = 0;
    const log = Object.assign(Object.create(silent), { warn: () => void refused++ });
    const led = lead(
      {
        ...{ store: bed.store, kube: bed.controller, cluster: CLUSTER, log: silent, pauseMs: 50 },
        onContested: () => undefined,
        start: (store, kube) => {
          const publisher = publisherOf(kube, { store, log });
          return () => publisher.stop();
        },
      },
      stopping.signal,
      () => holds,
    );
    running.push({
      async stop() {
        stopping.abort();
        await led;
      },
    });
    await waitFor('its writes are refused', () => refused >= 2);
    expect(conditionsOf(await bed.admin.get(NODES, 'deposed')).size).toBe(0);
    holds = true;
    await published('deposed', 'True,False,Unknown');
  });

  test('show the texts of a hostile node as escapes, cut to 256 characters', async () => {
    const id = await addNode('hostile');
    start();
    await bed.evidence.state(id, { relistReason: `\u001b[2J\u202e${'🚀'.repeat(4_000)}` });
    await bed.evidence.due(id);
    const [, hostile] = await published('hostile', 'Unknown,True,Unknown');
    expect(hostile?.message).toMatch(/^\\u001b\[2J\\u202e🚀+…$/u);
    expect([...(hostile?.message ?? '')]).toHaveLength(256);
  });

  test('are removed from all Nodes, and only those that plegwatch published', async () => {
    for (const name of ['removed-1', 'removed-2']) await addNode(name);
    await applyAs('someone', 'removed-2', [
      { type: 'SomeonesCondition', status: 'True', reason: 'Mine', message: '' },
    ]);
    await addNode('removed-3');
    await applyAs('someone', 'removed-3', [
      { type: 'PLEGListsFailing', status: 'True', reason: 'Mine', message: '' },
    ]);
    await buildReports('removed-1', 'removed-2');
    start({ withReports: false });
    for (const name of ['removed-1', 'removed-2']) await published(name, 'Unknown,False,Unknown');
    for (const program of running.splice(0).reverse()) await program.stop();
    await bed.grant(REMOVAL_RIGHTS);
    const options = { kube: bed.controller, log: silent, signal, settleMs: 10 };
    expect(await removeConditions(options)).toBeGreaterThanOrEqual(2);
    expect(conditionsOf(await bed.admin.get(NODES, 'removed-1')).size).toBe(0);
    expect([...conditionsOf(await bed.admin.get(NODES, 'removed-2')).keys()]).toEqual(['SomeonesCondition']);
    expect([...conditionsOf(await bed.admin.get(NODES, 'removed-3')).keys()]).toEqual(['PLEGListsFailing']);
    for (const { metadata } of (await bed.admin.list(NODES)).items)
      expect(await managersOf(metadata.name)).not.toContain(CONDITIONS_MANAGER.name);
    expect(await removeConditions(options)).toBe(0);
    await bed.grant(PUBLISHING_RIGHTS);
  });
});

const conditionOfType = (type: PublishedCondition['type']): PublishedCondition => ({
  ...{ type, status: 'True', reason: 'Tested', message: '' },
  ...{ lastTransitionTime: '2026-11-20T12:00:00Z', lastHeartbeatTime: '2026-11-20T12:00:00Z' },
});

/** The store has it first: a report writer adds Nodes that are not stored. */
async function addNode(name: string): Promise<number> {
  const id = await bed.evidence.node(name);
  await bed.evidence.runsUntil(id, 86_400);
  await bed.admin.apply(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  await waitFor('the Node is watched', () => nodes.get(name) !== undefined);
  return id;
}

/** As somebody who is no plegwatch patches it, such as a kubelet. */
const statusOf = (name: string, condition: object): Promise<string> =>
  bed.kubectl(
    ...['patch', 'node', name, '--subresource=status', '--type=strategic'],
    ...['-p', JSON.stringify({ status: { conditions: [condition] } })],
  );

const applyAs = (manager: string, name: string, conditions: readonly object[]) =>
  bed.admin.applyStatus(
    NODES,
    { apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { conditions } },
    signal,
    { name: manager, takesOver: false },
  );

async function published(name: string, statuses: string): Promise<readonly PublishedCondition[]> {
  let last = '';
  try {
    return await waitFor(`${statuses} on ${name}`, async () => {
      const object = await bed.admin.get(NODES, name);
      const found = object === undefined ? [] : nodeOf(object, { reported: [], stored: [] }).node.published;
      last = found.map(({ status }) => status).join();
      return last === statuses ? found : undefined;
    });
  } catch (error) {
    throw new Error(`${name} has ${last} instead of ${statuses}; results ${JSON.stringify(counted)}`, {
      cause: error,
    });
  }
}

const versionOf = async (name: string) => (await bed.admin.get(NODES, name))?.metadata.resourceVersion;

async function managersOf(name: string): Promise<string> {
  return bed.kubectl(
    'get',
    'node',
    name,
    '--show-managed-fields',
    '-o',
    'jsonpath={.metadata.managedFields[*].manager}',
  );
}

function publisherOf(
  kube: KubeClient,
  { store = bed.store, log = silent }: { store?: typeof bed.store; log?: typeof silent } = {},
): ConditionPublisher {
  const counts: Record<string, number> = {};
  counted = counts;
  return startConditionPublisher({
    ...{ store, kube, nodes, cluster: CLUSTER, log },
    onResult: (result) => {
      counts[result] = (counts[result] ?? 0) + 1;
    },
    pace: { pollMs: 50, settleMs: 0, backoff: { firstMs: 20, maxMs: 200 } },
  });
}

/** Starts a publisher with the controller's rights, and the report writer that it follows. */
function start({ withReports = true } = {}): void {
  const publisher = publisherOf(bed.controller);
  running.push(publisher);
  if (withReports) running.push(startReports(publisher));
}

function startReports(publisher: { note(...report: Parameters<ConditionPublisher['note']>): unknown }): {
  stop(): Promise<void>;
} {
  return startReportWriter({
    ...{ store: bed.store, kube: bed.admin, nodes, cluster: CLUSTER, log: silent },
    onResult: () => undefined,
    onBuilt: (name, { uid }, conditions) => publisher.note(name, uid, conditions),
    pace: {
      ...{ pollMs: 25, minIntervalMs: 0, staleCheckMs: 200, firstAgentMs: 50 },
      backoff: { firstMs: 50, maxMs: 500 },
    },
  });
}

/** Lets the reports of these Nodes be built and stored, with no publisher that hears of them. */
async function buildReports(...names: readonly string[]): Promise<void> {
  const built = new Set<string>();
  const writer = startReports({ note: (name) => built.add(name) });
  try {
    await waitFor('the reports are built', () => names.every((name) => built.has(name)));
  } finally {
    await writer.stop();
  }
}
