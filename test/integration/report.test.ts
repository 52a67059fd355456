/*
 * The report writer between a real Postgres and a real API server, with exactly the permissions that it documents.
 */
import { isDeepStrictEqual } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { NODE_RIGHTS, startNodeWatch } from '../../src/controller/nodes/nodeWatch.ts';
import { runReport } from '../../src/controller/reports/command.ts';
import { NODE_REPORT_RIGHTS } from '../../src/controller/reports/nodeReports.ts';
import {
  type ReportPace,
  type ReportWriter,
  type ReportWriterOptions,
  startReportWriter,
} from '../../src/controller/reports/writer.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { type KubeObject, NODES, PLEG_REPORTS } from '../../src/kube/object.ts';
import type { Batch } from '../../src/protocol/batch.ts';
import type { EvidenceRecord } from '../../src/protocol/record.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { commitTo } from '../support/committed.ts';
import { query, silent } from '../support/database.ts';
import { KubeBed } from '../support/kubeBed.ts';
import { needs } from '../support/needs.ts';
import { conditionsOf, installPlegReports } from '../support/plegreports.ts';
import { missedFinding, nodeState } from '../support/records.ts';
import { waitFor } from '../support/waitFor.ts';

/** How many reports are written at the same time. */
const AT_ONCE = 4;
const FAST: Partial<ReportPace> = {
  pollMs: 25,
  minIntervalMs: 100,
  staleCheckMs: 200,
  firstAgentMs: 50,
  backoff: { firstMs: 50, maxMs: 500 },
};

const bed = new KubeBed();
/** With the rights of a controller that does not own the schema. */
let controllerStore: Store;
let counted: Record<string, number>;
const running: { stop(): Promise<void> }[] = [];
/** As the owner of the schema. */
const sql = (text: string, ...values: unknown[]) => query(bed.postgres.url, text, values);

