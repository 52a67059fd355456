/*
 * The evidence of one node, from which its report is built. Everything that an agent sent may be anything, within the types.
 */
import * as v from 'valibot';
import { bool, float8, text, timestamptz } from '../../store/schema/columns.ts';
import { epoch, node, nodeState, report } from '../../store/schema/tables.ts';
import { json, nullable, type RowOf, rowOf, statement } from '../../store/statement.ts';
import listTwoAgentsSql from './sql/listTwoAgents.sql';
import readEvidenceSql from './sql/readEvidence.sql';

const texts = <const K extends readonly string[]>(...names: K) => v.entriesFromList(names, v.string());
const someTexts = <const K extends readonly string[]>(...names: K) =>
  v.entriesFromList(names, v.nullable(v.string()));

/** `kubelet_error`: why the last scrape of the kubelet failed, while that leaves its mode unknown. */
const NodeState = v.object({
  ...texts('stream_state', 'stream_since', 'stream_reason', 'stream_error', 'relist_reason'),
  ...texts('model', 'mode', 'mode_since', 'mode_reason'),
  ...someTexts('kubelet_error', 'kubelet_identity'),
  relist_healthy: v.boolean(),
});
export type NodeStateRow = v.InferOutput<typeof NodeState>;

const MissedEvent = v.object({
  ...texts('finding_id', 'at', 'cause'),
  ...someTexts('event_type', 'pod_namespace', 'pod_name', 'container_name'),
  lag_ms: v.nullable(v.number()),
});
export type MissedEventRow = v.InferOutput<typeof MissedEvent>;

const ModeChange = v.object(texts('at', 'from_mode', 'to_mode', 'reason'));
export type ModeChangeRow = v.InferOutput<typeof ModeChange>;

/** `why`: see store.list_hang_why. */
const ListHang = v.object({
  ...texts('list_call', 'from_at', 'verdict', 'why'),
  ...someTexts('pod_namespace', 'pod_name', 'container_name', 'container_id'),
});
export type ListHangRow = v.InferOutput<typeof ListHang>;

const Boot = v.object(texts('boot_id', 'started_at'));
export type BootRow = v.InferOutput<typeof Boot>;

const FindingCount = v.object({ kind: v.string(), count: v.number() });
/** As of the last build, with its transition time. */
const StoredCondition = v.object(texts('type', 'status', 'since'));

/** The evidence of the nodes with these ids, ordered by name. */
export const readEvidence = statement(
  readEvidenceSql,
  rowOf({
    node_id: node.node_id,
    node: node.name,
    /** The database's clock. */
    now: timestamptz,
    /** When the first and the latest batch of the node's agents were stored; null if there was none. */
    first_seen: node.first_seen,
    last_seen: node.last_seen,
    /** When the report in Kubernetes was created; without a report, when the node was first seen, or now. */
    created_at: timestamptz,
    written_at: report.written_at,
    /** The `digestOf` of the last written status. */
    status_digest: report.status_digest,
    epoch: nullable(epoch.epoch),
    complete_through: epoch.complete_through,
    /** Whether every stored batch of the epoch was signed; null if there is none. */
    attributed: nullable(bool),
    /** The latest head that its node signed; null if there is none. */
    ...{ head_seq: epoch.head_seq, head_from: epoch.head_from, head: epoch.head },
    /** The last stored scrape of the kubelet, by any of the node's agents. */
    kubelet_seen_to: epoch.kubelet_seen_to,
    ...{ agent_version: text, runtime_name: text, runtime_version: text, kubelet_version: text },
    /** As last reported by the present agent; null until it has reported. */
    state: nullable(json(NodeState)),
    /** The list that the present agent waits for, as of its last minute; null if none hung then. */
    list_hang: nullable(json(ListHang)),
    /** Those whose agents run at the same time, at least two; none if one agent reports. */
    boots: json(v.array(Boot)),
    ...{ expected: float8, matched: float8, unobservable: float8, covered_us: float8 },
    /** The part of the last 24 hours that the counts cover; `observed_to` is null if there are none. */
    observed_from: timestamptz,
    observed_to: nullable(timestamptz),
    ...{ p50_ms: nullable(float8), p99_ms: nullable(float8), relist_errors: nullable(float8) },
    kubelet_stream_errors: nodeState.kubelet_stream_errors,
    kubelet_relist_period_ms: nullable(float8),
    ...{ missed_total: float8, missed_last24h: float8, missed_resolved24h: float8 },
    ...{ missed_last_at: nullable(timestamptz), missed_oldest24h: nullable(timestamptz) },
    findings: json(v.array(FindingCount)),
    missed_events: json(v.array(MissedEvent)),
    mode_history: json(v.array(ModeChange)),
    /** Some seqs of the last 24 hours are missing in the store. */
    records_lost: bool,
    conditions: json(v.array(StoredCondition)),
    /** For how long everything that agents sent was stored at once; 0 while evidence waits, and while no controller says so. */
    ingest_caught_up_ms: float8,
  }),
  'read_evidence',
);
export type EvidenceRow = RowOf<typeof readEvidence>;

export const listTwoAgents = statement(
  listTwoAgentsSql,
  rowOf({ node: node.name, boots: json(v.array(Boot)) }),
);
