/*
 * The kubelet's own status, from records through Redis and ingest to the views, the report and `plegwatch finding`.
 */
import { randomUUID } from 'node:crypto';
import { beforeEach, expect, it } from 'vitest';
import { readFinding } from '../../src/analysis/finding/finding.ts';
import { findingText } from '../../src/analysis/finding/text.ts';
import { runReport } from '../../src/controller/reports/command.ts';
import type { EvidenceRecord } from '../../src/protocol/record.ts';
import { agentIncarnation, CLUSTER } from '../support/batches.ts';
import { IngestBed } from '../support/ingestBed.ts';
import { needs } from '../support/needs.ts';
import { hexId, missedFinding, nodeState, relistMinute } from '../support/records.ts';

const QUEUES = 2;
const SECOND = 1_000_000;
const NODE = 'node-a';
/** The bucket up to 512 ms, and the one without a bound. */
const [HALF_A_SECOND, BEYOND] = [9, 17];

const counts = (...buckets: readonly (readonly [bucket: number, count: number])[]) => {
  const last = Math.max(...buckets.map(([bucket]) => bucket));
  return Array.from({ length: last + 1 }, (_, i) => buckets.find(([bucket]) => bucket === i)?.[1] ?? 0);
};

needs('postgres', 'redis-server')('the knowledge of the kubelet', () => {
  const bed = new IngestBed(QUEUES);
  const { rows, sendInTurn } = bed;

  beforeEach(() => bed.start());

  const modeChange: EvidenceRecord = {
    ...{ type: 'mode_change', t: 0, notBefore: -1, model: 'EventedHint', from: 'Unknown', to: 'Generic' },
    ...{ reason: 'GateDisabled', proof: { v: 1 } },
  };

  it('kubelet lag is stored by minute and hour, and takes no room in a minute without any', async () => {
    const one = agentIncarnation(NODE, 1, 240_000);
    const lag = { starts: counts([1, 3]), stops: counts([HALF_A_SECOND, 2]) };
    const later = { starts: [], stops: counts([HALF_A_SECOND, 1], [BEYOND, 1]) };
    const minutes = [
      relistMinute({ t: 0, kubeletLag: lag }),
      relistMinute({ t: 60 * SECOND, kubeletLag: later }),
      relistMinute({ t: 120 * SECOND }),
    ];
    await sendInTurn(one.batch(1, [modeChange, ...minutes]));
    const stored = await rows(
      'SELECT kubelet_start_hist, kubelet_stop_hist FROM store.relist_minute ORDER BY seq',
    );
    expect(stored).toEqual([
      { kubelet_start_hist: lag.starts, kubelet_stop_hist: lag.stops },
      { kubelet_start_hist: null, kubelet_stop_hist: later.stops },
      { kubelet_start_hist: null, kubelet_stop_hist: null },
    ]);
    const shown = await rows(
      'SELECT event_type, transitions, p50_ms, p99_ms, mode, kubelet_version, seq FROM plegwatch.kubelet_lag_minutes ORDER BY seq, event_type',
    );
    const of = { mode: 'Generic', kubelet_version: 'v1.36.2' };
    expect(shown).toEqual([
      { ...of, event_type: 'STARTED', transitions: '3', p50_ms: 2, p99_ms: 2, seq: 2 },
      { ...of, event_type: 'STOPPED', transitions: '2', p50_ms: 512, p99_ms: 512, seq: 2 },
      { ...of, event_type: 'STOPPED', transitions: '2', p50_ms: 512, p99_ms: null, seq: 3 },
    ]);
    const hours = await rows(
      'SELECT event_type, store.hist_sum(hist) AS hist FROM plegwatch.kubelet_lag_hours GROUP BY event_type ORDER BY event_type',
    );
    expect(hours).toEqual([
      { event_type: 'STARTED', hist: lag.starts },
      { event_type: 'STOPPED', hist: counts([HALF_A_SECOND, 3], [BEYOND, 1]) },
    ]);
  });

  it('a miss and a late status say what the kubelet knew and until when, whatever else a proof holds', async () => {
    const one = agentIncarnation(NODE, 1, 240_000);
    const window = { from: 10 * SECOND, to: 12 * SECOND };
    const missed = (n: number, kubelet: unknown) =>
      missedFinding({ t: 42 * SECOND, containerId: hexId(n), window, proof: { v: 1, kubelet } });
    const late = missedFinding({
      ...{ t: 24 * SECOND, kind: 'kubelet_late', cause: 'not_shown', containerId: hexId(7), window },
      ...{ findingId: randomUUID(), lateness: 10 * SECOND },
      proof: {
        ...{ v: 1, evidence: 'listed exited', asked: 22 * SECOND, answered: 22.01 * SECOND },
        ...{ lateAfter: 10 * SECOND, watchSince: 5 * SECOND, podState: 'running' },
      },
    });
    const tookBack = { ...late, findingId: randomUUID(), containerId: hexId(8) };
    const findings = [
      missed(1, { is: 'shown', atLeast: 0.5 * SECOND, atMost: 2.5 * SECOND }),
      missed(2, { is: 'not_shown', until: 40 * SECOND }),
      missed(3, { is: 'not_observed', why: 'watch_gap' }),
      missed(4, undefined),
      missed(5, { is: 'shown', atLeast: 'long', atMost: { v: 1 } }),
      missed(6, { is: 'guessed', atLeast: 1 }),
      late,
      tookBack,
    ];
    const at50 = { type: 'finding_resolved', t: 50 * SECOND } as const;
    const resolved: EvidenceRecord[] = [
      { ...at50, findingId: late.findingId },
      { ...at50, findingId: tookBack.findingId, cause: 'state_went_back' },
    ];
    const read = () =>
      rows(
        `SELECT kubelet_knew, kubelet_why, kubelet_at_least_ms, kubelet_at_most_ms, publishing_min_ms, publishing_max_ms
         FROM plegwatch.findings ORDER BY seq`,
      );
    await sendInTurn(one.batch(1, findings));
    await rows(
      `INSERT INTO store.finding_update (finding_id, node_id, cluster_id, day, what, at, value_ms)
       SELECT finding_id, node_id, cluster_id, day, u.what, detected_at, u.ms
       FROM store.finding, (VALUES ('lag_min', 6000), ('lag_max', 9000)) AS u (what, ms) WHERE kind = 'missed'`,
    );
    const nothing = {
      ...{ kubelet_knew: null, kubelet_why: null, kubelet_at_least_ms: null, kubelet_at_most_ms: null },
      ...{ publishing_min_ms: null, publishing_max_ms: null },
    };
    const ofMisses = [
      {
        ...{ ...nothing, kubelet_knew: 'shown', kubelet_at_least_ms: 500, kubelet_at_most_ms: 2_500 },
        ...{ publishing_min_ms: 3_500, publishing_max_ms: 8_500 },
      },
      // The API server cannot have shown before what the kubelet did not know: another clock says when it did.
      { ...nothing, kubelet_knew: 'not_shown', kubelet_at_least_ms: 28_000, publishing_max_ms: 0 },
      { ...nothing, kubelet_knew: 'not_observed', kubelet_why: 'watch_gap' },
      nothing,
      { ...nothing, kubelet_knew: 'shown' },
      nothing,
    ];
    const ofLate = { ...nothing, kubelet_knew: 'not_shown', kubelet_at_least_ms: 10_000 };
    expect(await read()).toEqual([...ofMisses, ofLate, ofLate]);
    await sendInTurn(one.batch(9, resolved));
    expect(await read()).toEqual([...ofMisses, { ...ofLate, kubelet_at_most_ms: 40_000 }, ofLate]);

    const text = await bed.store.transaction(async (sql) => {
      const { only } = await readFinding(sql, late.findingId, null, undefined);
      if (only === undefined) throw new Error('The finding is not stored.');
      return findingText(only);
    });
    expect(text).toContain('for at least 10.0 s, and for at most 40.0 s');
    const proven = [
      'the status of the kubelet was watched without a gap from here on',
      'the kubelet was asked for the pod; its status showed the container running',
    ].map((fact) => text.indexOf(fact));
    expect(proven).toEqual(proven.toSorted((a, b) => a - b));
    expect(proven).not.toContain(-1);

    const report = await runReport({ store: bed.store, clusters: [CLUSTER], output: 'json' });
    const { findings24h } = JSON.parse(report.text).items[0].status;
    expect(findings24h).toContainEqual({ kind: 'kubelet_late', count: 2 });
  });

  it('a node says whether the status of its kubelet is watched', async () => {
    const one = agentIncarnation(NODE, 1, 60_000);
    const states = [{ podsApi: { state: 'Absent', reason: 'no_socket' } }, {}] as const;
    for (const [at, state] of states.entries()) {
      await sendInTurn(one.batch(at + 1, [nodeState(state)]));
      expect(await rows('SELECT pods_api_state, pods_api_reason FROM plegwatch.nodes')).toEqual([
        {
          pods_api_state: at === 0 ? 'Absent' : null,
          pods_api_reason: at === 0 ? 'no_socket' : null,
        },
      ]);
    }
  });
});
