/*
 * How long the published status of a pod was behind, from a batch to the row: a real API server, a real Postgres. Pods and their
 * status are written here as a kubelet writes them. Where the API server has to be ill, what is in between answers in its place.
 */
import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { request } from 'node:https';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { PodPoller } from '../../src/controller/statusLag/podPoller.ts';
import type { ReadResult } from '../../src/controller/statusLag/readOutcome.ts';
import { createWatchEnqueuer } from '../../src/controller/statusLag/watchEnqueue.ts';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { podsOf } from '../../src/kube/object.ts';
import type { ContainerIdentity, EvidenceRecord } from '../../src/protocol/record.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { agentIncarnation, type BatchIncarnation, CLUSTER, objectOf } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { type FakeApiServer, respondJson, startFakeApiServer } from '../support/fakeApiServer.ts';
import { needs } from '../support/needs.ts';
import { event, hexId, missedFinding, nodeState } from '../support/records.ts';
import { waitFor } from '../support/waitFor.ts';

const log = pino({ level: 'silent' });
const PODS = podsOf('default');
const PACE = { pollMs: 20, expiryMs: 50, backoff: { firstMs: 20, maxMs: 100 } };
const RATE = 200;

let server: LocalApiServer;
let postgres: TestServer;
let admin: KubeClient;
/** Between the pollers and the real API server: forwards requests unless a test sets `refuse`. */
let between: FakeApiServer;
let refuse: RequestListener | null = null;
let databaseUrl: string;
let controllerUrl: string;
let store: Store;
let pollers: { readonly poller: PodPoller; readonly kube: KubeClient }[] = [];
let results: ReadResult[] = [];
let shed: string[] = [];
let pods = 0;

interface LagRow extends Record<string, unknown> {
  readonly lag_min_ms: number | null;
  readonly lag_max_ms: number | null;
  readonly lag_reason: string | null;
  readonly lag_anomalous: boolean | null;
}

