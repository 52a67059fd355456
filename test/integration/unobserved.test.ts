/*
 * A kubelet and an agent that nobody observes any more, with the built programs: the report says so, and claims nothing else.
 */
import { copyFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LocalPlegwatch, PlegwatchSettings } from '../../devtools/localServices/plegwatch.ts';
import { type SimulatedRuntime, startSimulatedRuntime } from '../../devtools/simulator/runtime.ts';
import type { ReportStatus } from '../../src/controller/reports/status.ts';
import {
  type Authority,
  FakeKubelet,
  makeAuthority,
  metricsText,
  plain,
  removeAuthority,
} from '../support/fakeKubelet.ts';
import { needs } from '../support/needs.ts';
import { metric, System } from '../support/system.ts';
import { waitFor } from '../support/waitFor.ts';

const EVENTED = plain(metricsText({ gate: 1, successes: 1 }));
const REFUSED = plain('Forbidden', {}, 403);
/** Scrapes every second. A busy machine delays them, but not by so much. */
const SETTINGS = { intervalScrape: '1s', intervalModeConfirmed: '15s' };

let system: System;
let authority: Authority;
let runtime: SimulatedRuntime;
let kubelet: FakeKubelet;

needs(
  'kube-apiserver',
  'etcd',
  'kubectl',
  'redis-server',
  'postgres',
)('unobserved states', () => {
  beforeAll(async () => {
    authority = makeAuthority();
    kubelet = await FakeKubelet.start(authority);
    system = await System.start({ kube: true });
    runtime = await startSimulatedRuntime({
      socket: system.folder('cri.sock'),
      seed: 1,
      // Records all the time, so that an agent that runs is never silent.
      churn: { pods: 2, meanMs: 2_500, restarts: 1 },
    });
    await system.controller({ intervalSilence: '20s' });
  });
  afterAll(async () => {
    await system?.stop();
    await runtime?.stop();
    await kubelet?.stop();
    removeAuthority(authority);
  });

  test('the mode of a kubelet that cannot be scraped is Unknown since its last scrape, and the next agent does not inherit it', async () => {
    kubelet.answer = EVENTED;
    const agent = await agentOf('refused');
    await reportOf('refused', ({ mode }) => mode === 'Evented');
    kubelet.answer = REFUSED;
    await reportOf('refused', ({ mode }) => mode === 'Unknown');
    // Why it cannot scrape may be stored later than that it did not.
    const unseen = await reportOf('refused', (status) =>
      conditionOf(status).some((text) => text?.includes('Forbidden')),
    );
    expect(unseen.modeHistory[0]).toMatchObject({ from: 'Evented', to: 'Unknown', reason: 'NotObserved' });
    expect(unseen.modeSince).toBe(unseen.modeHistory[0]?.at);
    expect(unseen.kubelet).not.toHaveProperty('streamErrors');
    expect(conditionOf(unseen)).toEqual([
      'Unknown',
      'NotObserved',
      "The agent cannot read the kubelet's metrics: Forbidden.",
    ]);
    expect(await metric(agent, 'plegwatch_kubelet_mode{mode="Unknown"}')).toBe(1);
    expect(await metric(agent, 'plegwatch_kubelet_mode{mode="Evented"}')).toBe(0);
    const [row] = await system.sql(`SELECT * FROM plegwatch.nodes WHERE node = 'refused'`);
    expect(row).toMatchObject({ mode: 'Unknown', mode_reason: 'NotObserved', kubelet_error: 'Forbidden' });
    const ended = `SELECT c.at = e.kubelet_seen_to AS last_scrape FROM plegwatch.mode_changes c JOIN store.epoch e USING (epoch)
      WHERE c.node = 'refused' AND c.reason = 'NotObserved' ORDER BY c.at DESC LIMIT 1`;
    expect(await system.sql(ended)).toEqual([{ last_scrape: true }]);

    await system.end(agent);
    const next = await agentOf('refused');
    const after = await reportOf('refused', ({ agent: { epoch } }) => epoch !== unseen.agent.epoch);
    expect(after.mode).toBe('Unknown');
    expect(await metric(next, 'plegwatch_kubelet_mode{mode="Unknown"}')).toBe(1);
    expect(await system.sql(ended)).toEqual([{ last_scrape: true }]);
    await system.end(next);
  });

  test('the next agent does not inherit the mode of an agent that was killed while it was Evented', async () => {
    kubelet.answer = EVENTED;
    const agent = await agentOf('killed');
    const evented = await reportOf('killed', ({ mode }) => mode === 'Evented');
    await agent.kill();
    kubelet.answer = REFUSED;
    const next = await agentOf('killed');
    const after = await reportOf('killed', ({ agent: { epoch } }) => epoch !== evented.agent.epoch);
    expect(after.mode).toBe('Unknown');
    expect(conditionOf(after)[0]).toBe('Unknown');
    const [row] = await system.sql(`SELECT mode FROM plegwatch.nodes WHERE node = 'killed'`);
    expect(row).toEqual({ mode: 'Unknown' });
    expect(await metric(next, 'plegwatch_kubelet_mode{mode="Evented"}')).toBe(0);
    await system.end(next);
  });

  test('an agent whose kubelet has a broken CA file records everything else, says why the mode is Unknown, and reads the mended file', async () => {
    kubelet.answer = EVENTED;
    const kubeletCaFile = system.folder('kubelet-ca.crt');
    writeFileSync(kubeletCaFile, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
    const agent = await agentOf('broken-ca', { kubeletCaFile });
    const unseen = await reportOf(
      'broken-ca',
      (status) =>
        status.stream?.state === 'Active' &&
        conditionOf(status).some((text) => text?.includes('Credentials.')),
    );
    expect(unseen.mode).toBe('Unknown');
    expect(conditionOf(unseen)).toEqual([
      'Unknown',
      // The second one once the mode was not observed for long.
      expect.stringMatching(/^(Credentials|NotObserved)$/),
      "The agent cannot read the kubelet's metrics: Credentials.",
    ]);
    expect(
      await metric(agent, 'plegwatch_kubelet_scrape_errors_total{reason="Credentials"}'),
    ).toBeGreaterThan(0);
    expect(agent.log()).toContain(`${kubeletCaFile} contains a certificate that cannot be parsed`);
    await waitFor('events are recorded', async () => {
      const [row] = await system.sql(
        `SELECT count(*)::int4 AS events FROM plegwatch.container_events WHERE node = 'broken-ca'`,
      );
      return Number(row?.['events']) > 0 || undefined;
    });
    copyFileSync(authority.caFile, kubeletCaFile);
    await reportOf('broken-ca', ({ mode }) => mode === 'Evented');
    await system.end(agent);
  });

  test('a silent agent is Unknown with the time it was last seen, and a reporting one never has such a time', async () => {
    kubelet.answer = EVENTED;
    const agent = await agentOf('dead');
    await agentOf('alive');
    for (const node of ['dead', 'alive'])
      await reportOf(node, ({ mode, stream }) => mode === 'Evented' && stream?.state === 'Active');
    await agent.kill();
    const dead = await reportOf('dead', (status) => conditionOf(status)[1] === 'AgentSilent');
    expect(dead.mode).toBe('Unknown');
    expect(dead.stream).toMatchObject({ state: 'Unknown', since: dead.agent.lastSeen });
    expect(conditionOf(dead)[0]).toBe('Unknown');
    const alive = await reportOf('alive', ({ mode }) => mode === 'Evented');
    expect(alive.agent).not.toHaveProperty('lastSeen');
    // A busy machine can make an agent silent, break its stream or hold up the controller for a moment.
    const rows = await waitFor('the table', async () => {
      const table = await wideTable();
      const { alive = {}, dead: silent = {} } = table;
      const isSettled = alive['MODE'] === 'Evented' && alive['STREAM'] === 'Active';
      return isSettled && silent['REASON'] === 'AgentSilent' ? table : undefined;
    });
    expect(rows['alive']).toMatchObject({ 'LAST SEEN': '' });
    expect(rows['dead']).toMatchObject({
      ...{ MODE: 'Unknown', STREAM: 'Unknown', COMPLETE: 'False', REASON: 'AgentSilent' },
      'LAST SEEN': expect.stringMatching(/^\d+[smh]/),
    });
  });
});

async function agentOf(node: string, more: PlegwatchSettings = {}): Promise<LocalPlegwatch> {
  await system.addNode(node);
  return system.agent(node, runtime.socket, {
    ...SETTINGS,
    kubeletUrl: kubelet.url.href,
    kubeletCaFile: authority.caFile,
    ...more,
  });
}

function conditionOf({ conditions }: ReportStatus): (string | undefined)[] {
  const condition = conditions.find(({ type }) => type === 'EventedPLEGInUse');
  return [condition?.status, condition?.reason, condition?.message];
}

/** Waits for a report in Kubernetes. */
function reportOf(node: string, wanted: (status: ReportStatus) => boolean): Promise<ReportStatus> {
  return waitFor(`the report of ${node}`, async () => {
    const status = await system.publishedReport(node);
    if (!wanted(status)) throw new Error(`it is ${JSON.stringify(status)}`);
    return status;
  });
}

/** The output of `kubectl get pleg -o wide`: the cells of each node by the name of their column. */
async function wideTable(): Promise<Record<string, Record<string, string>>> {
  const [header = '', ...lines] = (await system.kubectl('get', 'pleg', '-o', 'wide')).trimEnd().split('\n');
  const columns = [...header.matchAll(/\S+(?: \S+)*/g)].map((match) => ({
    name: match[0],
    from: match.index,
  }));
  const cellsOf = (line: string) =>
    Object.fromEntries(
      columns.map(({ name, from }, at) => [name, line.slice(from, columns[at + 1]?.from).trim()]),
    );
  return Object.fromEntries(lines.map((line) => [line.split(' ')[0] ?? '', cellsOf(line)]));
}
