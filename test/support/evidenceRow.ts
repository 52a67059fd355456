/*
 * The evidence of a Node that is well, as it is read for its report, and the report that is built of it.
 */
import { type BuildOptions, buildStatus } from '../../src/controller/reports/build.ts';
import type { EvidenceRow, ListHangRow, NodeStateRow } from '../../src/controller/reports/evidence.ts';
import { HEAD_BYTES } from '../../src/protocol/recordChain.ts';

const NOW = '2026-11-20T12:00:00.250Z';
export const ago = (seconds: number) => new Date(Date.parse(NOW) - seconds * 1000).toISOString();
export const DAY = 86_400;

export const state: NodeStateRow = {
  stream_state: 'Active',
  stream_since: '2026-11-19T11:00:00.5+00:00',
  stream_reason: '',
  stream_error: '',
  relist_healthy: true,
  relist_reason: '',
  model: 'EventedCache',
  mode: 'Evented',
  mode_since: '2026-11-19T11:00:01+00:00',
  mode_reason: '',
  kubelet_error: null,
  kubelet_identity: 'Verified',
};

export const hang: ListHangRow = {
  list_call: 'ListContainers',
  from_at: ago(60.25),
  verdict: 'container',
  why: 'ListContainers waits for this container, whose status does not answer; others answer',
  ...{ pod_namespace: 'shop', pod_name: 'cart', container_name: 'app', container_id: 'c1' },
};

export const row: EvidenceRow = {
  node_id: 1,
  node: 'node-a',
  now: NOW,
  first_seen: ago(10 * DAY),
  last_seen: ago(5),
  created_at: ago(10 * DAY),
  written_at: null,
  status_digest: null,
  epoch: 'a1b2c3d4-0000-4000-8000-000000000001',
  complete_through: ago(6),
  attributed: true,
  ...{ head_seq: 1200, head_from: 1, head: Buffer.alloc(HEAD_BYTES, 7) },
  kubelet_seen_to: ago(15),
  agent_version: '0.1.0',
  runtime_name: 'containerd',
  runtime_version: '2.1.9',
  kubelet_version: 'v1.36.3',
  state,
  list_hang: null,
  boots: [],
  expected: 100,
  matched: 98,
  unobservable: 1,
  covered_us: (DAY - 60) * 1e6,
  observed_from: ago(DAY),
  observed_to: ago(60),
  p50_ms: 2.2,
  p99_ms: 11.01,
  relist_errors: 0,
  kubelet_stream_errors: null,
  kubelet_relist_period_ms: null,
  missed_total: 3,
  missed_last24h: 2,
  missed_resolved24h: 1,
  missed_last_at: ago(600),
  missed_oldest24h: ago(7200),
  findings: [{ kind: 'missed', count: 2 }],
  missed_events: [],
  mode_history: [],
  records_lost: false,
  conditions: [],
  ingest_caught_up_ms: 3_600_000,
};

export const build = (changes: Partial<EvidenceRow> = {}, options: BuildOptions = {}) =>
  buildStatus({ ...row, ...changes }, options);
export const withState = (changes: Partial<NodeStateRow>) => build({ state: { ...state, ...changes } });

export const miss = (n: number, text = 'p') => ({
  finding_id: `a1b2c3d4-0000-4000-8000-00000000000${n}`,
  at: '2026-11-20T11:00:00.123456+00:00',
  event_type: 'STOPPED',
  cause: 'unannounced_by_list',
  pod_namespace: 'shop',
  pod_name: text.repeat(250),
  container_name: 'cart',
  lag_ms: null,
});