needs(
  'kube-apiserver',
  'etcd',
  'postgres',
)('the status lag', () => {
  beforeAll(async () => {
    [server, postgres] = await Promise.all([
      // No controller creates service accounts here.
      startApiServer({ args: ['--disable-admission-plugins=ServiceAccount'] }),
      startServer(),
    ]);
    admin = await createKubeClient({ kubeconfig: server.kubeconfig });
    between = await startFakeApiServer((asked, response) => (refuse ?? forward)(asked, response));
  });
  beforeEach(async () => {
    databaseUrl = await postgres.database();
    // With the permissions of a controller only.
    controllerUrl = await postgres.role(databaseUrl, 'controller');
    await query(databaseUrl, 'SELECT store.grant_controller($1)', [new URL(controllerUrl).username]);
    store = await openStore({ databaseUrl: controllerUrl, log });
    refuse = null;
    results = [];
    shed = [];
  });
  afterEach(async () => {
    for (const each of pollers) await end(each);
    pollers = [];
    await store.close();
  });
  afterAll(async () => {
    admin?.close();
    await between?.stop();
    await server?.stop();
    await postgres?.stop();
  });

  test('lies between the bounds of the reads, and is stored once, however often its batch arrives', async () => {
    const pod = await made();
    await publish(pod, running(pod));
    const began = performance.now();
    const { batch, finding } = overdue(pod, 'STOPPED');
    await commit(batch);
    await start();
    await waitFor('a stale read', () => results.includes('stale'));
    await publish(pod, ended(pod));
    const row = await measured(finding);
    const took = performance.now() - began;
    await commit(batch);
    expect(row).toMatchObject({ lag_reason: null, lag_anomalous: null });
    // It happened nine to five seconds before its batch was sealed.
    expect(row.lag_min_ms).toBeGreaterThanOrEqual(5_000);
    expect(row.lag_min_ms).toBeLessThanOrEqual(5_000 + took);
    expect(row.lag_max_ms).toBeGreaterThanOrEqual(9_000);
    expect(row.lag_max_ms).toBeLessThanOrEqual(9_000 + took);
    expect(await updates(finding)).toEqual(['lag_max', 'lag_min', 'overdue']);
    expect(await watches()).toBe(0);
    const [queued] = await query(databaseUrl, 'SELECT urgent FROM store.report_queue');
    expect(queued).toEqual({ urgent: true });
  });

  test('is narrower if the finding has an exact time', async () => {
    const pod = await made();
    const { node, batch, finding } = overdue(pod, 'STOPPED');
    await commit(batch);
    const width = async () => {
      const [row] = await query<{ seconds: number }>(
        databaseUrl,
        'SELECT extract(epoch FROM latest_at - earliest_at)::float8 AS seconds FROM store.status_lag_watch',
      );
      return row?.seconds ?? Number.NaN;
    };
    const before = await width();
    expect(before).toBeGreaterThanOrEqual(4);
    await commit(node.batch(3, [missed(pod, finding, 'STOPPED', 54_000_000)], { objects: [pod.object] }));
    // An exact time is trusted to half a second.
    expect(await width()).toBeGreaterThanOrEqual(1);
    expect(await width()).toBeLessThan(before);
  });

  test('the status lag of a start ends with a pod that runs or has run', async () => {
    const pod = await made();
    await publish(pod, ended(pod));
    const { batch, finding } = overdue(pod, 'STARTED');
    await commit(batch);
    await start();
    expect(await measured(finding)).toMatchObject({ lag_min_ms: 0, lag_reason: null });
  });

  test('the status lag of a static pod is measured with its mirror pod, which is created later', async () => {
    const pod = podWith('5ca1ab1e5ca1ab1e5ca1ab1e5ca1ab1e');
    const { batch, finding } = overdue(pod, 'STARTED');
    await commit(batch);
    await start();
    await waitFor('a read that finds no pod', () => results.includes('stale'));
    await applied(pod, {
      'kubernetes.io/config.hash': pod.object.podUid,
      'kubernetes.io/config.mirror': pod.object.podUid,
    });
    await publish(pod, running(pod));
    expect(await measured(finding)).toMatchObject({ lag_reason: null });
  });

  test('is unknown, with a reason, if the pod is deleted, replaced, never existed, or has a later container', async () => {
    const deleted = await made();
    await publish(deleted, running(deleted));
    const never = podWith('never-had-an-object');
    const uuid = podWith(randomUUID());
    const another = await made();
    const other = { ...another, object: { ...another.object, podUid: randomUUID() } };
    const passed = await made();
    await publish(passed, {
      ...running(passed),
      restartCount: 3,
      containerID: `containerd://${hexId(0xdead)}`,
    });
    const all = [deleted, never, uuid, other, passed].map((pod) => overdue(pod, 'STOPPED'));
    for (const { batch } of all) await commit(batch);
    await query(
      databaseUrl,
      `UPDATE store.status_lag_watch SET arrived_at = now() - interval '5 minutes' WHERE pod_name = $1`,
      [never.object.pod],
    );
    await start();
    await waitFor('the pod was seen', async () => {
      const seen = 'SELECT FROM store.status_lag_watch WHERE pod_name = $1 AND container_matched';
      return (await query(databaseUrl, seen, [deleted.object.pod])).length > 0;
    });
    // A pod that is bound to no node is deleted at once.
    await admin.delete(PODS, deleted.object.pod);
    const reasons = [];
    for (const { finding } of all) {
      const row = await measured(finding);
      expect(row).toMatchObject({ lag_min_ms: null, lag_max_ms: null, lag_anomalous: null });
      reasons.push(row.lag_reason);
    }
    expect(reasons).toEqual(['pod_deleted', 'no_api_object', 'pod_deleted', 'uid_differs', 'superseded']);
  });

  test('is unknown if the status is never published or could not be read in time', async () => {
    const pod = await made();
    await publish(pod, running(pod));
    const read = overdue(pod, 'STOPPED');
    await commit(read.batch);
    await start();
    await waitFor('a read', () => results.includes('stale'));
    refuse = (_, response) => respondJson(response, 500, {});
    const unread = overdue(pod, 'STOPPED');
    await commit(unread.batch);
    await query(databaseUrl, 'UPDATE store.status_lag_watch SET expires_at = now()');
    expect(await measured(read.finding)).toMatchObject({ lag_min_ms: null, lag_reason: 'timed_out' });
    expect(await measured(unread.finding)).toMatchObject({ lag_min_ms: null, lag_reason: 'not_read' });
  });

  test('is not measured without a pod that the API server can have', async () => {
    for (const names of [{ pod: '../secrets' }, { namespace: '..' }, { podUid: '' }, { pod: '' }]) {
      const pod = podWith(randomUUID(), names);
      const { batch, finding } = overdue(pod, 'STOPPED');
      await commit(batch);
      expect(await lag(finding)).toMatchObject({ lag_reason: 'no_pod' });
    }
    expect(await watches()).toBe(0);
  });

  test('is measured in spite of an API server that throttles, fails, disconnects or sends too much', async () => {
    const pod = await made();
    await publish(pod, ended(pod));
    const { batch, finding } = overdue(pod, 'STOPPED');
    const faults: RequestListener[] = [
      (_, response) => respondJson(response, 429, { message: 'slow down' }, { 'retry-after': '0' }),
      (_, response) => respondJson(response, 500, { message: 'ill' }),
      (_, response) => response.destroy(),
      (_, response) => response.end('x'.repeat(5 * 1024 * 1024)),
      (_, response) => respondJson(response, 200, { metadata: {}, status: { containerStatuses: 'none' } }),
    ];
    refuse = (asked, response) => (faults.shift() ?? forward)(asked, response);
    await commit(batch);
    await start();
    for (let left = 5; left > 0; left -= 1) {
      // Nobody wants to wait for the pauses between two reads.
      await waitFor('the next read', async () => {
        await query(databaseUrl, 'UPDATE store.status_lag_watch SET due_at = now() WHERE reads = 0');
        return faults.length < left;
      });
    }
    expect(await measured(finding)).toMatchObject({ lag_reason: null });
    expect(results.slice(0, 5)).toEqual(['throttled', 'failed', 'failed', 'failed', 'failed']);
  });

  test('takes no more reads than the limit allows', async () => {
    for (let i = 0; i < 30; i += 1) await commit(overdue(podWith(randomUUID()), 'STOPPED').batch);
    const before = between.requests.length;
    const perSecond = 10;
    const started = performance.now();
    await start(perSecond);
    await waitFor('all have ended', async () => (await watches()) === 0);
    const seconds = (performance.now() - started) / 1000;
    expect(between.requests.length - before).toBe(30);
    expect(30).toBeLessThanOrEqual(perSecond * (seconds + 1));
  });

  test('is measured on by the next leader with the reads of the previous one, and stored once if there are two', async () => {
    const pod = await made();
    await publish(pod, running(pod));
    const { batch, finding } = overdue(pod, 'STOPPED');
    await commit(batch);
    const first = await start();
    const staleMs = await waitFor('a read', async () => {
      const [row] = await query<{ ms: number | null }>(
        databaseUrl,
        'SELECT (extract(epoch FROM stale_read_at - latest_at) * 1000)::float8 AS ms FROM store.status_lag_watch',
      );
      return row?.ms ?? undefined;
    });
    await end(first);
    await publish(pod, ended(pod));
    await Promise.all([start(), start()]);
    const row = await measured(finding);
    expect(row.lag_min_ms).toBeGreaterThanOrEqual(Math.max(0, staleMs));
    expect(await updates(finding)).toEqual(['lag_max', 'lag_min', 'overdue']);
  });

  test('the status lag of announced events is sampled, and a lag is anomalous if its minimum exceeds the 99th percentile of the samples', async () => {
    const pod = await made();
    await publish(pod, ended(pod));
    const node = agentIncarnation(`node-${randomUUID().slice(0, 8)}`);
    const at = 58_000_000;
    const sandbox = { ...pod.object, id: hexId(0xabc), isSandbox: true };
    await commit(
      node.batch(
        1,
        [
          event(1, { containerId: pod.object.id, eventType: 1, t: at }),
          event(1, { containerId: pod.object.id, eventType: 2, t: at }),
          event(1, { containerId: pod.object.id, eventType: 0, t: at }),
          event(1, { containerId: pod.object.id, eventType: 2, t: at, replayed: true }),
          event(1, { containerId: sandbox.id, eventType: 2, t: at, isSandbox: true }),
          event(1, { containerId: pod.object.id, eventType: 2, t: 1_000_000 }),
        ],
        { objects: [pod.object, sandbox] },
      ),
    );
    await start();
    const lags = await waitFor('both samples', async () => {
      const rows = await query<{ event_type: string; lag_max_ms: number }>(
        databaseUrl,
        'SELECT event_type, lag_max_ms FROM plegwatch.status_lags WHERE node = $1 ORDER BY event_type',
        [node.node],
      );
      return rows.length === 2 ? rows : undefined;
    });
    expect(lags.map(({ event_type }) => event_type)).toEqual(['STARTED', 'STOPPED']);
    for (const { lag_max_ms } of lags) expect(lag_max_ms).toBeGreaterThan(1_000);
    expect(await watches()).toBe(0);

    await storeSamples(node.node, 97, 1);
    expect(await isAnomalous(node.node)).toBeNull();
    await storeSamples(node.node, 1, 1);
    // The second longest of a hundred counts: that of a sample.
    expect(await isAnomalous(node.node)).toBe(true);
    await storeSamples(node.node, 3, 86_400_000);
    expect(await isAnomalous(node.node)).toBe(false);
    await query(databaseUrl, "UPDATE store.status_lag SET at = at - interval '25 hours'");
    expect(await isAnomalous(node.node)).toBeNull();
  });

  test('is not measured, with the reason `shed`, beyond the maximum of watches per cluster or node', async () => {
    const pod = await made();
    const fill = (node: string, count: number) =>
      query(
        databaseUrl,
        `INSERT INTO store.status_lag_watch (node_id, cluster_id, finding_id, kind, event_type, container_id, pod_uid, pod_namespace,
                                         pod_name, container_name, attempt, latest_at, expires_at, due_at)
         SELECT node_id, cluster_id, gen_random_uuid(), 'overdue', 'STOPPED', '', '', '', '', '', 0, now(), now(), now()
           FROM store.node CROSS JOIN generate_series(1, $2) WHERE name = $1`,
        [node, count],
      );
    const first = overdue(pod, 'STOPPED');
    const { node } = first.node;
    await commit(first.batch);
    await fill(node, 198);
    // There is room for one of two: the record of each is beside the other in one batch.
    const [one, two] = [overdue(pod, 'STOPPED', { name: node }), overdue(pod, 'STOPPED', { name: node })];
    const records = [...one.batch.records, ...two.batch.records];
    await commit(one.node.batch(1, records, { objects: [pod.object] }));
    expect(await lag(one.finding)).toMatchObject({ lag_reason: null });
    expect(await lag(two.finding)).toMatchObject({ lag_min_ms: null, lag_reason: 'shed' });
    const other = overdue(pod, 'STOPPED');
    await commit(other.batch);
    expect(await lag(other.finding)).toMatchObject({ lag_reason: null });
    await fill(other.node.node, 1_799);
    const last = overdue(pod, 'STOPPED');
    await commit(last.batch);
    expect(await lag(last.finding)).toMatchObject({ lag_min_ms: null, lag_reason: 'shed' });
    expect(shed).toEqual(['overdue 1', 'overdue 1']);
    expect(await watches()).toBe(2_000);
  });

  test('is measured of every announced start and stop, without rates, while a kubelet up to 1.31 is in fallback, and of samples otherwise', async () => {
    const pod = await made();
    await publish(pod, running(pod));
    const modes = [
      ['v1.30.14', 'Fallback', 'StreamBroke', 'fallback'],
      ['v1.30.14', 'Fallback', 'RuntimeUnsupported', 'sample'],
      ['v1.30.14', 'Evented', 'Connected', 'sample'],
      ['v1.33.13', 'Fallback', 'StreamBroke', 'sample'],
    ] as const;
    for (const [kubelet, mode, modeReason, kind] of modes) {
      const node = agentIncarnation(`node-${randomUUID().slice(0, 8)}`);
      const state = nodeState({ mode, modeReason });
      const waited = { containerId: pod.object.id, eventType: 2, t: 1_000_000 };
      const records = [
        state,
        ...Array.from({ length: 30 }, () => event(1, { ...waited, t: 58_000_000 })),
        event(1, waited),
      ];
      const { context } = node.batch(1, []);
      await commit(node.batch(1, records, { objects: [pod.object], context: { ...context, kubelet } }));
      const kinds = await query<{ kind: string; n: number }>(
        databaseUrl,
        'SELECT w.kind, count(*)::int4 AS n FROM store.status_lag_watch w JOIN store.node n USING (node_id) WHERE n.name = $1 GROUP BY 1',
        [node.node],
      );
      // Also of the event that waited for its batch; the rate of samples allows 20.
      expect(kinds, `${kubelet} ${mode} ${modeReason}`).toEqual([{ kind, n: kind === 'fallback' ? 31 : 20 }]);
    }
    expect(shed).toEqual([]);
  });

  test('after such a fallback is shown with its pod while the status is wrong, when it is right, and when nobody reads it any more', async () => {
    const [shown, wrong, deleted] = [await made(), await made(), await made()];
    const node = await fallenBack([shown, wrong, deleted]);
    await start();
    const lags = () =>
      query<LagOfPod>(
        databaseUrl,
        `SELECT pod_name, kind, event_type, lag_min_ms, lag_max_ms, lag_reason FROM plegwatch.status_lags WHERE node = $1 ORDER BY pod_name`,
        [node],
      );
    const all = [shown, wrong, deleted].map(({ object }) => object.pod);
    const open = await waitFor('all were read', async () => {
      const rows = await lags();
      return rows.length === 3 ? rows : undefined;
    });
    expect(open).toMatchObject(
      all.map((pod_name) => ({
        pod_name,
        kind: 'fallback',
        event_type: 'STOPPED',
        lag_max_ms: null,
        lag_reason: null,
      })),
    );
    await publish(shown, ended(shown));
    await admin.delete(PODS, deleted.object.pod);
    await waitFor('two have ended', async () => (await watches()) === 1);
    await query(databaseUrl, 'UPDATE store.status_lag_watch SET expires_at = now()');
    await waitFor('the last one has expired', async () => (await watches()) === 0);
    const [right, still, gone] = await lags();
    expect(right?.lag_max_ms).toBeGreaterThanOrEqual(right?.lag_min_ms ?? Number.NaN);
    expect(still).toMatchObject({ lag_min_ms: expect.any(Number), lag_max_ms: null, lag_reason: null });
    expect(still?.lag_min_ms).toBeGreaterThanOrEqual(open[1]?.lag_min_ms ?? Number.NaN);
    expect(gone).toMatchObject({ lag_min_ms: null, lag_max_ms: null, lag_reason: 'pod_deleted' });
    // They say nothing of what is ordinary.
    const [{ samples } = { samples: Number.NaN }] = await query<{ samples: number }>(
      databaseUrl,
      "SELECT count(*)::int4 AS samples FROM plegwatch.status_lags WHERE kind = 'sample'",
    );
    expect(samples).toBe(0);
  });

  test('after such a fallback is not measured beyond 200 transitions of a node, which are counted', async () => {
    const all = await Promise.all(Array.from({ length: 203 }, () => podWith(randomUUID())));
    await fallenBack(all);
    expect(await watches()).toBe(200);
    expect(shed).toEqual(['fallback 3']);
  });

  test('is not measured if it is switched off; overdue events are stored all the same', async () => {
    const pod = await made();
    const { batch, finding } = overdue(pod, 'STOPPED');
    await commitAll(controllerUrl, [batch]);
    expect(await watches()).toBe(0);
    expect(await updates(finding)).toEqual(['overdue']);
    expect(await lag(finding)).toMatchObject({ lag_min_ms: null, lag_reason: null });
  });
});

