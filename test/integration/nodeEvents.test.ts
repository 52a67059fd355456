/*
 * Events on Nodes, from a real Postgres to a real API server, with exactly the rights that the writer declares.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { EVENT_RIGHTS, startEventWriter } from '../../src/controller/nodes/eventWriter.ts';
import { type NodeWatch, startNodeWatch } from '../../src/controller/nodes/nodeWatch.ts';
import { NODES } from '../../src/kube/object.ts';
import { CLUSTER } from '../support/batches.ts';
import { runText, silent } from '../support/database.ts';
import { KubeBed } from '../support/kubeBed.ts';
import { needs } from '../support/needs.ts';
import { waitFor } from '../support/waitFor.ts';

const bed = new KubeBed();
let nodes: NodeWatch;
let counted: Record<string, number>;
let writer: { stop(): Promise<void> } | undefined;

needs(
  'kube-apiserver',
  'etcd',
  'kubectl',
  'postgres',
)('Events on a Node', () => {
  beforeAll(async () => {
    await bed.grant(EVENT_RIGHTS);
    nodes = startNodeWatch({ kube: bed.admin, log: silent });
  });
  afterEach(async () => {
    await writer?.stop();
  });
  afterAll(() => nodes?.stop());

  test('a fallback is one Event with its reason, and a second one soon after counts in its series', async () => {
    const id = await addNode('falls-back');
    start();
    await bed.evidence.fallback(id, 'StreamBroke');
    const [event] = await eventsOf('falls-back', (events) => events.length === 1);
    expect(event).toMatchObject({
      type: 'Warning',
      reason: 'PLEGFellBack',
      reportingController: 'plegwatch.dev/controller',
    });
    expect(event?.note).toContain('StreamBroke');
    await bed.evidence.fallback(id, 'StreamBroke');
    const [again, ...others] = await eventsOf('falls-back', ([one]) => one?.series?.count === 2);
    expect(others).toEqual([]);
    expect(again?.metadata.name).toBe(event?.metadata.name);
    expect(await bed.kubectl('describe', 'node', 'falls-back')).toMatch(/Warning +PLEGFellBack/);
  });

  test('the first miss of a day is an Event, further ones are none, and a restart writes nothing twice', async () => {
    const id = await addNode('misses');
    start();
    await bed.evidence.missed(id, 'cart-0');
    const [event] = await eventsOf('misses', (events) => events.length === 1);
    expect(event).toMatchObject({
      reason: 'PLEGEventMissed',
      note: expect.stringContaining('STOPPED of shop/cart-0'),
    });
    await writer?.stop();
    await bed.evidence.missed(id, 'cart-1');
    await bed.evidence.fallback(id, 'RuntimeDownAtStart');
    start();
    // Later Events in the same pass are written: so the miss was looked at.
    const events = await eventsOf('misses', (found) => found.length === 2);
    expect(events.map(({ reason }) => reason).sort()).toEqual(['PLEGEventMissed', 'PLEGFellBack']);
    expect(events.every(({ series }) => series === undefined)).toBe(true);
  });

  test('the names of a hostile pod are in the Event as escapes, cut to what the API server accepts', async () => {
    const id = await addNode('hostile');
    start();
    await bed.evidence.missed(id, `\u001b[2J\u202e${'🚀'.repeat(400)}`);
    const [event] = await eventsOf('hostile', (events) => events.length === 1);
    expect(event?.note).toContain('STOPPED of shop/\\u001b[2J\\u202e🚀🚀');
    expect(event?.note).toMatch(/🚀$/);
  });

  test('an end that was not announced is an Event on its pod, and a second one counts in its series', async () => {
    const id = await addNode('pods');
    await bed.kubectl('create', 'namespace', 'shop');
    start(true);
    await bed.evidence.missed(id, 'ends');
    const [event] = await podEvents('ends', (events) => events.length === 1);
    expect(event).toMatchObject({
      reason: 'ContainerEndNotAnnounced',
      regarding: { kind: 'Pod', namespace: 'shop', name: 'ends', uid: 'uid of ends' },
      note: expect.stringMatching(/that container cart had ended by \d{4}-\d\d-\d\dT[\d:.]+Z\.$/),
    });
    await bed.evidence.missed(id, 'ends');
    const [, ...others] = await podEvents('ends', ([one]) => one?.series?.count === 2);
    expect(others).toEqual([]);
    expect(await bed.kubectl('get', 'events', '-n', 'shop')).toMatch(
      /Warning +ContainerEndNotAnnounced +pod\/ends/,
    );
  });

  test('pods have no Events unless they are to', async () => {
    const id = await addNode('no-pods');
    start();
    await bed.evidence.missed(id, 'quiet');
    await eventsOf('no-pods', (events) => events.length === 1);
    expect(await podEventsNow('quiet')).toEqual([]);
  });

  test.each(['', '..', 'a/../../b', 'no-such-namespace', 'x'.repeat(300)])(
    'a pod of the namespace %j has no Event, and later ones are written',
    async (namespace) => {
      const node = `hostile-${namespace.length}`;
      const id = await addNode(node);
      const finding = await bed.evidence.missed(id, 'cart-9');
      await runText(bed.store, 'UPDATE store.finding SET pod_namespace = $2 WHERE finding_id = $1', [
        finding,
        namespace,
      ]);
      start(true);
      await bed.evidence.fallback(id, 'StreamBroke');
      const events = await eventsOf(node, (found) => found.some(({ reason }) => reason === 'PLEGFellBack'));
      expect(events.map(({ reason }) => reason).sort()).toEqual(['PLEGEventMissed', 'PLEGFellBack']);
    },
  );

  test('old evidence that is stored late makes no Event', async () => {
    const id = await addNode('late');
    await bed.evidence.fallback(id, 'StreamBroke', 3_600);
    const after = await addNode('after');
    await bed.evidence.fallback(after, 'StreamBroke');
    start();
    await eventsOf('after', (events) => events.length === 1);
    expect(await eventsNow('late')).toEqual([]);
  });

  test('a Node that falls back over and over gets few writes, and the others are counted', async () => {
    const id = await addNode('flaps');
    for (let n = 0; n < 20; n++) await bed.evidence.fallback(id, 'StreamBroke');
    start();
    await waitFor('the rest is suppressed', () => counted['suppressed'] === 17);
    const [event, ...others] = await eventsNow('flaps');
    expect(others).toEqual([]);
    expect(event?.series?.count).toBe(3);
  });
});

interface NodeEvent {
  readonly metadata: { readonly name: string };
  readonly type: string;
  readonly reason: string;
  readonly note: string;
  readonly series?: { readonly count: number };
  readonly regarding: { readonly name: string };
}

/** Events of a pod in the namespace shop. */
async function podEventsNow(pod: string): Promise<NodeEvent[]> {
  const { items } = JSON.parse(await bed.kubectl('get', 'events.events.k8s.io', '-n', 'shop', '-o', 'json'));
  return items.filter(({ regarding }: NodeEvent) => regarding.name === pod);
}

