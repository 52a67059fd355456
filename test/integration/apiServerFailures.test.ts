/*
 * A failing API server: a proxy in front of a real one injects faults. The controller misses nothing that the server still knows, does not
 * crash, and sends no more requests than its backoff allows.
 *
 *   attempt   one request of a watch, a list or a write that meets a fault
 *   bound     the number of attempts is compared with the time they took: each wait is at least half of its step, so a slow
 *             machine makes fewer attempts
 */
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type ConditionRecorder,
  startConditionRecorder,
} from '../../src/controller/nodes/conditionRecorder.ts';
import { type NodeWatch, startNodeWatch } from '../../src/controller/nodes/nodeWatch.ts';
import { PLEG_HISTORY } from '../../src/controller/nodes/plegHistory.ts';
import { startReportWriter } from '../../src/controller/reports/writer.ts';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { NODES, PLEG_REPORTS } from '../../src/kube/object.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { ApiFront, type FaultChoice, type ProxiedRequest } from '../support/apiFront.ts';
import { needs } from '../support/needs.ts';
import { EvidenceFixture } from '../support/storedRecords.ts';
import { answerOf, CLUSTER, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const log = pino({ level: 'silent' });
const BACKOFF = { firstMs: 20, maxMs: 1_000 };
/** The default of src/kube/listWatch.ts. */
const DEFAULT_BACKOFF = { firstMs: 1_000, maxMs: 30_000 };
const MAX_CONCURRENT_WRITES = 4;
/** How long a report is deferred after a server error: src/controller/reports/writer.ts. */
const FAILED_WAIT_MS = 5_000;

let system: System;
let front: ApiFront;
let ours: KubeClient;
let store: Store;
let evidence: EvidenceFixture;
let nodes: NodeWatch;
let missed = 0;
const running: { stop(): Promise<void> }[] = [];

needs(
  'kube-apiserver',
  'etcd',
  'kubectl',
  'redis-server',
  'postgres',
)('a failing API server', () => {
  beforeAll(async () => {
    system = await System.start({ kube: true });
    front = await ApiFront.start(system.api);
    ours = await createKubeClient({ kubeconfig: front.kubeconfig });
    store = await openStore({ databaseUrl: system.postgres.url, log });
    evidence = new EvidenceFixture(store, await store.ensureCluster(CLUSTER));
  });
  afterEach(async () => {
    front.injectNothing();
    for (const program of running.splice(0).reverse()) await program.stop();
  });
  afterAll(async () => {
    ours?.close();
    await store?.close();
    await front?.stop();
    await system?.stop();
  });

  describe('does not make the controller miss a transition of a Node', () => {
    test.each<[string, FaultChoice, { least?: number; steady?: boolean }]>([
      ['answers 429', () => ({ is: 'status', status: 429 }), {}],
      ['answers 500', () => ({ is: 'status', status: 500 }), {}],
      ['answers 503', () => ({ is: 'status', status: 503 }), {}],
      ['breaks every connection', () => ({ is: 'reset' }), {}],
      ['does not respond', () => ({ is: 'hang' }), { least: 2 }],
      ['ends every watch at once', onWatches({ is: 'events', max: 0 }), {}],
      // Each of these watches delivers something, so the backoff stays at its first step.
      ['ends every watch after a bookmark', onWatches({ is: 'bookmark' }), { least: 20, steady: true }],
      ['ends every watch after one event', onWatches({ is: 'events', max: 1 }), { least: 3, steady: true }],
    ])('when it %s', async (title, faults, { least = 6, steady = false }) => {
      const node = await addWatched(title);
      front.inject(faults);
      const began = performance.now();
      await flips(node);
      const attempted = await attempts(least, isListOrWatch);
      expect(attempted).toBeLessThanOrEqual(
        maxAttempts(steady ? { ...BACKOFF, maxMs: BACKOFF.firstMs } : BACKOFF, began),
      );
      front.injectNothing();
      await expectAllFlips(node);
    });

    test('when it sends Retry-After: 1, which the controller obeys', async () => {
      const node = await addWatched('retry-after');
      front.inject(() => ({ is: 'status', status: 429, retryAfter: 1 }));
      const began = performance.now();
      await flips(node);
      const attempted = await attempts(3, isListOrWatch);
      expect(attempted).toBeLessThanOrEqual(1 + Math.floor((performance.now() - began) / 1_000));
      front.injectNothing();
      await expectAllFlips(node);
    });

    test('when it is killed and restarted', async () => {
      const node = await addWatched('killed');
      await flips(node);
      // A restarted server knows no changes of before, only what they came to.
      await waitFor(
        'the last change is known',
        () => nodes.get(node)?.ready?.transitionAt === (MIDNIGHT + FLIPS[2][1] * 1_000) * 1_000,
      );
      front.inject(() => null);
      const began = performance.now();
      await system.api.kill();
      const attempted = await attempts(6, isListOrWatch);
      expect(attempted).toBeLessThanOrEqual(maxAttempts(BACKOFF, began));
      await system.api.restart();
      await expectAllFlips(node);
    });

    test('when every version is too old: each list is compared with the previous one', async () => {
      const node = await addWatched('too-old');
      front.inject(onWatches({ is: 'status', status: 410 }));
      const began = performance.now();
      for (const [at, [status, seconds]] of FLIPS.entries()) {
        await ready(node, status, seconds);
        await waitFor('the row is stored', async () => (await rows(node)).length === at + 1);
      }
      const watches = await attempts(6, ({ call }) => call === 'watch');
      expect(watches).toBeLessThanOrEqual(maxAttempts(BACKOFF, began));
      // One list for each failed watch, and no others.
      expect(count(({ call }) => call === 'list')).toBeLessThanOrEqual(
        count(({ call }) => call === 'watch') + 1,
      );
    });

    test('when its watches deliver nothing: the next list shows the change, and it is counted', async () => {
      const node = await addWatched('mute', 300);
      const missedBefore = missed;
      front.inject(onWatches({ is: 'headers' }));
      await ready(node, 'False', 10);
      await waitFor('the row is stored', async () => (await rows(node)).length === 1);
      expect(missed).toBeGreaterThan(missedBefore);
    });
  });

  test('a watch that delivers everything has missed nothing, however often the Nodes are listed', async () => {
    const node = await addWatched('delivered', 1_000);
    const missedBefore = missed;
    front.inject(() => null);
    await flips(node);
    await attempts(5, ({ call }) => call === 'list');
    expect(missed).toBe(missedBefore);
    await expectAllFlips(node);
  });

  describe('does not make the controller lose a report', () => {
    test.each<[string, FaultChoice, number]>([
      ['answers 429 to writes', onWrites({ is: 'status', status: 429 }), 6],
      ['answers 500 to writes', onWrites({ is: 'status', status: 500 }), 6],
      ['breaks the connection of every write', onWrites({ is: 'reset' }), 6],
      ['answers 500 to everything', () => ({ is: 'status', status: 500 }), 0],
    ])('when it %s', async (title, faults, least) => {
      const names = Array.from({ length: 6 }, (_, n) => `${slug(title)}-${n}`);
      const ids = await Promise.all(names.map((name) => evidence.node(name)));
      for (const name of names) await system.addNode(name);
      startWatch();
      startWriter();
      await waitFor('all reports exist', () => modes(names, 'Unknown'));
      front.inject(faults);
      const began = performance.now();
      for (const id of ids) await evidence.state(id, { mode: 'Fallback', modeReason: 'StreamBroke' });
      for (const id of ids) await evidence.due(id);
      if (least > 0) await attempts(least * MAX_CONCURRENT_WRITES, ({ call }) => call === 'write');
      const failed = await attempts(6, ({ resource }) => resource === 'plegreports');
      expect(failed).toBeGreaterThan(0);
      expect(count(({ call }) => call === 'write')).toBeLessThanOrEqual(
        MAX_CONCURRENT_WRITES * maxAttempts(BACKOFF, began),
      );
      // After a failed pass, the reports are listed again.
      expect(
        count(({ call, resource }) => call === 'list' && resource === 'plegreports'),
      ).toBeLessThanOrEqual(maxAttempts(BACKOFF, began));
      front.injectNothing();
      await waitFor('all reports are updated', () => modes(names, 'Fallback'));
    });

    test('when it fails for one report, and writes the others first', async () => {
      const names = Array.from({ length: 40 }, (_, n) => `crowd-${n}`);
      const ids = await Promise.all(names.map((name) => evidence.node(name)));
      for (const name of names) await system.addNode(name);
      const isPoisoned = ({ call, name }: ProxiedRequest) => call === 'write' && name === names[0];
      front.inject((request) => (isPoisoned(request) ? { is: 'status', status: 500 } : null));
      const began = performance.now();
      for (const id of ids) await evidence.due(id);
      startWatch();
      startWriter();
      await waitFor('the other reports exist', () => modes(names.slice(1), 'Unknown'));
      const attempted = count(isPoisoned);
      expect(attempted).toBeGreaterThan(0);
      // A change of its Node makes the report due again at once.
      expect(attempted).toBeLessThanOrEqual(3 + Math.floor((performance.now() - began) / FAILED_WAIT_MS));
      front.injectNothing();
      await waitFor('the report exists', () => modes(names, 'Unknown'));
    });
  });

  test('does not end the controller program, which sends no more requests than its backoff allows and recovers', async () => {
    await system.addNode('program');
    front.inject(() => ({ is: 'status', status: 500 }));
    const began = performance.now();
    const controller = await system.controller({ kubeconfig: front.kubeconfig });
    const attempted = await attempts(4, isListOrWatch);
    expect(attempted).toBeLessThanOrEqual(maxAttempts(DEFAULT_BACKOFF, began));
    // The identity of the cluster is read at the start, and again every minute.
    const others = front.requests.filter((request) => !isListOrWatch(request));
    expect(others.every(({ resource }) => resource === 'namespaces')).toBe(true);
    expect(others.length).toBeLessThanOrEqual(1 + (performance.now() - began) / 60_000);
    expect(controller.running()).toBe(true);
    expect((await answerOf(controller, '/livez'))?.status).toBe(200);
    front.injectNothing();
    await ready('program', 'False', 10);
    await waitFor('the row is stored', async () => (await rows('program')).length === 1);
    await controller.stop();
  });
});

const isListOrWatch = ({ call, resource }: ProxiedRequest): boolean =>
  resource === 'nodes' && (call === 'list' || call === 'watch');

function onWatches(fault: ReturnType<FaultChoice>): FaultChoice {
  return ({ call }) => (call === 'watch' ? fault : null);
}

function onWrites(fault: ReturnType<FaultChoice>): FaultChoice {
  return ({ call }) => (call === 'write' ? fault : null);
}

const count = (which: (request: ProxiedRequest) => boolean): number => front.requests.filter(which).length;

/** Waits for at least this many attempts, and returns their number. */
const attempts = (least: number, which: (request: ProxiedRequest) => boolean): Promise<number> =>
  waitFor(`${least} attempts`, () => (count(which) >= least ? count(which) : undefined));

/** The maximum number of attempts since then: one at once, and one after each wait of at least half of its step. */
function maxAttempts({ firstMs, maxMs }: { firstMs: number; maxMs: number }, since: number): number {
  // A timer may fire a millisecond early.
  let left = performance.now() - since;
  let max = 1;
  for (let step = firstMs; left > 0; step = Math.min(maxMs, step * 2), max += 1) left -= step / 2 - 1;
  return max;
}

const slug = (title: string): string => title.replaceAll(/[^a-z0-9]+/gi, '-').toLowerCase();

function startWatch(relistMs = 3_600_000): void {
  nodes = startNodeWatch({
    kube: ours,
    log,
    backoff: BACKOFF,
    relistMs,
    onMissed: () => {
      missed += 1;
    },
  });
  running.push(nodes);
}

function startWriter(): void {
  const writer = startReportWriter({
    store,
    kube: ours,
    nodes,
    cluster: CLUSTER,
    log,
    onResult: () => undefined,
    pace: { pollMs: 25, minIntervalMs: 0, staleCheckMs: 200, backoff: BACKOFF },
  });
  running.push(writer);
}

/** Adds a healthy Node, and waits until the watch knows it. */
async function addWatched(title: string, relistMs?: number): Promise<string> {
  const node = slug(title);
  await system.addNode(node);
  await ready(node, 'True', 0);
  startWatch(relistMs);
  const recorder: ConditionRecorder = startConditionRecorder({
    history: PLEG_HISTORY,
    store,
    cluster: CLUSTER,
    nodes,
    log,
  });
  running.push(recorder);
  await waitFor('the Node is known', () => nodes.get(node)?.ready?.status === 'True');
  return node;
}

const FLIPS = [
  ['False', 10],
  ['True', 130],
  ['False', 200],
] as const;

async function flips(node: string): Promise<void> {
  for (const [status, seconds] of FLIPS) await ready(node, status, seconds);
}

async function expectAllFlips(node: string): Promise<void> {
  await ready(node, 'True', 300);
  const wanted = [...FLIPS, ['True', 300]].map(([status, seconds]) => `${status} ${seconds}`);
  await waitFor(`all of ${wanted}`, async () => {
    const stored = await rows(node);
    if (stored.join() !== wanted.join()) throw new Error(stored.join());
    return true;
  });
}

/** Today's start: conditions have whole seconds. */
const MIDNIGHT = Math.floor(Date.now() / 86_400_000) * 86_400_000;
const rfc3339 = (seconds: number): string =>
  new Date(MIDNIGHT + seconds * 1000).toISOString().replace('.000', '');

/** Writes the Ready condition as a kubelet does, not through the proxy. The transition happened `seconds` after midnight. */
async function ready(name: string, status: 'True' | 'False', seconds: number): Promise<void> {
  const isReady = status === 'True';
  const condition = {
    type: 'Ready',
    status,
    reason: isReady ? 'KubeletReady' : 'KubeletNotReady',
    message: isReady
      ? 'kubelet is posting ready status'
      : 'PLEG is not healthy: pleg was last seen active 3m5.2s ago; threshold is 3m0s',
    lastTransitionTime: rfc3339(seconds),
    lastHeartbeatTime: rfc3339(seconds + 5),
  };
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { conditions: [condition] } };
  await waitFor('the API server accepts the condition', () => system.kube.applyStatus(NODES, node));
}

/** The recorded transitions, such as `False 10`: the status, and seconds after midnight. */
async function rows(node: string): Promise<string[]> {
  const found = await system.sql<{ status: string; seconds: number }>(
    `SELECT status, extract(epoch FROM at - to_timestamp($2))::int AS seconds
       FROM plegwatch.node_conditions WHERE node = $1 ORDER BY at`,
    node,
    MIDNIGHT / 1000,
  );
  return found.map(({ status, seconds }) => `${status} ${seconds}`);
}

/** Whether all these reports in the API server have this mode. */
async function modes(names: readonly string[], mode: string): Promise<boolean> {
  const reports = await Promise.all(names.map((name) => system.kube.get(PLEG_REPORTS, name)));
  return reports.every(
    (report) => Reflect.get(Object(Reflect.get(Object(report), 'status')), 'mode') === mode,
  );
}