interface LagOfPod extends Record<string, unknown> {
  readonly pod_name: string;
  readonly lag_min_ms: number | null;
  readonly lag_max_ms: number | null;
  readonly kind: string;
  readonly event_type: string;
}

interface TestPod {
  readonly object: ContainerIdentity;
}

function podWith(podUid: string, names: Partial<ContainerIdentity> = {}): TestPod {
  pods += 1;
  const object = {
    ...objectOf(hexId(0x1000 + pods)),
    namespace: 'default',
    pod: `pod-${pods}`,
    podUid,
    ...names,
  };
  return { object: { ...object, attempt: 0 } };
}

/** A pod in the API server. */
async function made(): Promise<TestPod> {
  const pod = podWith('');
  const uid = await applied(pod, {});
  return { object: { ...pod.object, podUid: uid } };
}

async function applied({ object }: TestPod, annotations: Record<string, string>): Promise<string> {
  const bound = Object.keys(annotations).length === 0 ? {} : { nodeName: 'node' };
  const { metadata } = await admin.apply(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: object.pod, annotations },
    spec: { ...bound, terminationGracePeriodSeconds: 0, containers: [{ name: 'app', image: 'none' }] },
  });
  return metadata.uid;
}

const running = ({ object }: TestPod) => ({
  restartCount: 0,
  containerID: `containerd://${object.id}`,
  state: { running: {} },
});

