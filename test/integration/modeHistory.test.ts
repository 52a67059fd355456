/*
 * A kubelet's mode in SQL, now and at any past moment: only what a scrape saw.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { SILENT_AFTER_MS } from '../../src/controller/reports/conditions.ts';
import type { EvidenceRecord, RecordOf } from '../../src/protocol/record.ts';
import { agentIncarnation, type BatchIncarnation } from '../support/batches.ts';
import { commitAll } from '../support/committed.ts';
import { query, startServer, type TestServer } from '../support/database.ts';
import { needs } from '../support/needs.ts';
import { hexId, missedFinding, nodeState, relistMinute } from '../support/records.ts';

const NODE = 'node-a';
const SECOND = 1_000_000;
const MINUTE_MS = 60_000;

let server: TestServer;
let databaseUrl: string;

const change = (
  seconds: number,
  from: string,
  to: string,
  reason: string,
  more: Partial<RecordOf<'mode_change'>> = {},
): EvidenceRecord => ({
  type: 'mode_change',
  t: seconds * SECOND,
  notBefore: seconds * SECOND,
  model: 'EventedCache',
  from,
  to,
  reason,
  proof: { v: 1 },
  ...more,
});

/** A minute with scrapes of the kubelet between two moments, in seconds since the start of the agent. */
const scraped = (from: number, to: number): EvidenceRecord =>
  relistMinute({
    t: from * SECOND,
    kubelet: {
      scraped: { from: from * SECOND, to: to * SECOND },
      ...{ relists: 1, hist: [1], intervals: 0, intervalSum: 0, lastSeenAge: null },
      ...{ discarded: null, streamErrors: null, listP99: null, resident: null },
    },
  });

const state = (mode: string, modeReason: string, more: Partial<RecordOf<'node_state'>> = {}) =>
  nodeState({ mode, modeReason, kubeletStreamErrors: 0, ...more });

const missedAt = (seconds: number): EvidenceRecord =>
  missedFinding({
    t: seconds * SECOND,
    containerId: hexId(seconds),
    window: { from: (seconds - 1) * SECOND, to: seconds * SECOND },
  });

/** An agent that started some minutes ago, and saw the kubelet evented from its 5th to its 240th second. */
const observing = (minutesAgo: number): [BatchIncarnation, EvidenceRecord[]] => [
  agentIncarnation(NODE, 1, minutesAgo * MINUTE_MS),
  [change(5, 'Unknown', 'Evented', 'Connected'), state('Evented', 'Connected'), scraped(5, 240)],
];

const commit = (incarnation: BatchIncarnation, records: readonly EvidenceRecord[], first = 1) =>
  commitAll(databaseUrl, [incarnation.batch(first, records)]);

/** The history, in seconds since the start of an agent. */
async function history({ epoch }: BatchIncarnation): Promise<string[]> {
  const rows = await query<{ seconds: number; from_mode: string; to_mode: string; reason: string }>(
    databaseUrl,
    `SELECT round(extract(epoch FROM m.at - e.started_at))::int4 AS seconds, from_mode, to_mode, reason
       FROM plegwatch.mode_changes m, plegwatch.epochs e WHERE e.epoch = $1 ORDER BY m.at, m.seq`,
    [epoch],
  );
  return rows.map(
    ({ seconds, from_mode, to_mode, reason }) => `${seconds} ${from_mode} ${to_mode} ${reason}`,
  );
}

const present = async () => (await query(databaseUrl, 'SELECT * FROM plegwatch.nodes'))[0];

const silence = () =>
  query(databaseUrl, `UPDATE store.node SET last_seen = now() - store.silent_after() - interval '1 second'`);

