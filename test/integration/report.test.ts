/*
 * The report writer between a real Postgres and a real API server, with exactly the permissions that it documents.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type LocalApiServer, startApiServer } from '../../devtools/localServices/apiServer.ts';
import { type LocalPostgres, startPostgres } from '../../devtools/localServices/postgres.ts';
import { where } from '../../devtools/localServices/where.ts';
import { createKubeClient, type KubeClient } from '../../src/controller/kube/client.ts';
import { startNodeWatch } from '../../src/controller/kube/nodes.ts';
import { type KubeObject, NODES, PLEG_REPORTS, type Resource } from '../../src/controller/kube/object.ts';
import { runReport } from '../../src/controller/reports/command.ts';
import {
  type ReportPace,
  type ReportWriter,
  startReportWriter,
} from '../../src/controller/reports/writer.ts';
import { migrate } from '../../src/controller/store/migrate.ts';
import { openStore, type Store } from '../../src/controller/store/store.ts';
import { needs } from '../support/needs.ts';
import { conditionsOf, installPlegReports } from '../support/plegreports.ts';
import { EvidenceFixture } from '../support/storedRecords.ts';
import { waitFor } from '../support/waitFor.ts';

const run = promisify(execFile);
const log = pino({ level: 'silent' });
const CLUSTER = 'test';
const ROLES: Resource = { group: 'rbac.authorization.k8s.io', version: 'v1', plural: 'clusterroles' };
const BINDINGS: Resource = { ...ROLES, plural: 'clusterrolebindings' };
const FAST: Partial<ReportPace> = {
  pollMs: 25,
  minIntervalMs: 100,
  staleCheckMs: 200,
  listMs: 500,
  backoff: { firstMs: 50, maxMs: 500 },
};

let server: LocalApiServer;
let postgres: LocalPostgres;
let store: Store;
let admin: KubeClient;
let ours: KubeClient;
let evidence: EvidenceFixture;
let counted: Record<string, number>;
const running: { stop(): Promise<void> }[] = [];

needs(
  'kube-apiserver',
  'etcd',
  'kubectl',
  'postgres',
)('the report writer', () => {
  beforeAll(async () => {
    [server, postgres] = await Promise.all([
      startApiServer({ users: { controller: ['plegwatch'] } }),
      startPostgres({ settings: { fsync: 'off' } }),
    ]);
    admin = await createKubeClient({ kubeconfig: server.kubeconfig });
    ours = await createKubeClient({ kubeconfig: server.kubeconfigOf('controller') });
    await migrate({ databaseUrl: postgres.url, queues: 1, log });
    store = await openStore({ databaseUrl: postgres.url, log });
    evidence = new EvidenceFixture(store, await store.ensureCluster(CLUSTER));
    await installPlegReports(admin);
    await grant();
  });
  afterEach(async () => {
    for (const program of running.splice(0)) await program.stop();
  });
  afterAll(async () => {
    admin?.close();
    ours?.close();
    await store?.close();
    await Promise.all([server?.stop(), postgres?.stop()]);
  });

  test('writes a report with the number of missed events', async () => {
    const id = await storeNode('appears', 3);
    await admin.apply(NODES, nodeObject('appears'));
    start();
    const report = await reportOf('appears', ({ status }) => status.missed?.last24h === 3);
    expect(report.status).toMatchObject({
      mode: 'Unknown',
      stream: { state: 'Active' },
      missed: { total: 3, last24h: 3, resolved24h: 0 },
      findings24h: [{ kind: 'missed', count: 3 }],
      observed24h: { expected: 240, matched: 240 },
    });
    expect(report.status.missedEvents).toHaveLength(3);
    expect([...conditionsOf(report)].sort()).toEqual([
      ['AgentReporting', 'True'],
      ['EventedPLEGInUse', 'Unknown'],
      ['EvidenceComplete', 'True'],
      ['Ready', 'True'],
      ['RelistHealthy', 'True'],
      ['StreamConnected', 'True'],
    ]);
    const node = await admin.get(NODES, 'appears');
    expect(report.metadata.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Node', name: 'appears', uid: node?.metadata.uid },
    ]);
    await dequeued(id);
    const { managedFields, ...metadata } = report.metadata;
    expect(managedFields).toBeDefined();
    expect(Buffer.byteLength(JSON.stringify({ ...report, metadata }))).toBeLessThanOrEqual(4096);
    const [header, row] = (await kubectl('get', 'pleg', 'appears')).split('\n');
    expect(header).toMatch(/^NAME +MODE +STREAM +MISSED +LAST MISSED +COMPLETE +AGE$/);
    expect(row).toMatch(/^appears +Unknown +Active +3 +[\dhms]+ +True +[\dhms]+$/);
  });

  test('agrees with `plegwatch report`, which prints the same as kubectl', async () => {
    await storeNode('unsafe', 0, { stream: 'Unsafe' });
    await admin.apply(NODES, nodeObject('unsafe'));
    start();
    await reportOf('unsafe', ({ status }) => status.stream?.state === 'Unsafe');
    for (const output of ['table', 'wide'] as const) {
      await waitFor(`the ${output}s agree`, async () => {
        const wide = output === 'wide' ? ['-o', 'wide'] : [];
        const [theirs, own] = await Promise.all([
          kubectl('get', 'plegreports', ...wide),
          runReport({ store, cluster: CLUSTER, output }),
        ]);
        if (theirs !== own) throw new Error(`${theirs}\n${own}`);
        return true;
      });
    }
    const json = JSON.parse(await runReport({ store, cluster: CLUSTER, output: 'json' }));
    expect(json.items.map((item: KubeObject) => item.metadata.name)).toContain('unsafe');
  });

  test('does not write a report without a relevant change', async () => {
    const id = await storeNode('idle', 0);
    await admin.apply(NODES, nodeObject('idle'));
    start();
    const before = await reportOf('idle', ({ status }) => status.mode === 'Unknown');
    await dequeued(id);
    await evidence.minutes(id, 1);
    await evidence.due(id);
    await dequeued(id);
    await waitFor('the result is counted', () => counted['unchanged']);
    const after = await admin.get(PLEG_REPORTS, 'idle');
    expect(after?.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  });

  test('writes the last of several changes within the minimum interval, once', async () => {
    const id = await storeNode('burst', 0);
    await admin.apply(NODES, nodeObject('burst'));
    start({ minIntervalMs: 2_000 });
    await reportOf('burst', ({ status }) => status.mode === 'Unknown');
    await dequeued(id);
    const before = counted['written'] ?? 0;
    for (const mode of ['Starting', 'Evented', 'Fallback']) {
      await evidence.state(id, { mode });
      await evidence.due(id);
    }
    await reportOf('burst', ({ status }) => status.mode === 'Fallback');
    await dequeued(id);
    await waitFor('one write is counted', () => counted['written'] === before + 1);
  });

  test('writes an unchanged report again when it is old, with present counts', async () => {
    const id = await storeNode('old', 0);
    await admin.apply(NODES, nodeObject('old'));
    start({ refreshMs: 1_000 });
    const first = await reportOf('old', ({ status }) => status?.observedAt !== undefined);
    await evidence.minutes(id, 1);
    const again = await reportOf('old', ({ status }) => status?.observed24h?.expected === 244);
    await waitFor('the refresh is counted', () => (counted['refreshed'] ?? 0) > 0);
    expect(Date.parse(again.status.observedAt ?? '')).toBeGreaterThan(
      Date.parse(first.status.observedAt ?? ''),
    );
  });

  test('writes a change before the refreshes of other reports', async () => {
    const names = Array.from({ length: 40 }, (_, n) => `crowd-${n}`);
    const ids = await Promise.all(names.map((name) => storeNode(name, 0)));
    for (const name of names) await admin.apply(NODES, nodeObject(name));
    start();
    for (const id of ids) await dequeued(id);
    for (const program of running.splice(0)) await program.stop();
    // All reports are old, and the budget allows one after the other. The change comes last.
    await evidence.old(ids);
    const last = ids.at(-1) ?? 0;
    await evidence.state(last, { mode: 'Fallback', modeReason: 'StreamBroke' });
    await evidence.due(last);
    start({ writesPerSecond: 2 });
    await reportOf('crowd-39', ({ status }) => status.mode === 'Fallback');
    expect(counted['refreshed'] ?? 0).toBeLessThan(10);
    await waitFor('the other reports are refreshed', () => (counted['refreshed'] ?? 0) > 0);
  });

  test('deletes the report of a deleted Node, and the evidence stays', async () => {
    const id = await storeNode('leaves', 2);
    await admin.apply(NODES, nodeObject('leaves'));
    start();
    await reportOf('leaves', () => true);
    await admin.delete(NODES, 'leaves');
    await waitFor(
      'the report is deleted',
      async () => (await admin.get(PLEG_REPORTS, 'leaves')) === undefined,
    );
    expect(await evidence.rows('finding', id)).toBe(2);
    expect(await evidence.rows('relist_minute', id)).toBe(60);
    await waitFor('the node leaves the table', async () => {
      const table = await runReport({ store, cluster: CLUSTER, output: 'table' });
      return table.includes('leaves') ? undefined : true;
    });
  });

  test('writes a new report for a Node that is created again under the same name', async () => {
    await storeNode('again', 1);
    await admin.apply(NODES, nodeObject('again'));
    start();
    const first = await reportOf('again', () => true);
    await admin.delete(NODES, 'again');
    const node = await admin.apply(NODES, nodeObject('again'));
    const second = await reportOf(
      'again',
      ({ metadata }) => metadata.ownerReferences[0]?.uid === node.metadata.uid,
    );
    expect(second.metadata.uid).not.toBe(first.metadata.uid);
    expect(second.status.missed).toMatchObject({ total: 1 });
  });

  test('writes a report again that somebody has deleted', async () => {
    await storeNode('deleted', 0);
    await admin.apply(NODES, nodeObject('deleted'));
    start();
    const first = await reportOf('deleted', () => true);
    await admin.delete(PLEG_REPORTS, 'deleted');
    await reportOf('deleted', ({ metadata }) => metadata.uid !== first.metadata.uid);
  });

  test('after a restart deletes orphans, rewrites nothing and keeps the transition times of conditions', async () => {
    const [stays] = [await storeNode('stays', 0), await storeNode('orphan', 0)];
    await admin.apply(NODES, nodeObject('stays'));
    await admin.apply(NODES, nodeObject('orphan'));
    const former = start();
    const before = await reportOf('stays', () => true);
    await reportOf('orphan', () => true);
    await former.stop();
    await admin.delete(NODES, 'orphan');
    start();
    await waitFor(
      'the orphan is deleted',
      async () => (await admin.get(PLEG_REPORTS, 'orphan')) === undefined,
    );
    expect((await admin.get(PLEG_REPORTS, 'stays'))?.metadata.resourceVersion).toBe(
      before.metadata.resourceVersion,
    );
    await evidence.state(stays, { mode: 'Fallback', modeReason: 'StreamBroke' });
    await evidence.due(stays);
    const after = await reportOf('stays', ({ status }) => status.mode === 'Fallback');
    const at = (report: ReportObject, type: string) =>
      report.status.conditions?.find((one) => one.type === type)?.lastTransitionTime;
    expect(at(after, 'Ready')).toBe(at(before, 'Ready'));
    expect(conditionsOf(after).get('EventedPLEGInUse')).toBe('False');
  });

  test('reports a silent agent without any new record', async () => {
    const id = await storeNode('silent', 0);
    await admin.apply(NODES, nodeObject('silent'));
    start();
    await reportOf('silent', (report) => conditionsOf(report).get('AgentReporting') === 'True');
    await evidence.silentFor(id, 200);
    await reportOf('silent', (report) => conditionsOf(report).get('Ready') === 'False');
  });

  test('writes all reports after the API server was killed and restarted', async () => {
    const ids = await Promise.all(['out-a', 'out-b', 'out-c'].map((name) => storeNode(name, 0)));
    for (const name of ['out-a', 'out-b', 'out-c']) await admin.apply(NODES, nodeObject(name));
    const writer = start();
    for (const name of ['out-a', 'out-b', 'out-c']) await reportOf(name, () => true);
    await server.kill();
    for (const id of ids) {
      await evidence.missed(id, 'cart-0');
      await evidence.due(id);
    }
    await waitFor('the writer is not ready', () => (writer.health() === null ? undefined : true));
    expect(writer.alive()).toBeNull();
    expect(await Promise.all(ids.map((id) => evidence.rows('report_queue', id)))).toEqual([1, 1, 1]);
    await server.restart();
    for (const name of ['out-a', 'out-b', 'out-c']) {
      await reportOf(name, ({ status }) => status.missed?.last24h === 1);
    }
    await waitFor('the writer is ready', () => writer.health() === null);
  });

  test('names verb and resource of a missing permission', async () => {
    await admin.delete(BINDINGS, 'plegwatch-test');
    const writer = start();
    await waitFor('the error is reported', () =>
      /does not let us list (nodes|plegreports)/.test(writer.health() ?? ''),
    );
    await expect(ours.list(PLEG_REPORTS)).rejects.toMatchObject({
      code: 'KUBE_REFUSED',
      cure: expect.stringContaining('list on plegreports.plegwatch.dev'),
    });
  });
});

interface ReportObject extends KubeObject {
  readonly status: {
    readonly observedAt?: string;
    readonly observed24h?: { readonly expected: number };
    readonly mode?: string;
    readonly stream?: { readonly state: string };
    readonly missed?: { readonly last24h: number; readonly total: number };
    readonly missedEvents?: readonly unknown[];
    readonly conditions?: readonly { readonly type: string; readonly lastTransitionTime: string }[];
  };
}

/** Waits for a report that is as expected. */
function reportOf(name: string, isAsExpected: (report: ReportObject) => boolean): Promise<ReportObject> {
  return waitFor(`the report of ${name}`, async () => {
    const found = await admin.get(PLEG_REPORTS, name);
    if (found === undefined || typeof found['status'] !== 'object') return undefined;
    const report = found as ReportObject;
    return isAsExpected(report) ? report : undefined;
  });
}