const ended = ({ object }: TestPod) => ({
  restartCount: 0,
  containerID: `containerd://${object.id}`,
  state: { terminated: { exitCode: 0, containerID: `containerd://${object.id}` } },
});

async function publish({ object }: TestPod, status: object): Promise<void> {
  await admin.applyStatus(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: object.pod },
    status: { containerStatuses: [{ name: 'app', ready: false, image: 'none', imageID: 'none', ...status }] },
  });
}

/** Stores that a node's kubelet 1.31 fell back, and that the containers of these pods stopped. Returns the name of the node. */
async function fallenBack(all: readonly TestPod[]): Promise<string> {
  const node = agentIncarnation(`node-${randomUUID().slice(0, 8)}`);
  const { context } = node.batch(1, []);
  const stopped = all.map(({ object }) => event(1, { containerId: object.id, eventType: 2, t: 58_000_000 }));
  const records = [nodeState({ mode: 'Fallback', modeReason: 'StreamBroke' }), ...stopped];
  const objects = all.map(({ object }) => object);
  await commit(node.batch(1, records, { objects, context: { ...context, kubelet: 'v1.31.9' } }));
  return node.node;
}

let incarnations = 0;

/** A batch that reports an event as overdue and then as missed; it happened nine to five seconds ago. */
function overdue(
  pod: TestPod,
  type: 'STARTED' | 'STOPPED',
  { name = `node-${randomUUID().slice(0, 8)}`, to = 55_000_000 } = {},
) {
  incarnations += 1;
  const node = agentIncarnation(name, incarnations);
  const finding = randomUUID();
  const record: EvidenceRecord = {
    type: 'event_overdue',
    t: 58_000_000,
    findingId: finding,
    containerId: pod.object.id,
    eventType: type,
    window: { from: to - 4_000_000, to },
    occurred: null,
  };
  const records = [record, missed(pod, finding, type)];
  return { node, finding, batch: node.batch(1, records, { objects: [pod.object] }) };
}

