/*
 * Findings, mode changes and verdicts, from a real Postgres to a real collector of OpenTelemetry.
 */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import {
  type CollectedRecord,
  type LocalCollector,
  startCollector,
} from '../../devtools/localServices/otelcol.ts';
import { type OtlpSenderOptions, startOtlpSender } from '../../src/controller/otlp/sender.ts';
import { listOutbox } from '../../src/controller/otlp/statements.ts';
import { command } from '../../src/store/statement.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { query, silent, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { EvidenceFixture } from '../support/storedRecords.ts';
import { waitFor } from '../support/waitFor.ts';

let server: TestServer;
let collector: LocalCollector;
let store: Store;
let databaseUrl: string;
let evidence: EvidenceFixture;
let sender: { stop(): Promise<void> } | undefined;
let counted: Record<string, number>;

needs('postgres', 'otelcol')('a collector of OpenTelemetry', () => {
  beforeAll(async () => {
    server = await startServer();
    collector = await startCollector();
  });
  afterEach(async () => {
    await sender?.stop();
    await store?.close();
  });
  afterAll(async () => {
    await collector?.stop();
    await server?.stop();
  });

  test('a finding says what the view says, by the semantic conventions', async () => {
    const cluster = await newCluster();
    await start(cluster);
    const id = await evidence.node('node-a');
    const findingId = await evidence.missed(id, 'cart-0');
    const [record, ...others] = await received(cluster, 1);
    expect(others).toEqual([]);
    expect(record?.resource).toEqual({
      ...{ 'service.name': 'plegwatch', 'k8s.cluster.name': cluster, 'k8s.cluster.uid': `uid of ${cluster}` },
      'k8s.node.name': 'node-a',
    });
    expect(record).toMatchObject({ eventName: 'plegwatch.finding', severityText: 'WARN' });
    expect(record?.body).toBe('missed STOPPED of shop/cart-0 cart');
    expect(record?.attributes).toMatchObject({
      'log.record.uid': `node-a/${findingId}`,
      'k8s.pod.name': 'cart-0',
      'k8s.pod.uid': 'uid of cart-0',
      'k8s.namespace.name': 'shop',
      'k8s.container.name': 'cart',
      'container.id': 'abc',
      'container.runtime.name': 'containerd',
      'plegwatch.kind': 'missed',
      'plegwatch.proof': '{}',
    });
    const [row] = await query<Record<string, unknown>>(
      databaseUrl,
      `SELECT to_jsonb(f) AS view, (extract(epoch FROM detected_at) * 1000000)::int8::text AS at FROM plegwatch.findings f WHERE finding_id = $1`,
      [findingId],
    );
    expect(record?.timeUnixNano).toBe(`${row?.['at']}000`);
    const said = Object.entries(row?.['view'] as object).filter(([, value]) => value !== null);
    // Beside the record's own id; cluster and node are said of the resource.
    expect(Object.keys(record?.attributes ?? {})).toHaveLength(said.length - 2 + 1);
    await waitFor('nothing waits any more', async () => (await waiting()) === 0);
  });

  test('a resolution and a fallback are records of their own', async () => {
    const cluster = await newCluster();
    await start(cluster);
    const id = await evidence.node('node-b');
    const findingId = await evidence.missed(id, 'cart-1');
    await query(
      databaseUrl,
      `INSERT INTO store.finding_update (finding_id, node_id, cluster_id, day, what, at)
       SELECT finding_id, node_id, cluster_id, day, 'resolved', detected_at + interval '1 second' FROM store.finding WHERE finding_id = $1`,
      [findingId],
    );
    await evidence.fallback(id, 'StreamBroke');
    const records = await received(cluster, 3);
    expect(records.map(({ eventName, severityText, body }) => [eventName, severityText, body])).toEqual([
      ['plegwatch.finding', 'WARN', 'missed STOPPED of shop/cart-1 cart'],
      ['plegwatch.finding_resolved', 'INFO', 'overdue STOPPED of shop/cart-1 cart: resolved'],
      ['plegwatch.mode_change', 'WARN', 'PLEG mode Evented -> Fallback: StreamBroke'],
    ]);
    expect(records[1]?.attributes['log.record.uid']).toBe(`node-b/${findingId}/resolved`);
    expect(records[2]?.attributes).toMatchObject({
      'plegwatch.to_mode': 'Fallback',
      'plegwatch.kubelet_version': 'v1.36.3',
    });
  });

  test('a verdict says what the view says, once the period has ended', async () => {
    const cluster = await newCluster();
    await start(cluster, { verdictsAfterMs: 0 });
    const id = await evidence.node('node-v');
    await evidence.slowRelist(id);
    await evidence.minutes(id, 1);
    await evidence.condition(
      'node-v',
      'PLEG is not healthy: pleg was last seen active 3m1s ago; threshold is 3m0s',
    );
    await received(cluster, 1);
    expect(await waiting()).toBe(0);
    await evidence.condition('node-v', '');
    await evidence.condition('node-v', 'container runtime is down');
    const records = await received(cluster, 2);
    expect(records.map(({ eventName, severityText, body }) => [eventName, severityText, body])).toEqual([
      ['plegwatch.pleg_verdict', 'WARN', 'PLEG slow: kubelet: only the kubelet waited for lists'],
      ['plegwatch.pleg_verdict', 'WARN', expect.stringMatching(/^PLEG unhealthy: unknown: /)],
    ]);
    const views = await query<{ view: object }>(
      databaseUrl,
      'SELECT to_jsonb(v) AS view FROM plegwatch.pleg_verdicts v ORDER BY kind',
    );
    for (const [i, { view }] of views.entries()) {
      const said = Object.entries(view).filter(
        ([key, value]) => value !== null && key !== 'cluster' && key !== 'node',
      );
      const { 'log.record.uid': uid, ...attributes } = records[i]?.attributes ?? {};
      expect(Object.keys(attributes)).toHaveLength(said.length);
      expect(uid).toMatch(/^node-v\/(slow|unhealthy)\/20/);
    }
    expect(await waiting()).toBe(0);
  });

  test('a verdict waits until evidence of its period had time to come', async () => {
    const cluster = await newCluster();
    await start(cluster);
    const id = await evidence.node('node-w');
    await evidence.slowRelist(id);
    await evidence.missed(id, 'not-waiting');
    const records = await received(cluster, 1);
    expect(records.map(({ eventName }) => eventName)).toEqual(['plegwatch.finding']);
    await waitFor('only the verdict waits', async () => (await waiting()) === 1);
    await query(databaseUrl, "UPDATE store.otlp_outbox SET added_at = added_at - interval '5 minutes'");
    await received(cluster, 2);
  });

  test('a verdict that Postgres takes too long to read is dropped and counted, and others are sent', async () => {
    const cluster = await newCluster();
    await start(cluster);
    await sender?.stop();
    const [slow, other] = [await evidence.node('node-s'), await evidence.node('node-t')];
    for (const id of [slow, other]) await evidence.slowRelist(id);
    await evidence.missed(other, 'behind');
    const run: Store['run'] = async (statement, values) => {
      const result = await store.run(statement, values);
      if ((statement as object) === listOutbox && JSON.stringify(result.rows).includes('node-s'))
        await store.run(command("BEGIN; SET LOCAL statement_timeout = '10ms'; SELECT pg_sleep(60)"));
      return result;
    };
    startSender(cluster, { store: { ...store, run }, verdictsAfterMs: 0 });
    await waitFor('nothing waits any more', async () => (await waiting()) === 0);
    const records = await received(cluster, 2);
    expect(records.map(({ eventName, resource }) => [eventName, resource['k8s.node.name']])).toEqual([
      ['plegwatch.pleg_verdict', 'node-t'],
      ['plegwatch.finding', 'node-t'],
    ]);
    await waitFor('both are counted as sent', () => counted['sent'] === 2);
    expect(counted['dropped']).toBe(1);
  });

  test('records that were stored while the collector was down, or while nobody led, are sent when both are back', async () => {
    const cluster = await newCluster();
    await start(cluster);
    const id = await evidence.node('node-c');
    await collector.kill();
    try {
      await evidence.missed(id, 'while-down');
      await sender?.stop();
      await evidence.missed(id, 'while-nobody-led');
      startSender(cluster);
    } finally {
      await collector.restart();
    }
    const records = await received(cluster, 2);
    expect(records.map(({ attributes }) => attributes['k8s.pod.name'])).toEqual([
      'while-down',
      'while-nobody-led',
    ]);
  });

  test('the outbox is bounded: the oldest are dropped and counted', async () => {
    const cluster = await newCluster();
    await start(cluster, { maxWaiting: 2 });
    const id = await evidence.node('node-d');
    await sender?.stop();
    for (const pod of ['first', 'second', 'third', 'fourth']) await evidence.missed(id, pod);
    startSender(cluster, { maxWaiting: 2 });
    const records = await received(cluster, 2);
    expect(records.map(({ attributes }) => attributes['k8s.pod.name'])).toEqual(['third', 'fourth']);
    // A collector writes before the sender has its answer.
    await waitFor('both are counted as sent', () => counted['sent'] === 2);
    expect(counted['dropped']).toBe(2);
  });

  test('without an endpoint nothing is put into the outbox, and it is emptied', async () => {
    const cluster = await newCluster();
    await start(cluster);
    const id = await evidence.node('node-e');
    await sender?.stop();
    await evidence.missed(id, 'waits');
    expect(await waiting()).toBe(1);
    startSender(cluster, { endpoint: undefined });
    await waitFor('the outbox is empty', async () => (await waiting()) === 0);
    await evidence.missed(id, 'not-in-outbox');
    expect(await waiting()).toBe(0);
  });

  test('a collector that refuses is asked again, and the error names the setting', async () => {
    const cluster = await newCluster();
    const logged: object[] = [];
    const log = Object.assign(Object.create(silent), { warn: (fields: object) => logged.push(fields) });
    await start(cluster, { endpoint: `${collector.url}/elsewhere`, log });
    await evidence.missed(await evidence.node('node-f'), 'cart-2');
    await waitFor('the refusal is logged twice', () => logged.length >= 2);
    expect(logged[0]).toMatchObject({ cure: expect.stringContaining('--otlp-endpoint') });
    expect(await waiting()).toBe(1);
  });

  test('a request that is too large is sent in parts, and a record that only it refuses is dropped once others are accepted', async () => {
    const strict = await startCollector(5_000);
    try {
      const cluster = await newCluster();
      const logged: object[] = [];
      const log = Object.assign(Object.create(silent), { warn: (fields: object) => logged.push(fields) });
      await start(cluster);
      await sender?.stop();
      const id = await evidence.node('node-g');
      const findingId = await evidence.missed(id, 'too-large');
      await query(
        databaseUrl,
        `UPDATE store.finding SET proof = jsonb_build_object('much', repeat('x', 6000)) WHERE finding_id = $1`,
        [findingId],
      );
      startSender(cluster, { endpoint: strict.url, log });
      await waitFor('the refusal is logged', () => logged.length > 0);
      expect(await waiting()).toBe(1);
      await sender?.stop();
      const pods = Array.from({ length: 12 }, (_, i) => `cart-${i}`);
      for (const pod of pods) await evidence.missed(id, pod);
      startSender(cluster, { endpoint: strict.url, log });
      await waitFor('nothing waits any more', async () => (await waiting()) === 0);
      // A busy collector may have stored what it has not answered in time: that is sent again.
      const written = () => [
        ...new Set(strict.records().map(({ attributes }) => attributes['k8s.pod.name'])),
      ];
      await waitFor('all are written', () => written().length >= pods.length);
      expect(written()).toEqual(pods);
      await waitFor('all are counted as sent', () => counted['sent'] === 12);
      expect(counted['dropped']).toBe(1);
    } finally {
      await strict.stop();
    }
  });

  test('findings to which an agent gave one id are each sent as stored', async () => {
    const cluster = await newCluster();
    await start(cluster);
    await sender?.stop();
    const id = await evidence.node('node-h');
    for (const pod of ['one', 'other']) await evidence.missed(id, pod);
    await query(
      databaseUrl,
      'UPDATE store.finding SET finding_id = (SELECT finding_id FROM store.finding LIMIT 1)',
    );
    startSender(cluster);
    await waitFor('nothing waits any more', async () => (await waiting()) === 0);
    const sent = await waitFor('two records', () => {
      const ofCluster = collector
        .records()
        .filter(({ resource }) => resource['k8s.cluster.name'] === cluster);
      // A busy collector is sent again the records that it has not answered in time.
      const pods = [...new Set(ofCluster.map(({ attributes }) => attributes['k8s.pod.name']))];
      return pods.length >= 2 && pods;
    });
    expect(sent).toEqual(['one', 'other']);
  });

  test('an answer that does not end is not waited for', async () => {
    const slow = await listen((_request, response) => {
      const timer = setInterval(() => response.write('.'), 20);
      response.on('close', () => clearInterval(timer));
    });
    try {
      const cluster = await newCluster();
      const logged: object[] = [];
      const log = Object.assign(Object.create(silent), { warn: (fields: object) => logged.push(fields) });
      await start(cluster, { endpoint: slow.url, log, maxRequestMs: 200 });
      await evidence.missed(await evidence.node('node-i'), 'cart-3');
      await waitFor('the failure is logged twice', () => logged.length >= 2);
      expect(await waiting()).toBe(1);
    } finally {
      await slow.stop();
    }
  });

  test('a sender that is stopped while it reads what waits sends nothing more', async () => {
    let requests = 0;
    const unanswering = await listen(() => {
      requests += 1;
    });
    try {
      const cluster = await newCluster();
      await start(cluster);
      await sender?.stop();
      await evidence.missed(await evidence.node('node-j'), 'cart-4');
      const stopped = Promise.withResolvers<void>();
      const run: Store['run'] = async (statement, values) => {
        const result = await store.run(statement, values);
        if ((statement as object) === listOutbox) stopped.resolve(sender?.stop());
        return result;
      };
      startSender(cluster, { endpoint: unanswering.url, store: { ...store, run } });
      await stopped.promise;
      expect(requests).toBe(0);
      expect(await waiting()).toBe(1);
    } finally {
      await unanswering.stop();
    }
  });

  test('a variable that the exporter cannot use is logged', async () => {
    const cluster = await newCluster();
    const logged: object[] = [];
    const log = Object.assign(Object.create(silent), { warn: (fields: object) => logged.push(fields) });
    vi.stubEnv('OTEL_EXPORTER_OTLP_CERTIFICATE', '/nowhere/ca.crt');
    try {
      startSender(cluster, { log });
      await waitFor('the warning', () => logged.length > 0);
    } finally {
      vi.unstubAllEnvs();
    }
    expect(logged).toEqual([{ error: expect.stringContaining('root certificate') }]);
  });
});