needs('postgres')('a mode in SQL', () => {
  beforeAll(async () => {
    server = await startServer();
  });
  beforeEach(async () => {
    databaseUrl = await server.database();
  });
  afterAll(() => server.stop());

  test('a mode ends at the last scrape of its agent, if the next one cannot scrape', async () => {
    const [one, records] = observing(20);
    await commit(one, records);
    expect(await history(one)).toEqual(['5 Unknown Evented Connected']);
    await commit(agentIncarnation(NODE, 2, 15 * MINUTE_MS), [state('Unknown', 'Tls')]);
    expect(await history(one)).toEqual(['5 Unknown Evented Connected', '240 Evented Unknown NotObserved']);
    const [ended] = await query(databaseUrl, 'SELECT * FROM plegwatch.mode_changes WHERE seq IS NULL');
    expect(ended).toMatchObject({ epoch: one.epoch, model: 'Unknown', kubelet_version: 'v1.36.2' });
    expect(ended?.['not_before']).toEqual(ended?.['at']);
  });

  test('a mode lasts if the next agent scrapes within two minutes and reports no change', async () => {
    const [one, records] = observing(20);
    // It started 241 s after the first one.
    const next = agentIncarnation(NODE, 2, 20 * MINUTE_MS - 241_000);
    await commit(one, records);
    await commit(next, [state('Evented', 'Connected'), scraped(110, 160)]);
    expect(await history(one)).toEqual(['5 Unknown Evented Connected']);
  });

  test('a mode that no agent observed for more than two minutes is Unknown in between, whatever the next one reports', async () => {
    const [one, records] = observing(20);
    const next = agentIncarnation(NODE, 2, 20 * MINUTE_MS - 241_000);
    await commit(one, records);
    await commit(next, [state('Evented', 'Connected'), scraped(130, 180)]);
    expect(await history(one)).toEqual([
      '5 Unknown Evented Connected',
      '240 Evented Unknown NotObserved',
      '371 Unknown Evented Connected',
    ]);
  });

  test('a change that the next agent reports at its first scrape is not reported twice', async () => {
    const [one, records] = observing(20);
    const next = agentIncarnation(NODE, 2, 20 * MINUTE_MS - 241_000);
    await commit(one, records);
    await commit(next, [change(130, 'Unknown', 'Fallback', 'StreamBroke'), scraped(130, 180)]);
    expect(await history(one)).toEqual([
      '5 Unknown Evented Connected',
      '240 Evented Unknown NotObserved',
      '371 Unknown Fallback StreamBroke',
    ]);
  });

  test('a record of the previous agent that arrives late moves the end of its mode', async () => {
    const [one, records] = observing(20);
    await commit(one, records);
    await commit(agentIncarnation(NODE, 2, 10 * MINUTE_MS), [state('Unknown', 'Tls')]);
    await commit(one, [scraped(250, 300)], records.length + 1);
    expect(await history(one)).toEqual(['5 Unknown Evented Connected', '300 Evented Unknown NotObserved']);
  });

  test('a mode that its own agent ended for want of scrapes is not ended twice', async () => {
    const [one, records] = observing(20);
    await commit(one, [...records, change(240, 'Evented', 'Unknown', 'NotObserved')]);
    await commit(agentIncarnation(NODE, 2, 10 * MINUTE_MS), [state('Unknown', 'Tls')]);
    expect(await history(one)).toEqual(['5 Unknown Evented Connected', '240 Evented Unknown NotObserved']);
  });

  test('the mode of a silent agent ends at its last scrape, and lasts again when later records arrive', async () => {
    const [one, records] = observing(20);
    await commit(one, records);
    await silence();
    expect(await history(one)).toEqual(['5 Unknown Evented Connected', '240 Evented Unknown NotObserved']);
    await commit(one, [scraped(250, 300)], records.length + 1);
    expect(await history(one)).toEqual(['5 Unknown Evented Connected']);
  });

  test('a finding has a mode only if an agent observed the kubelet at that time', async () => {
    const [one, records] = observing(20);
    await commit(one, [...records, missedAt(4), missedAt(100)]);
    const next = agentIncarnation(NODE, 2, 10 * MINUTE_MS);
    await commit(next, [state('Unknown', 'Tls'), missedAt(200)]);
    const modes = await query(databaseUrl, 'SELECT mode FROM plegwatch.findings ORDER BY window_to');
    expect(modes.map(({ mode }) => mode)).toEqual(['Unknown', 'Evented', 'Unknown']);
  });

  test('a finding between the scrapes around a change has no mode, and after a restart that of the new run', async () => {
    const [one, records] = observing(20);
    const fallback = change(60, 'Evented', 'Fallback', 'StreamBroke', { notBefore: 50 * SECOND });
    const restart = change(120, 'Fallback', 'Evented', 'KubeletRestarted', {
      notBefore: 112 * SECOND,
      proof: { v: 1, kubelet_restarted: 'start_time', after: { process_start: 1.75e9 } },
    });
    // Only a counter tells of this one.
    const unseen = change(180, 'Evented', 'Generic', 'GateDisabled', {
      notBefore: 170 * SECOND,
      proof: { v: 1, kubelet_restarted: 'counter_fell', after: { process_start: null } },
    });
    const missed = [49, 55, 60, 111, 113, 169, 171, 180].map(missedAt);
    await commit(one, [...records, fallback, restart, unseen, ...missed]);
    const modes = await query(databaseUrl, 'SELECT mode FROM plegwatch.findings ORDER BY window_to');
    expect(modes.map(({ mode }) => mode)).toEqual([
      ...['Evented', 'Unknown', 'Fallback', 'Fallback'],
      ...['Evented', 'Evented', 'Unknown', 'Generic'],
    ]);
  });

  test('a finding has the version of the kubelet that ran when its event was due, not of one that replaced it before the verdict', async () => {
    const [one, records] = observing(20);
    const restart = (seconds: number, proof: Record<string, unknown>) =>
      change(seconds, 'Evented', 'EventedHint', 'KubeletRestarted', {
        notBefore: (seconds - 8) * SECOND,
        proof: { v: 1, ...proof },
      });
    const started = { kubelet_restarted: 'start_time', after: { process_start: 1.75e9 } };
    // Only a counter tells when this one started.
    const unseen = { kubelet_restarted: 'counter_fell', after: { process_start: null } };
    const runs: readonly [string, EvidenceRecord[]][] = [
      ['v1.33.1', records],
      ['v1.36.2', [restart(100, started), ...[91, 93].map(missedAt)]],
      ['v1.37.0', [restart(140, unseen), ...[131, 133, 141].map(missedAt)]],
    ];
    let first = 1;
    for (const [no, [kubelet, of]] of runs.entries()) {
      const batch = one.batch(first, of);
      const context = { ...batch.context, no: no + 1, kubelet };
      await commitAll(databaseUrl, [{ ...batch, context }]);
      first += of.length;
    }
    const versions = 'SELECT kubelet_version AS version FROM plegwatch.findings ORDER BY window_to';
    const expected = ['v1.33.1', 'v1.36.2', 'v1.36.2', null, 'v1.37.0'];
    expect((await query(databaseUrl, versions)).map(({ version }) => version)).toEqual(expected);
    const facts = `SELECT substring(fact FROM 'kubelet (\\S+),') AS version FROM plegwatch.finding_evidence WHERE line = 90 ORDER BY container_id`;
    expect((await query(databaseUrl, facts)).map(({ version }) => version)).toEqual(
      expected.map((version) => version ?? 'unknown'),
    );
  });

  test('the report of an earlier agent says nothing of the present', async () => {
    const [one, records] = observing(20);
    await commit(one, records);
    expect(await present()).toMatchObject({
      mode: 'Evented',
      stream_state: 'Active',
      mode_reason: 'Connected',
    });
    const next = agentIncarnation(NODE, 2, MINUTE_MS);
    await commit(next, [scraped(1, 1)]);
    expect(await present()).toMatchObject({
      ...{ mode: 'Unknown', model: 'Unknown', mode_reason: 'NotReportedYet', stream_state: 'Unknown' },
      ...{ relist_healthy: null, kubelet_stream_errors: null },
    });
    await commit(next, [state('Unknown', 'NotObserved', { kubeletError: 'Tls' })], 2);
    expect(await present()).toMatchObject({
      mode: 'Unknown',
      mode_reason: 'NotObserved',
      kubelet_error: 'Tls',
    });
  });

  test('nothing unobserved is claimed of a silent agent', async () => {
    const [one, records] = observing(20);
    await commit(one, records);
    await silence();
    const row = await present();
    expect(row).toMatchObject({
      ...{ mode: 'Unknown', model: 'Unknown', mode_reason: 'AgentSilent' },
      ...{ stream_state: 'Unknown', stream_reason: 'AgentSilent', stream_since: null },
      ...{ relist_healthy: null, relist_reason: 'AgentSilent', kubelet_stream_errors: null },
    });
    const [last] = await query(databaseUrl, 'SELECT kubelet_seen_to FROM store.epoch');
    expect(row?.['mode_since']).toEqual(last?.['kubelet_seen_to']);
  });

  test('the views and the controller call an agent silent after the same time', async () => {
    const [row] = await query<{ ms: number }>(
      databaseUrl,
      'SELECT extract(epoch FROM store.silent_after())::float8 * 1000 AS ms',
    );
    expect(row?.ms).toBe(SILENT_AFTER_MS);
  });
});