const podEvents = (pod: string, isAsExpected: (events: NodeEvent[]) => boolean): Promise<NodeEvent[]> =>
  waitFor(`the Events of ${pod}`, async () => {
    const events = await podEventsNow(pod);
    return isAsExpected(events) ? events : undefined;
  });

async function eventsNow(node: string): Promise<NodeEvent[]> {
  const { items } = JSON.parse(await bed.kubectl('get', 'events.events.k8s.io', '-o', 'json'));
  return items.filter(({ regarding }: NodeEvent) => regarding.name === node);
}

const eventsOf = (node: string, isAsExpected: (events: NodeEvent[]) => boolean): Promise<NodeEvent[]> =>
  waitFor(`the Events of ${node}`, async () => {
    const events = await eventsNow(node);
    return isAsExpected(events) ? events : undefined;
  });

async function addNode(name: string): Promise<number> {
  await bed.admin.apply(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  await waitFor('the Node is watched', () => nodes.get(name) !== undefined);
  return bed.evidence.node(name);
}

function start(onPods = false): void {
  const counts: Record<string, number> = {};
  counted = counts;
  writer = startEventWriter({
    store: bed.store,
    kube: bed.controller,
    nodes,
    cluster: CLUSTER,
    onPods,
    log: silent,
    onResult: (result) => {
      counts[result] = (counts[result] ?? 0) + 1;
    },
    periodMs: 50,
  });
}