/** A server in the place of a collector that misbehaves as no real one does when it is asked to. */
async function listen(listener: RequestListener) {
  const http = createServer(listener);
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    stop: () =>
      new Promise<void>((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
}

let clusters = 0;

/** A database of its own, with one cluster. Returns its name. */
async function newCluster(): Promise<string> {
  clusters += 1;
  const name = `cluster-${clusters}`;
  databaseUrl = await server.database();
  store = await openStore({ databaseUrl, log: silent } as Parameters<typeof openStore>[0]);
  const id = await store.ensureCluster(name);
  await query(databaseUrl, 'UPDATE store.cluster SET uid = $2 WHERE cluster_id = $1', [id, `uid of ${name}`]);
  evidence = new EvidenceFixture(store, id);
  counted = {};
  return name;
}

function startSender(cluster: string, options: Partial<OtlpSenderOptions> = {}): void {
  sender = startOtlpSender({
    ...{ store, cluster, endpoint: collector.url, log: silent },
    onResult: (result, count) => {
      counted[result] = (counted[result] ?? 0) + count;
    },
    ...options,
  });
}

/** Starts a sender, and waits until what is stored is put into the outbox. */
async function start(cluster: string, options: Partial<OtlpSenderOptions> = {}): Promise<void> {
  startSender(cluster, options);
  const isSending = async () =>
    (
      await query(databaseUrl, 'SELECT FROM store.cluster WHERE name = $1 AND otlp_since IS NOT NULL', [
        cluster,
      ])
    ).length > 0;
  await waitFor('records are put into the outbox', isSending);
}

const waiting = async (): Promise<number> =>
  (await query(databaseUrl, 'SELECT FROM store.otlp_outbox')).length;

/** The records of a cluster that the collector has received, once there are as many. */
const received = (cluster: string, count: number): Promise<readonly CollectedRecord[]> =>
  waitFor(`${count} records of ${cluster}`, () => {
    const ofCluster = collector.records().filter(({ resource }) => resource['k8s.cluster.name'] === cluster);
    // A record may come twice.
    const byUid = new Map(ofCluster.map((each) => [each.attributes['log.record.uid'], each]));
    const found = [...byUid.values()];
    return found.length >= count ? found : undefined;
  });