needs(
  'kube-apiserver',
  'etcd',
  'kubectl',
  'postgres',
)('the report writer', () => {
  beforeAll(async () => {
    controllerStore = await openStore({ databaseUrl: await controllerUrl(), log: silent });
    await installPlegReports(bed.admin);
    await grant();
  });
  afterEach(async () => {
    for (const program of running.splice(0)) await program.stop();
  });
  afterAll(() => controllerStore?.close());

  test('writes a report with the number of missed events', async () => {
    const id = await storeNode('appears', 3);
    await bed.admin.apply(NODES, nodeObject('appears'));
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
    const node = await bed.admin.get(NODES, 'appears');
    expect(report.metadata.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Node', name: 'appears', uid: node?.metadata.uid },
    ]);
    await dequeued(id);
    const { managedFields, ...metadata } = report.metadata;
    expect(managedFields).toBeDefined();
    expect(Buffer.byteLength(JSON.stringify({ ...report, metadata }))).toBeLessThanOrEqual(4096);
    const [header, row] = (await bed.kubectl('get', 'pleg', 'appears')).split('\n');
    expect(header).toMatch(/^NAME +MODE +STREAM +MISSED +LAST MISSED +COMPLETE +HELD UP BY +OBSERVED$/);
    expect(row).toMatch(/^appears +Unknown +Active +3 +[\dhms]+ +True +[\dhms]+$/);
  });

  test('agrees with `plegwatch report`, which prints the same as kubectl', async () => {
    await storeNode('unsafe', 0, { stream: 'Unsafe' });
    await bed.admin.apply(NODES, nodeObject('unsafe'));
    start();
    await reportOf('unsafe', ({ status }) => status.stream?.state === 'Unsafe');
    for (const output of ['table', 'wide'] as const) {
      await waitFor(`the ${output}s agree`, async () => {
        const wide = output === 'wide' ? ['-o', 'wide'] : [];
        const [theirs, own] = await Promise.all([
          bed.kubectl('get', 'plegreports', ...wide),
          runReport({ store: bed.store, clusters: [CLUSTER], output }).then(({ text }) => text),
        ]);
        if (withoutAges(theirs) !== withoutAges(own)) throw new Error(`${theirs}\n${own}`);
        return true;
      });
    }
  });

  test('each field that `plegwatch report -o json` and -o yaml print of a node is that of its PLEGReport', async () => {
    const id = await storeNode('agrees', 2);
    await bed.evidence.fallback(id, 'StreamBroke', 60);
    await bed.evidence.due(id);
    await storeNode('agrees-unsafe', 0, { stream: 'Unsafe', mode: 'Fallback', modeReason: 'StreamBroke' });
    const names = ['agrees', 'agrees-unsafe'];
    for (const name of names) await bed.admin.apply(NODES, nodeObject(name));
    start({ refreshMs: 500 });
    for (const output of ['json', 'yaml'] as const) {
      await waitFor(`kubectl and -o ${output} agree`, async () => {
        const theirs = parse(await bed.kubectl('get', 'plegreports', ...names, '-o', output));
        const own = parse(
          (await runReport({ store: bed.store, clusters: [CLUSTER], nodes: names, output })).text,
        );
        expect(comparable(own)).toEqual(comparable(theirs));
        return true;
      });
    }
  });

  test('kubectl and `plegwatch report` have the same status of every node, whatever is known of it', async () => {
    const agentSilent = await storeNode('same-silent', 1);
    await bed.evidence.silentFor(agentSilent, 600);
    await storeNode('same-missed', 3);
    await storeNode('same-unsafe', 0, { stream: 'Unsafe' });
    const fellBack = await storeNode('same-fallback', 0, { mode: 'Fallback', modeReason: 'StreamBroke' });
    await bed.evidence.fallback(fellBack, 'StreamBroke');
    const names = ['same-silent', 'same-missed', 'same-unsafe', 'same-fallback', 'same-never-seen'];
    for (const name of names) await bed.admin.apply(NODES, nodeObject(name));
    start();
    await waitFor('every status agrees', async () => {
      const [theirs, own] = await Promise.all([
        bed.kubectl('get', 'plegreports', '-o', 'json', ...names),
        runReport({ store: bed.store, clusters: [CLUSTER], nodes: names, output: 'json' }).then(
          ({ text }) => text,
        ),
      ]);
      const [written, read] = [statusesOf(theirs), statusesOf(own)];
      if (written.size !== names.length || !isDeepStrictEqual(written, read))
        throw new Error(`${JSON.stringify([...written])}\n${JSON.stringify([...read])}`);
      return true;
    });
    const { items } = JSON.parse(await bed.kubectl('get', 'plegreports', '-o', 'json', ...names));
    const ready = items.map((item: ReportObject) => conditionsOf(item).get('Ready'));
    expect(new Set(ready)).toEqual(new Set(['True', 'False']));
  });

  test('writes the report of a Node of whose kubelet nothing is known any more', async () => {
    await bed.admin.apply(NODES, nodeObject('forgets'));
    start();
    await reportOf('forgets', ({ status }) => status.kubelet?.model === 'Unknown');
    // Its agent reports, and does not say which model its kubelet has.
    await bed.evidence.seen('forgets');
    const { status } = await reportOf('forgets', (report) => report.status.stream?.state === 'Active');
    expect(status.kubelet).toBeUndefined();
  });

  test('does not write a report without a relevant change', async () => {
    const id = await storeNode('idle', 0);
    await bed.admin.apply(NODES, nodeObject('idle'));
    start();
    const before = await reportOf('idle', ({ status }) => status.mode === 'Unknown');
    await dequeued(id);
    await bed.evidence.minutes(id, 1);
    await bed.evidence.due(id);
    await dequeued(id);
    await waitFor('the result is counted', () => counted['unchanged']);
    const after = await bed.admin.get(PLEG_REPORTS, 'idle');
    expect(after?.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  });

  test('writes the last of several changes within the minimum interval, once', async () => {
    const id = await storeNode('burst', 0);
    await bed.admin.apply(NODES, nodeObject('burst'));
    start();
    await reportOf('burst', ({ status }) => status.mode === 'Unknown');
    await dequeued(id);
    for (const program of running.splice(0)) await program.stop();
    const writer = start({ minIntervalMs: 3_600_000 });
    for (const mode of ['Starting', 'Evented', 'Fallback']) {
      await bed.evidence.state(id, { mode });
      await bed.evidence.due(id);
    }
    await waitFor('the writer has looked at the Nodes', () => writer.health() === null);
    expect(counted['written']).toBeUndefined();
    const longAgo = "UPDATE store.report SET written_at = written_at - interval '1 hour' WHERE node_id = $1";
    await sql(longAgo, id);
    await reportOf('burst', ({ status }) => status.mode === 'Fallback');
    await dequeued(id);
    await waitFor('one write is counted', () => counted['written'] === 1);
  });

  test('writes an unchanged report again when it is old, with present counts', async () => {
    const id = await storeNode('old', 0);
    await bed.admin.apply(NODES, nodeObject('old'));
    start({ refreshMs: 1_000 });
    const first = await reportOf('old', ({ status }) => status?.observedAt !== undefined);
    await bed.evidence.minutes(id, 1);
    const again = await reportOf('old', ({ status }) => status?.observed24h?.expected === 244);
    await waitFor('the refresh is counted', () => (counted['refreshed'] ?? 0) > 0);
    expect(Date.parse(again.status.observedAt ?? '')).toBeGreaterThan(
      Date.parse(first.status.observedAt ?? ''),
    );
  });

  test('writes a change before the refreshes of other reports', async () => {
    const names = Array.from({ length: 40 }, (_, n) => `crowd-${n}`);
    const ids = await Promise.all(names.map((name) => storeNode(name, 0)));
    for (const name of names) await bed.admin.apply(NODES, nodeObject(name));
    start();
    for (const id of ids) await dequeued(id);
    for (const program of running.splice(0)) await program.stop();
    // All reports are old, and the budget allows one after the other. The change comes last.
    await bed.evidence.old(ids);
    const last = ids.at(-1) ?? 0;
    await bed.evidence.state(last, { mode: 'Fallback', modeReason: 'StreamBroke' });
    await bed.evidence.due(last);
    start({ writesPerSecond: 2 });
    await reportOf('crowd-39', ({ status }) => status.mode === 'Fallback');
    await waitFor('the other reports are refreshed', () => (counted['refreshed'] ?? 0) > 0);
    expect(await writtenBefore(last, 'crowd-')).toBeLessThan(AT_ONCE);
  });

  test('writes a change before the first reports of other Nodes', async () => {
    const changed = await storeNode('changes-first', 0);
    await bed.admin.apply(NODES, nodeObject('changes-first'));
    start();
    await dequeued(changed);
    for (const program of running.splice(0)) await program.stop();
    const others = Array.from({ length: 40 }, (_, n) => `first-${n}`);
    for (const name of others) {
      await storeNode(name, 0);
      await bed.admin.apply(NODES, nodeObject(name));
    }
    // It is due after all of them, and the budget allows one report after the other.
    await bed.evidence.state(changed, { mode: 'Fallback', modeReason: 'StreamBroke' });
    await bed.evidence.due(changed);
    start({ writesPerSecond: 2 });
    await dequeued(changed);
    await waitFor('first reports are written too', () => (counted['written'] ?? 0) > AT_ONCE);
    expect(await writtenBefore(changed, 'first-')).toBeLessThan(AT_ONCE);
  });

  test('writes a change of mode before the reports of Nodes whose agents have just started', async () => {
    const changed = await storeNode('changes-mode', 0, { mode: 'Evented' });
    await bed.admin.apply(NODES, nodeObject('changes-mode'));
    const others = Array.from({ length: 40 }, (_, n) => `starts-${n}`);
    for (const name of others) await bed.admin.apply(NODES, nodeObject(name));
    start();
    await dequeued(changed);
    for (const name of others) await reportOf(name, ({ status }) => status.mode === 'Unknown');
    for (const program of running.splice(0)) await program.stop();
    const rows = await sql("SELECT node_id AS id FROM store.node WHERE starts_with(name, 'starts-')");
    await bed.evidence.old(rows.map(({ id }) => Number(id)));
    for (const name of others) await bed.evidence.seen(name);
    await bed.evidence.state(changed, { mode: 'Fallback', modeReason: 'StreamBroke' });
    await bed.evidence.due(changed);
    start({ writesPerSecond: 2 });
    await reportOf('changes-mode', ({ status }) => status.mode === 'Fallback');
    await dequeued(changed);
    expect(await writtenBefore(changed, 'starts-')).toBeLessThan(AT_ONCE);
  });

  test('after a restart, agents of which nothing was stored meanwhile are judged when ingest has caught up, once, and cost nothing more', async () => {
    const names = ['silent-0', 'silent-1', 'silent-2'];
    const ids: number[] = [];
    for (const name of names) {
      ids.push(await storeNode(name, 0));
      await bed.admin.apply(NODES, nodeObject(name));
    }
    start();
    for (const id of ids) await dequeued(id);
    for (const program of running.splice(0)) await program.stop();
    for (const id of ids) await bed.evidence.silentFor(id, 600);
    const versions = () =>
      Promise.all(
        names.map(async (name) => (await bed.admin.get(PLEG_REPORTS, name))?.metadata.resourceVersion),
      );
    const before = await versions();

    let ingestCaughtUpForMs = 0;
    const statements: { readonly text: string; readonly values: readonly unknown[] }[] = [];
    const counting: Store = {
      ...controllerStore,
      run(statement, values = []) {
        statements.push({ text: statement.text, values });
        return controllerStore.run(statement, values);
      },
    };
    const timesRun = (part: string) => statements.filter(({ text }) => text.includes(part)).length;
    /** How often the report of one of the nodes was built. */
    const builds = () =>
      statements
        .filter(({ text }) => text.includes('Everything a report says'))
        .flatMap(({ values: [of] }) => (Array.isArray(of) ? of : []))
        .filter((id) => ids.includes(id)).length;
    start({}, [], { store: counting, ingestCaughtUpForMs: () => ingestCaughtUpForMs });
    await waitFor('some passes', () => timesRun('that are due in cluster') > 10);
    expect(builds()).toBe(0);
    expect(await versions()).toEqual(before);

    ingestCaughtUpForMs = 120_000;
    for (const name of names)
      await reportOf(name, ({ status }) =>
        (status.conditions ?? []).some(({ reason }) => reason === 'AgentSilent'),
      );
    for (const id of ids) await dequeued(id);
    const after = await versions();
    const checks = timesRun('may have changed with time alone');
    await waitFor('more checks', () => timesRun('may have changed with time alone') > checks + 3);
    expect(builds()).toBe(ids.length);
    expect(await versions()).toEqual(after);
  });

  test('deletes the report of a deleted Node, and the evidence stays', async () => {
    const id = await storeNode('leaves', 2);
    await bed.admin.apply(NODES, nodeObject('leaves'));
    start();
    await reportOf('leaves', () => true);
    await bed.admin.delete(NODES, 'leaves');
    await waitFor(
      'the report is deleted',
      async () => (await bed.admin.get(PLEG_REPORTS, 'leaves')) === undefined,
    );
    expect(await bed.evidence.rows('finding', id)).toBe(2);
    expect(await bed.evidence.rows('relist_minute', id)).toBe(60);
    await waitFor('the node leaves the table', async () => {
      const table = (await runReport({ store: bed.store, clusters: [CLUSTER], output: 'table' })).text;
      return table.includes('leaves') ? undefined : true;
    });
  });

  test('writes a new report, with what is known, for a Node that is registered again while its agent runs', async () => {
    const id = await storeNode('again', 1);
    await bed.evidence.runsUntil(id, 60);
    await bed.admin.apply(NODES, nodeObject('again'));
    start();
    const first = await reportOf('again', () => true);
    await bed.admin.delete(NODES, 'again');
    const node = await bed.admin.apply(NODES, nodeObject('again'));
    const second = await reportOf(
      'again',
      ({ metadata }) => metadata.ownerReferences[0]?.uid === node.metadata.uid,
    );
    expect(second.metadata.uid).not.toBe(first.metadata.uid);
    expect(second.status.missed).toMatchObject({ total: 1 });
  });

  test('another machine under the name of a Node inherits nothing of what was known, and its history stays', async () => {
    const clusterId = await bed.store.ensureCluster(CLUSTER);
    const before = agentIncarnation('replaced', 1, 600_000);
    /** A batch that was sealed five minutes ago. */
    const cutEarlier = (first: number, records: readonly EvidenceRecord[]): Batch => {
      const mono0 = 300_000_000 + first;
      const { startedMono } = before.batch(first, records);
      return before.batch(first, records, { mono0, wall0: startedMono + mono0 });
    };
    const state = nodeState({ mode: 'Generic' });
    await commitTo(bed.store, clusterId, [cutEarlier(1, [state, missedFinding()])]);
    // It was stored as soon as it was sealed.
    await sql(
      'UPDATE store.epoch SET delay_us = 0, last_seen = last_batch_at WHERE epoch = $1',
      before.epoch,
    );
    const first = await bed.admin.apply(NODES, nodeObject('replaced'));
    start();
    await reportOf('replaced', ({ status }) => status.missed?.total === 1);
    await bed.admin.delete(NODES, 'replaced');
    const second = await bed.admin.apply(NODES, nodeObject('replaced'));
    const isOfSecond = ({ metadata }: ReportObject) =>
      metadata.ownerReferences[0]?.uid === second.metadata.uid;
    const empty = await reportOf('replaced', isOfSecond);
    expect(empty.status.conditions).toContainEqual(
      expect.objectContaining({ type: 'AgentReporting', reason: 'NeverSeen' }),
    );
    expect(empty.status.missed?.total ?? 0).toBe(0);
    expect(empty.status.missedEvents).toEqual([]);
    expect(empty.status.mode).not.toBe('Generic');

    // The batches that the earlier machine had sent before it went away, then the agent of the new one.
    await commitTo(bed.store, clusterId, [cutEarlier(3, [missedFinding()])]);
    expect(await nodeRows('replaced')).toMatchObject([
      { first_seen: null, last_seen: null, mode: 'Unknown' },
    ]);
    const after = agentIncarnation('replaced', 2, 1_000);
    await commitTo(bed.store, clusterId, [after.batch(1, [nodeState({ mode: 'Evented' }), missedFinding()])]);
    const { status } = await reportOf('replaced', (report) => report.status.mode === 'Evented');
    expect(status.missed).toMatchObject({ total: 1, last24h: 1 });
    const history = await sql(
      `SELECT node_uid, (SELECT count(*)::int4 FROM plegwatch.findings f WHERE f.epoch = e.epoch) AS findings
               FROM plegwatch.epochs e WHERE node = 'replaced' ORDER BY started_at`,
    );
    expect(history).toEqual([
      { node_uid: first.metadata.uid, findings: 2 },
      { node_uid: second.metadata.uid, findings: 1 },
    ]);
    await bed.admin.delete(NODES, 'replaced');
    await waitFor(
      'its report is deleted',
      async () => (await bed.admin.get(PLEG_REPORTS, 'replaced')) === undefined,
    );
  });

  test('writes a report again that somebody has deleted', async () => {
    await storeNode('deleted', 0);
    await bed.admin.apply(NODES, nodeObject('deleted'));
    start();
    const first = await reportOf('deleted', () => true);
    await bed.admin.delete(PLEG_REPORTS, 'deleted');
    await reportOf('deleted', ({ metadata }) => metadata.uid !== first.metadata.uid);
  });

  test('after a restart deletes orphans, rewrites nothing and keeps the transition times of conditions', async () => {
    const [stays] = [await storeNode('stays', 0), await storeNode('orphan', 0)];
    await bed.admin.apply(NODES, nodeObject('stays'));
    await bed.admin.apply(NODES, nodeObject('orphan'));
    const former = start();
    const before = await reportOf('stays', () => true);
    await reportOf('orphan', () => true);
    await former.stop();
    await bed.admin.delete(NODES, 'orphan');
    start();
    await waitFor(
      'the orphan is deleted',
      async () => (await bed.admin.get(PLEG_REPORTS, 'orphan')) === undefined,
    );
    expect((await bed.admin.get(PLEG_REPORTS, 'stays'))?.metadata.resourceVersion).toBe(
      before.metadata.resourceVersion,
    );
    await bed.evidence.state(stays, { mode: 'Fallback', modeReason: 'StreamBroke' });
    await bed.evidence.due(stays);
    const after = await reportOf('stays', ({ status }) => status.mode === 'Fallback');
    const at = (report: ReportObject, type: string) =>
      report.status.conditions?.find((one) => one.type === type)?.lastTransitionTime;
    expect(at(after, 'Ready')).toBe(at(before, 'Ready'));
    expect(conditionsOf(after).get('EventedPLEGInUse')).toBe('False');
  });

  test('reports a silent agent without any new record', async () => {
    const id = await storeNode('silent', 0);
    await bed.admin.apply(NODES, nodeObject('silent'));
    start();
    await reportOf('silent', (report) => conditionsOf(report).get('AgentReporting') === 'True');
    await bed.evidence.silentFor(id, 200);
    await reportOf('silent', (report) => conditionsOf(report).get('Ready') === 'False');
  });

  test('writes a report for every Node, also without an agent, so that a wrong socket does not look like an empty cluster', async () => {
    for (const name of ['bare-a', 'bare-b']) await bed.admin.apply(NODES, nodeObject(name));
    start();
    for (const name of ['bare-a', 'bare-b']) {
      const { status } = await reportOf(
        name,
        (report) => conditionsOf(report).get('AgentReporting') === 'False',
      );
      expect(status).toMatchObject({ mode: 'Unknown', stream: { state: 'Unknown' } });
      const reason = status.conditions?.find(({ type }) => type === 'AgentReporting');
      expect(reason).toMatchObject({ reason: 'NeverSeen' });
    }
    const rows = await nodeRows('bare-a');
    expect(rows).toEqual([
      {
        first_seen: null,
        last_seen: null,
        mode: 'Unknown',
        stream_state: 'Unknown',
        mode_reason: 'NeverSeen',
      },
    ]);
    expect((await runReport({ store: bed.store, clusters: [CLUSTER], output: 'wide' })).text).toMatch(
      /^bare-a +Unknown +Unknown .*NeverSeen +\d+s$/m,
    );
  });

  test('a Node of the cluster no longer counts as one that only agents name', async () => {
    const id = await storeNode('named-first', 0);
    await sql('UPDATE store.node SET claimed_at = now() WHERE node_id = $1', id);
    await bed.admin.apply(NODES, nodeObject('named-first'));
    start();
    await dequeued(id);
    const rows = await sql('SELECT claimed_at FROM store.node WHERE node_id = $1', id);
    expect(rows).toEqual([{ claimed_at: null }]);
  });

  test('copies chosen labels of the Node to its report, and keeps them up to date', async () => {
    await storeNode('labelled', 0);
    const labelled = (labels: object) =>
      bed.admin.apply(NODES, { ...nodeObject('labelled'), metadata: { name: 'labelled', labels } });
    await labelled({ pool: 'gpu', zone: 'a', other: 'x' });
    const labelKeys = ['zone', 'pool'];
    const former = start({}, labelKeys);
    const labelsOf = (labels: object) =>
      reportOf('labelled', ({ metadata }) => isDeepStrictEqual(metadata['labels'], labels));
    const first = await labelsOf({ pool: 'gpu', zone: 'a' });
    expect((await bed.kubectl('get', 'pleg', '-l', 'pool=gpu', '-o', 'name')).trim()).toBe(
      'plegreport.plegwatch.dev/labelled',
    );
    await labelled({ pool: 'cpu', other: 'y' });
    const second = await labelsOf({ pool: 'cpu' });
    expect(second.metadata.uid).toBe(first.metadata.uid);
    await former.stop();
    await labelled({ pool: 'batch' });
    start({}, labelKeys);
    await labelsOf({ pool: 'batch' });
    expect(await bed.kubectl('get', 'pleg', '-l', 'pool=gpu', '-o', 'name')).toBe('');
  });

  test('reports can be selected by mode and by the state of the stream', async () => {
    const id = await storeNode('selected', 0);
    await bed.evidence.state(id, { mode: 'HintDisabled', stream: 'Starved' });
    await bed.admin.apply(NODES, nodeObject('selected'));
    start();
    await reportOf('selected', ({ status }) => status.mode === 'HintDisabled');
    for (const selector of [
      'status.mode=HintDisabled',
      'status.stream.state=Starved',
      'status.mode!=Unknown,status.stream.state=Starved',
    ]) {
      const found = await bed.kubectl('get', 'plegreports', '--field-selector', selector, '-o', 'name');
      expect(found.trim(), selector).toBe('plegreport.plegwatch.dev/selected');
    }
    expect(
      await bed.kubectl('get', 'plegreports', '--field-selector', 'status.mode=Evented', '-o', 'name'),
    ).toBe('');
  });

  test('nothing is left behind of a deleted Node that never had an agent', async () => {
    await bed.admin.apply(NODES, nodeObject('passes'));
    await bed.admin.apply(NODES, nodeObject('passes-while-stopped'));
    const former = start();
    for (const name of ['passes', 'passes-while-stopped'])
      await reportOf(name, ({ status }) => status.mode === 'Unknown');
    await bed.admin.delete(NODES, 'passes');
    await waitFor('its row is deleted', async () => (await nodeRows('passes')).length === 0);
    await former.stop();
    await bed.admin.delete(NODES, 'passes-while-stopped');
    start();
    await waitFor('its row is deleted', async () => (await nodeRows('passes-while-stopped')).length === 0);
    for (const name of ['passes', 'passes-while-stopped'])
      await waitFor(
        'its report is deleted',
        async () => (await bed.admin.get(PLEG_REPORTS, name)) === undefined,
      );
  });

  test('recorded conditions of a deleted Node without an agent stay', async () => {
    await bed.admin.apply(NODES, nodeObject('unwell'));
    start();
    await reportOf('unwell', ({ status }) => status.mode === 'Unknown');
    const id = await bed.evidence.condition('unwell', 'PLEG is not healthy');
    await bed.admin.delete(NODES, 'unwell');
    await waitFor(
      'the report is deleted',
      async () => (await bed.admin.get(PLEG_REPORTS, 'unwell')) === undefined,
    );
    await waitFor('the node leaves the table', async () => {
      const table = (await runReport({ store: bed.store, clusters: [CLUSTER], output: 'table' })).text;
      return table.includes('unwell') ? undefined : true;
    });
    expect(await bed.evidence.rows('node_condition', id)).toBe(1);
  });

  test('a Node whose agent starts soon gets one report, not one before that says that there is no agent', async () => {
    await bed.admin.apply(NODES, nodeObject('starts'));
    start({ firstAgentMs: 3_600_000 });
    await waitFor('the node is stored', async () => (await nodeRows('starts')).length === 1);
    await bed.evidence.seen('starts');
    const report = await reportOf('starts', () => true);
    expect(conditionsOf(report).get('AgentReporting')).toBe('True');
    expect((await nodeRows('starts'))[0]).toMatchObject({
      last_seen: expect.any(Date),
      first_seen: expect.any(Date),
    });
  });

  test('writes all reports after the API server was killed and restarted', async () => {
    const ids = await Promise.all(['out-a', 'out-b', 'out-c'].map((name) => storeNode(name, 0)));
    for (const name of ['out-a', 'out-b', 'out-c']) await bed.admin.apply(NODES, nodeObject(name));
    const writer = start();
    for (const name of ['out-a', 'out-b', 'out-c']) await reportOf(name, () => true);
    await bed.server.kill();
    for (const id of ids) {
      await bed.evidence.missed(id, 'cart-0');
      await bed.evidence.due(id);
    }
    await waitFor('the writer is not ready', () => (writer.health() === null ? undefined : true));
    expect(writer.alive()).toBeNull();
    expect(await Promise.all(ids.map((id) => bed.evidence.rows('report_queue', id)))).toEqual([1, 1, 1]);
    await bed.server.restart();
    for (const name of ['out-a', 'out-b', 'out-c']) {
      await reportOf(name, ({ status }) => status.missed?.last24h === 1);
    }
    await waitFor('the writer is ready', () => writer.health() === null);
  });

  test('an outage of Postgres does not make it list all reports again, and it does afterwards what changed meanwhile', async () => {
    let isAway = true;
    let refusals = 0;
    let lists = 0;
    const refuse = () => {
      refusals += 1;
      return Promise.reject(new Error('Connection terminated'));
    };
    const store: ReportWriterOptions['store'] = {
      ensureCluster: controllerStore.ensureCluster,
      query: (build) => (isAway ? refuse() : controllerStore.query(build)),
      run: (statement, values) => (isAway ? refuse() : controllerStore.run(statement, values)),
    };
    const kube: KubeClient = {
      ...bed.controller,
      list(resource, ...options) {
        if (resource === PLEG_REPORTS) lists += 1;
        return bed.controller.list(resource, ...options);
      },
    };
    const someRefusals = (): Promise<unknown> => {
      const before = refusals;
      return waitFor('some passes fail', () => refusals > before + 4);
    };
    await bed.admin.apply(NODES, nodeObject('outlasts'));
    start({}, [], { store, kube });
    await someRefusals();
    isAway = false;
    await reportOf('outlasts', () => true);
    isAway = true;
    await bed.admin.delete(NODES, 'outlasts');
    await someRefusals();
    isAway = false;
    await waitFor('its row is deleted', async () => (await nodeRows('outlasts')).length === 0);
    expect(await bed.admin.get(PLEG_REPORTS, 'outlasts')).toBeUndefined();
    expect(lists).toBe(1);
  });

  test('names verb and resource of a missing permission', async () => {
    await bed.revoke();
    const writer = start();
    await waitFor('the error is reported', () =>
      /does not let us list (nodes|plegreports)/.test(writer.health() ?? ''),
    );
    await expect(bed.controller.list(PLEG_REPORTS)).rejects.toMatchObject({
      code: 'KUBE_REFUSED',
      cure: expect.stringContaining('list on plegreports.plegwatch.dev'),
    });
  });
});

