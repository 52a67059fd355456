/*
 * An API server in trouble: what it answers, or does not, is made up in front of a real one. Nothing is missed that it still
 * knows, nothing crashes, and no more is asked than the backoff allows.
 *
 *   try    one request of a watch, a list or a write that meets the trouble
 *   bound  tries are counted against the time that they took: each waits for half of its step at least, so a slow machine
 *          only makes less of them
 */
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createKubeClient, type KubeClient } from '../../src/controller/kube/client.ts';
import { type NodeWatch, startNodeWatch } from '../../src/controller/kube/nodes.ts';
import { NODES, PLEG_REPORTS } from '../../src/controller/kube/object.ts';
import {
  type ConditionRecorder,
  startConditionRecorder,
} from '../../src/controller/nodeConditions/recorder.ts';
import { type Reporter, startReporter } from '../../src/controller/reports/writer.ts';
import { openStore, type Store } from '../../src/controller/store/store.ts';
import { ApiFront, type Asked, type Troubles } from '../support/apiFront.ts';
import { needs } from '../support/needs.ts';
import { Evidence } from '../support/storedRecords.ts';
import { CLUSTER, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const log = pino({ level: 'silent' });
const BACKOFF = { firstMs: 20, maxMs: 1_000 };
/** What a controller has where nobody says otherwise: src/controller/kube/listWatch.ts. */
const DEFAULT_BACKOFF = { firstMs: 1_000, maxMs: 30_000 };
const AT_ONCE = 4;
/** How long a report waits over which the API server failed: src/controller/reports/writer.ts. */
const FAILED_WAIT_MS = 5_000;

let system: System;
let front: ApiFront;
let ours: KubeClient;
let store: Store;
let evidence: Evidence;
let nodes: NodeWatch;
let missed = 0;
const running: { stop(): Promise<void> }[] = [];

needs(
  'kube-apiserver',
  'etcd',
  'kubectl',
  'redis-server',
  'postgres',
)('an API server in trouble', () => {
  beforeAll(async () => {
    system = await System.start({ kube: true });
    front = await ApiFront.start(system.api);
    ours = await createKubeClient({ kubeconfig: front.kubeconfig });
    store = await openStore({ databaseUrl: system.postgres.url, log });
    evidence = new Evidence(store, await store.clusterId(CLUSTER));
  });
  afterEach(async () => {
    front.noTrouble();
    for (const part of running.splice(0).reverse()) await part.stop();
  });
  afterAll(async () => {
    ours?.close();
    await store?.close();
    await front?.stop();
    await system?.stop();
  });

  describe('costs no transition of a Node', () => {
    test.each<[string, Troubles, { least?: number; steady?: boolean }]>([
      ['answers 429', () => ({ is: 'answer', status: 429 }), {}],
      ['answers 500', () => ({ is: 'answer', status: 500 }), {}],
      ['answers 503', () => ({ is: 'answer', status: 503 }), {}],
      ['breaks every connection', () => ({ is: 'reset' }), {}],
      ['answers nothing', () => ({ is: 'hang' }), { least: 2 }],
      ['ends every watch at once', onWatches({ is: 'events', most: 0 }), {}],
      // Each of these watches gets on, so each waits only for the first step.
      ['ends every watch after a bookmark', onWatches({ is: 'bookmark' }), { least: 20, steady: true }],
      ['ends every watch after one event', onWatches({ is: 'events', most: 1 }), { least: 3, steady: true }],
    ])('when it %s', async (title, troubles, { least = 6, steady = false }) => {
      const node = await watched(title);
      front.trouble(troubles);
      const began = performance.now();
      await flips(node);
      const tried = await tries(least, isOurs);
      expect(tried).toBeLessThanOrEqual(
        mostTries(steady ? { ...BACKOFF, maxMs: BACKOFF.firstMs } : BACKOFF, began),
      );
      front.noTrouble();
      await allFlipsAreTold(node);
    });

    test('when it asks us to come back after a second, which we do', async () => {
      const node = await watched('retry-after');
      front.trouble(() => ({ is: 'answer', status: 429, retryAfter: 1 }));
      const began = performance.now();
      await flips(node);
      const tried = await tries(3, isOurs);
      expect(tried).toBeLessThanOrEqual(1 + Math.floor((performance.now() - began) / 1_000));
      front.noTrouble();
      await allFlipsAreTold(node);
    });

    test('when it is killed and started again', async () => {
      const node = await watched('killed');
      await flips(node);
      front.trouble(() => null);
      const began = performance.now();
      await system.api.kill();
      const tried = await tries(6, isOurs);
      expect(tried).toBeLessThanOrEqual(mostTries(BACKOFF, began));
      await system.api.restart();
      await allFlipsAreTold(node);
    });

    test('when it calls every version too old: each list is held against the one before', async () => {
      const node = await watched('too-old');
      front.trouble(onWatches({ is: 'answer', status: 410 }));
      const began = performance.now();
      for (const [at, [status, seconds]] of FLIPS.entries()) {
        await ready(node, status, seconds);
        await waitFor('its row', async () => (await rows(node)).length === at + 1 || undefined);
      }
      const watches = await tries(6, ({ call }) => call === 'watch');
      expect(watches).toBeLessThanOrEqual(mostTries(BACKOFF, began));
      // One list for each watch that failed, and none of its own accord.
      expect(count(({ call }) => call === 'list')).toBeLessThanOrEqual(
        count(({ call }) => call === 'watch') + 1,
      );
    });

    test('when its watches say nothing: the second witness tells, and counts what they did not', async () => {
      const node = await watched('mute', 300);
      const before = missed;
      front.trouble(onWatches({ is: 'mute' }));
      await ready(node, 'False', 10);
      await waitFor('its row', async () => (await rows(node)).length === 1 || undefined);
      expect(missed).toBeGreaterThan(before);
    });
  });

  describe('costs no report', () => {
    test.each<[string, Troubles, number]>([
      ['answers 429 to writes', onWrites({ is: 'answer', status: 429 }), 6],
      ['answers 500 to writes', onWrites({ is: 'answer', status: 500 }), 6],
      ['breaks the connection of every write', onWrites({ is: 'reset' }), 6],
      ['answers 500 to everything', () => ({ is: 'answer', status: 500 }), 0],
    ])('when it %s', async (title, troubles, least) => {
      const names = Array.from({ length: 6 }, (_, n) => `${slug(title)}-${n}`);
      const ids = await Promise.all(names.map((name) => evidence.node(name)));
      for (const name of names) await system.addNode(name);
      startWatch();
      startWriter();
      await waitFor('all are there', async () => (await modes(names, 'Unknown')) || undefined);
      front.trouble(troubles);
      const began = performance.now();
      for (const id of ids) await evidence.state(id, { mode: 'Fallback', modeReason: 'StreamBroke' });
      for (const id of ids) await evidence.due(id);
      if (least > 0) await tries(least * AT_ONCE, ({ call }) => call === 'write');
      const failed = await tries(6, ({ resource }) => resource === 'plegreports');
      expect(failed).toBeGreaterThan(0);
      expect(count(({ call }) => call === 'write')).toBeLessThanOrEqual(AT_ONCE * mostTries(BACKOFF, began));
      // What others did meanwhile is looked at once for each round that failed.
      expect(
        count(({ call, resource }) => call === 'list' && resource === 'plegreports'),
      ).toBeLessThanOrEqual(mostTries(BACKOFF, began));
      front.noTrouble();
      await waitFor('all are written', async () => (await modes(names, 'Fallback')) || undefined);
    });

    test('but the one it fails over, which lets the others go first', async () => {
      const names = Array.from({ length: 40 }, (_, n) => `crowd-${n}`);
      const ids = await Promise.all(names.map((name) => evidence.node(name)));
      for (const name of names) await system.addNode(name);
      const poisoned = ({ call, name }: Asked) => call === 'write' && name === names[0];
      front.trouble((asked) => (poisoned(asked) ? { is: 'answer', status: 500 } : null));
      const began = performance.now();
      for (const id of ids) await evidence.due(id);
      startWatch();
      startWriter();
      await waitFor(
        'the others are there',
        async () => (await modes(names.slice(1), 'Unknown')) || undefined,
      );
      const tried = count(poisoned);
      expect(tried).toBeGreaterThan(0);
      // What is told of its Node meanwhile makes it due again at once.
      expect(tried).toBeLessThanOrEqual(3 + Math.floor((performance.now() - began) / FAILED_WAIT_MS));
      front.noTrouble();
      await waitFor('it is there too', async () => (await modes(names, 'Unknown')) || undefined);
    });
  });

  test('does not end a controller, which asks no more than its backoff allows and goes on afterwards', async () => {
    await system.addNode('program');
    front.trouble(() => ({ is: 'answer', status: 500 }));
    const began = performance.now();
    const controller = await system.controller({ kubeconfig: front.kubeconfig });
    const tried = await tries(4, isOurs);
    expect(tried).toBeLessThanOrEqual(mostTries(DEFAULT_BACKOFF, began));
    expect(front.asked.every(isOurs)).toBe(true);
    expect(controller.running()).toBe(true);
    expect((await controller.ask('/livez'))?.status).toBe(200);
    front.noTrouble();
    await ready('program', 'False', 10);
    await waitFor('its row', async () => (await rows('program')).length === 1 || undefined);
    await controller.stop();
  });
});

const isOurs = ({ call, resource }: Asked): boolean =>
  resource === 'nodes' && (call === 'list' || call === 'watch');

function onWatches(trouble: ReturnType<Troubles>): Troubles {
  return ({ call }) => (call === 'watch' ? trouble : null);
}

function onWrites(trouble: ReturnType<Troubles>): Troubles {
  return ({ call }) => (call === 'write' ? trouble : null);
}

const count = (which: (asked: Asked) => boolean): number => front.asked.filter(which).length;

/** Waits for so many; gives how many there are. */
const tries = (least: number, which: (asked: Asked) => boolean): Promise<number> =>
  waitFor(`${least} tries`, () => (count(which) >= least ? count(which) : undefined), 60_000);

/** How many tries there can be since then: one at once, and one after each wait of at least half of its step. */
function mostTries({ firstMs, maxMs }: { firstMs: number; maxMs: number }, since: number): number {
  // A timer may ring a millisecond early.
  let left = performance.now() - since;
  let most = 1;
  for (let step = firstMs; left > 0; step = Math.min(maxMs, step * 2), most += 1) left -= step / 2 - 1;
  return most;
}

const slug = (title: string): string => title.replaceAll(/[^a-z0-9]+/gi, '-').toLowerCase();

function startWatch(witnessMs = 3_600_000): void {
  nodes = startNodeWatch({
    kube: ours,
    log,
    backoff: BACKOFF,
    witnessMs,
    onMissed: () => {
      missed += 1;
    },
  });
  running.push(nodes);
}

function startWriter(): void {
  const reporter: Reporter = startReporter({
    store,
    kube: ours,
    nodes,
    cluster: CLUSTER,
    log,
    onResult: () => undefined,
    pace: { pollMs: 25, quietMs: 0, sweepMs: 200, backoff: BACKOFF },
  });
  running.push(reporter);
}

/** A Node that is well, and that the watch knows to be. */
async function watched(title: string, witnessMs?: number): Promise<string> {
  const node = slug(title);
  await system.addNode(node);
  await ready(node, 'True', 0);
  startWatch(witnessMs);
  const recorder: ConditionRecorder = startConditionRecorder({ store, cluster: CLUSTER, nodes, log });
  running.push(recorder);
  await waitFor('it is known', () => nodes.get(node)?.ready?.status === 'True' || undefined);
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

async function allFlipsAreTold(node: string): Promise<void> {
  await ready(node, 'True', 300);
  const wanted = [...FLIPS, ['True', 300]].map(([status, seconds]) => `${status} ${seconds}`);
  await waitFor(`all of ${wanted}`, async () => {
    const told = await rows(node);
    if (told.join() !== wanted.join()) throw new Error(told.join());
    return true;
  });
}

/** The beginning of the day: conditions have whole seconds. */
const MIDNIGHT = Math.floor(Date.now() / 86_400_000) * 86_400_000;
const rfc3339 = (seconds: number): string =>
  new Date(MIDNIGHT + seconds * 1000).toISOString().replace('.000', '');

/** As a kubelet writes it, past the front; `seconds` after midnight it became what it is. */
async function ready(name: string, status: 'True' | 'False', seconds: number): Promise<void> {
  const well = status === 'True';
  const condition = {
    type: 'Ready',
    status,
    reason: well ? 'KubeletReady' : 'KubeletNotReady',
    message: well
      ? 'kubelet is posting ready status'
      : 'PLEG is not healthy: pleg was last seen active 3m5.2s ago; threshold is 3m0s',
    lastTransitionTime: rfc3339(seconds),
    lastHeartbeatTime: rfc3339(seconds + 5),
  };
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { conditions: [condition] } };
  await waitFor('the API server takes it', () => system.kube.applyStatus(NODES, node));
}

/** Such as `False 10`: what was recorded, and how long after midnight it happened. */
async function rows(node: string): Promise<string[]> {
  const found = await system.sql<{ status: string; seconds: number }>(
    `SELECT status, extract(epoch FROM at - to_timestamp($2))::int AS seconds
       FROM plegwatch.node_conditions WHERE node = $1 ORDER BY at`,
    node,
    MIDNIGHT / 1000,
  );
  return found.map(({ status, seconds }) => `${status} ${seconds}`);
}

/** Whether all of their reports, in the real API server, say so. */
async function modes(names: readonly string[], mode: string): Promise<boolean> {
  const reports = await Promise.all(names.map((name) => system.kube.get(PLEG_REPORTS, name)));
  return reports.every(
    (report) => Reflect.get(Object(Reflect.get(Object(report), 'status')), 'mode') === mode,
  );
}