/** The missed event that was overdue before. */
const missed = (
  pod: TestPod,
  finding: string,
  type: 'STARTED' | 'STOPPED',
  occurred: number | null = null,
): EvidenceRecord => {
  const window = { from: 51_000_000, to: 55_000_000 };
  const { id: containerId } = pod.object;
  return missedFinding({ t: 59_000_000, findingId: finding, eventType: type, containerId, window, occurred });
};

const enqueuer = createWatchEnqueuer({
  readsPerSecond: RATE,
  onShed: (kind, count) => shed.push(`${kind} ${count}`),
});

const commit = (batch: ReturnType<BatchIncarnation['batch']>): Promise<void> =>
  commitAll(controllerUrl, [batch], enqueuer);

async function start(readsPerSecond = RATE) {
  const kube = await createKubeClient({ kubeconfig: between.kubeconfig });
  const metrics = {
    read: (result: ReadResult) => results.push(result),
    watches: () => undefined,
    shed: (kind: string, count: number) => shed.push(`${kind} ${count}`),
  };
  const poller = new PodPoller({ store, kube, cluster: CLUSTER, readsPerSecond, log, metrics, pace: PACE });
  const started = { poller, kube };
  pollers.push(started);
  return started;
}

async function end({ poller, kube }: (typeof pollers)[number]): Promise<void> {
  await poller.stop();
  kube.close();
}