/** How many reports of Nodes with this prefix were written lately, but before that of node `id`. */
async function writtenBefore(id: number, prefix: string): Promise<number> {
  const [row] = await sql(
    `SELECT count(*)::int4 AS n FROM store.report r JOIN store.node n USING (node_id)
     WHERE starts_with(n.name, $2) AND r.written_at > now() - interval '4 hours'
       AND r.written_at < (SELECT c.written_at FROM store.report c WHERE c.node_id = $1)`,
    id,
    prefix,
  );
  return Number(row?.['n']);
}

interface ReportObject extends KubeObject {
  readonly status: {
    readonly observedAt?: string;
    readonly observed24h?: { readonly expected: number };
    readonly mode?: string;
    readonly kubelet?: { readonly model?: string };
    readonly stream?: { readonly state: string };
    readonly missed?: { readonly last24h: number; readonly total: number };
    readonly missedEvents?: readonly unknown[];
    readonly conditions?: readonly {
      readonly type: string;
      readonly reason: string;
      readonly lastTransitionTime: string;
    }[];
  };
}

/** The status of each node in a list as JSON, without the time at which it was built. */
function statusesOf(list: string): Map<string, object> {
  const { items } = JSON.parse(list) as { items: ReportObject[] };
  return new Map(items.map(({ metadata, status: { observedAt, ...status } }) => [metadata.name, status]));
}