function start(pace: Partial<ReportPace> = {}): ReportWriter {
  const counts: Record<string, number> = {};
  counted = counts;
  const nodes = startNodeWatch({ kube: ours, log });
  const writer = startReportWriter({
    store,
    kube: ours,
    nodes,
    cluster: CLUSTER,
    log,
    onResult: (result) => {
      counts[result] = (counts[result] ?? 0) + 1;
    },
    pace: { ...FAST, ...pace },
  });
  running.push(writer, nodes);
  return writer;
}

/** Stores a node with an hour of evidence and so many misses; its report is due. */
async function storeNode(name: string, misses: number, state = {}): Promise<number> {
  const id = await evidence.node(name);
  await evidence.state(id, state);
  if (Object.keys(state).length === 0) await evidence.minutes(id, 60);
  for (let n = 0; n < misses; n++) await evidence.missed(id, `cart-${n}`);
  await evidence.due(id);
  return id;
}

/** Waits until the queue row is removed. */
async function dequeued(id: number): Promise<void> {
  await waitFor('the queue row is removed', async () => (await evidence.rows('report_queue', id)) === 0);
}

const kubectl = async (...args: string[]): Promise<string> =>
  (await run(where('kubectl'), ['--kubeconfig', server.kubeconfig, ...args])).stdout;

const nodeObject = (name: string) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } });

/** Exactly the permissions in the header of writer.ts. */
async function grant(): Promise<void> {
  const api = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'plegwatch-test' } };
  await admin.apply(ROLES, {
    ...api,
    kind: 'ClusterRole',
    rules: [
      { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
      {
        apiGroups: ['plegwatch.dev'],
        resources: ['plegreports'],
        verbs: ['get', 'list', 'create', 'patch', 'delete'],
      },
      { apiGroups: ['plegwatch.dev'], resources: ['plegreports/status'], verbs: ['patch'] },
    ],
  });
  await admin.apply(BINDINGS, {
    ...api,
    kind: 'ClusterRoleBinding',
    roleRef: { apiGroup: ROLES.group, kind: 'ClusterRole', name: 'plegwatch-test' },
    subjects: [{ apiGroup: ROLES.group, kind: 'Group', name: 'plegwatch' }],
  });
}