/** Forwards a request to the real API server, with the administrator's token. */
const forward: RequestListener = (asked, response) => {
  const onward = request(
    new URL(asked.url ?? '/', server.url),
    { ca: server.ca, method: asked.method, headers: { authorization: `Bearer ${server.token}` } },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, { 'content-type': answer.headers['content-type'] });
      answer.pipe(response);
    },
  );
  onward.once('error', () => response.destroy());
  asked.pipe(onward);
};

async function lag(finding: string): Promise<LagRow | undefined> {
  const [row] = await query<LagRow>(
    databaseUrl,
    'SELECT lag_min_ms, lag_max_ms, lag_reason, lag_anomalous FROM plegwatch.findings WHERE finding_id = $1',
    [finding],
  );
  return row;
}

function measured(finding: string): Promise<LagRow> {
  return waitFor(`the lag of ${finding}`, async () => {
    const row = await lag(finding);
    return row !== undefined && (row.lag_max_ms !== null || row.lag_reason !== null) ? row : undefined;
  });
}

async function updates(finding: string): Promise<string[]> {
  const rows = await query<{ what: string }>(
    databaseUrl,
    'SELECT what FROM store.finding_update WHERE finding_id = $1 ORDER BY what',
    [finding],
  );
  return rows.map(({ what }) => what);
}

async function watches(): Promise<number> {
  const [row] = await query<{ n: number }>(
    databaseUrl,
    'SELECT count(*)::int4 AS n FROM store.status_lag_watch',
  );
  return row?.n ?? Number.NaN;
}

/** Stores samples of a node, each with this maximum lag. */
async function storeSamples(node: string, count: number, maxMs: number): Promise<void> {
  await query(
    databaseUrl,
    `INSERT INTO store.status_lag (node_id, cluster_id, at, event_type, lag_min_ms, lag_max_ms)
     SELECT node_id, cluster_id, now(), 'STOPPED', 0, $3 FROM store.node CROSS JOIN generate_series(1, $2) WHERE name = $1`,
    [node, count, maxMs],
  );
}

/** Measures a stop on this node with a lag of more than 40 s. Returns whether it is anomalous. */
async function isAnomalous(node: string): Promise<boolean | null> {
  const pod = await made();
  await publish(pod, running(pod));
  results = [];
  const { batch, finding } = overdue(pod, 'STOPPED', { name: node, to: 20_000_000 });
  await commit(batch);
  await waitFor('a stale read', () => results.includes('stale'));
  await publish(pod, ended(pod));
  return (await measured(finding)).lag_anomalous;
}