/** Waits for a report that is as expected. */
function reportOf(name: string, isAsExpected: (report: ReportObject) => boolean): Promise<ReportObject> {
  return waitFor(`the report of ${name}`, async () => {
    const found = await bed.admin.get(PLEG_REPORTS, name);
    if (found === undefined || typeof found['status'] !== 'object') return undefined;
    const report = found as ReportObject;
    return isAsExpected(report) ? report : undefined;
  });
}

function start(
  pace: Partial<ReportPace> = {},
  labelKeys: readonly string[] = [],
  options: Partial<ReportWriterOptions> = {},
): ReportWriter {
  const counts: Record<string, number> = {};
  counted = counts;
  const nodes = startNodeWatch({ kube: bed.controller, log: silent, labelKeys });
  const writer = startReportWriter({
    store: controllerStore,
    kube: bed.controller,
    nodes,
    cluster: CLUSTER,
    log: silent,
    labelKeys,
    onResult: (result) => {
      counts[result] = (counts[result] ?? 0) + 1;
    },
    pace: { ...FAST, ...pace },
    ...options,
  });
  running.push(writer, nodes);
  return writer;
}

/** Stores a node with an hour of evidence and this many misses; its report is due. */
async function storeNode(name: string, misses: number, state = {}): Promise<number> {
  const id = await bed.evidence.node(name);
  await bed.evidence.state(id, state);
  if (Object.keys(state).length === 0) await bed.evidence.minutes(id, 60);
  for (let n = 0; n < misses; n++) await bed.evidence.missed(id, `cart-${n}`);
  await bed.evidence.due(id);
  return id;
}

