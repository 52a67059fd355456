/*
 * A finding with what it rests on, as the views have it. Times are in UTC, to the microsecond. Nobody has checked its texts.
 */

export interface FindingRow {
  readonly cluster: string;
  readonly node: string;
  readonly finding_id: string;
  readonly kind: string;
  readonly event_type: string | null;
  readonly cause: string | null;
  readonly container_id: string | null;
  readonly pod_uid: string | null;
  readonly pod_namespace: string | null;
  readonly pod_name: string | null;
  readonly container_name: string | null;
  readonly window_from: string | null;
  readonly window_to: string | null;
  readonly occurred_at: string | null;
  readonly detected_at: string;
  readonly resolved_at: string | null;
  readonly lateness_ms: number | null;
  readonly delivery_ms: number | null;
  readonly lag_min_ms: number | null;
  readonly lag_max_ms: number | null;
  readonly lag_anomalous: boolean | null;
  readonly lag_reason: string | null;
  readonly mode: string;
  readonly runtime_name: string | null;
  readonly runtime_version: string | null;
  readonly kubelet_version: string | null;
  readonly epoch: string;
  readonly seq: number;
  readonly proof: unknown;
}

/** A row of the view finding_evidence. */
export interface EvidenceLine {
  readonly line: number;
  readonly at: string | null;
  readonly until: string | null;
  readonly fact: string;
  readonly record: string | null;
}

export interface Finding {
  readonly finding: FindingRow;
  readonly evidence: readonly EvidenceLine[];
}
