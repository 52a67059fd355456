/*
 * The evidence of one node: a row of sql/readEvidence.sql.
 */

export interface NodeStateRow {
  readonly stream_state: string;
  readonly stream_since: string;
  readonly stream_reason: string;
  readonly stream_error: string;
  readonly relist_healthy: boolean;
  readonly relist_reason: string;
  readonly model: string;
  readonly mode: string;
  readonly mode_since: string;
  readonly mode_reason: string;
  /** Why the last scrape of the kubelet failed, while that leaves its mode unknown. */
  readonly kubelet_error: string | null;
  readonly kubelet_identity: string | null;
}

export interface MissedEventRow {
  readonly finding_id: string;
  readonly at: string;
  readonly event_type: string | null;
  readonly cause: string;
  readonly pod_namespace: string | null;
  readonly pod_name: string | null;
  readonly container_name: string | null;
  readonly lag_ms: number | null;
}

export interface ModeChangeRow {
  readonly at: string;
  readonly from_mode: string;
  readonly to_mode: string;
  readonly reason: string;
}

/** The condition as of the last build, with its transition time. */
interface StoredConditionRow {
  readonly type: string;
  readonly status: string;
  readonly since: string;
}

export interface EvidenceRow {
  readonly node_id: number;
  readonly node: string;
  /** The database's clock. */
  readonly now: Date;
  /** When the first and the latest batch of the node's agents were stored; null if there was none. */
  readonly first_seen: Date | null;
  readonly last_seen: Date | null;
  /** When the report in Kubernetes was created; without a report, when the node was first seen, or now. */
  readonly created_at: Date;
  readonly written_at: Date | null;
  /** The `digestOf` of the last written status. */
  readonly status_digest: string | null;
  readonly epoch: string | null;
  readonly complete_through: Date | null;
  /** The last stored scrape of the kubelet, by any of the node's agents. */
  readonly kubelet_seen_to: Date | null;
  readonly agent_version: string;
  readonly runtime_name: string;
  readonly runtime_version: string;
  readonly kubelet_version: string;
  /** As last reported by the present agent; null until it has reported. */
  readonly state: NodeStateRow | null;
  readonly expected: number;
  readonly matched: number;
  readonly unobservable: number;
  readonly covered_us: number;
  /** The part of the last 24 hours that the counts cover; `observed_to` is null if there are none. */
  readonly observed_from: Date;
  readonly observed_to: Date | null;
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  readonly relist_errors: number | null;
  readonly kubelet_stream_errors: number | null;
  readonly kubelet_relist_period_ms: number | null;
  readonly missed_total: number;
  readonly missed_last24h: number;
  readonly missed_resolved24h: number;
  readonly missed_last_at: Date | null;
  readonly missed_oldest24h: Date | null;
  readonly findings: readonly { readonly kind: string; readonly count: number }[];
  readonly missed_events: readonly MissedEventRow[];
  readonly mode_history: readonly ModeChangeRow[];
  /** Some seqs of the last 24 hours are missing in the store. */
  readonly records_lost: boolean;
  readonly conditions: readonly StoredConditionRow[];
}