/** `plegwatch report` observes now; a PLEGReport was written before. */
const withoutAges = (table: string): string =>
  table.replace(/ \d[\dhms]+/g, (age) => ' '.repeat(age.length)).replace(/ +$/gm, '');

/** The content of a list of reports: all but when each was written, and what the API server adds. */
const comparable = (list: { readonly items: readonly ReportObject[] }) =>
  list.items.map(({ apiVersion, kind, metadata, status: { observedAt, ...status } }) => {
    expect(observedAt).toMatch(/Z$/);
    return { apiVersion, kind, name: metadata.name, created: metadata['creationTimestamp'], status };
  });

const nodeRows = (name: string) =>
  sql(
    'SELECT first_seen, last_seen, mode, stream_state, mode_reason FROM plegwatch.nodes WHERE node = $1',
    name,
  );

/** Waits until the queue row is removed. */
async function dequeued(id: number): Promise<void> {
  await waitFor('the queue row is removed', async () => (await bed.evidence.rows('report_queue', id)) === 0);
}

const nodeObject = (name: string) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } });

async function controllerUrl(): Promise<string> {
  await sql("CREATE ROLE controller LOGIN PASSWORD 'controller'");
  await sql("SELECT store.grant_controller('controller')");
  const url = new URL(bed.postgres.url);
  url.username = url.password = 'controller';
  return url.href;
}

const grant = () => bed.grant([...NODE_RIGHTS, ...NODE_REPORT_RIGHTS]);
