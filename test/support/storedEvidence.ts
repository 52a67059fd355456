/*
 * The rows that a store has of one node. Times are milliseconds of the wall clock.
 */
import type { EventType } from '../../src/protocol/record.ts';
import type { TimeRange } from './groundTruth.ts';

export type CheckedKind =
  | 'missed'
  | 'late'
  | 'out_of_order'
  | 'duplicate'
  | 'spurious'
  | 'unannounced'
  | 'short_life'
  | 'duplicate_container'
  | 'regression'
  | 'silent_stream'
  | 'unobservable';

export interface StoredFinding extends Record<string, unknown> {
  readonly kind: CheckedKind | 'stale';
  readonly type: EventType | null;
  readonly cause: string;
  readonly id: string;
  readonly detected: number;
  readonly resolved: number | null;
  /** Up to when the reader had read everything, by the proof; null where it does not say so. */
  readonly drained: number | null;
  readonly proof: Readonly<Record<string, unknown>>;
}

export interface StoredEvent extends Record<string, unknown> {
  readonly id: string;
  readonly type: EventType;
  readonly received: number;
}

export interface StoredGap extends TimeRange {
  readonly [column: string]: unknown;
  readonly scope: string;
  readonly cause: string;
}

/** The states in which two successive relists showed one container. */
export interface StoredChange extends Record<string, unknown> {
  readonly id: string;
  readonly old: string;
  readonly new: string;
  readonly from: number;
  readonly to: number;
}

export interface StoredSession extends Record<string, unknown> {
  readonly opened: number;
  readonly closed: number | null;
  readonly code: string | null;
}

export interface StoredEvidence {
  readonly findings: readonly StoredFinding[];
  readonly events: readonly StoredEvent[];
  readonly gaps: readonly StoredGap[];
  /** The gaps that say what first lists could not decide. */
  readonly firstLists: readonly TimeRange[];
  readonly changes: readonly StoredChange[];
  readonly sessions: readonly StoredSession[];
}

/** Identifies a finding by what it is about. */
export function nameOf({ kind, id, type, proof }: StoredFinding): string {
  if (kind === 'duplicate_container') return `${kind} ${[id, String(proof['other'])].sort().join(' and ')}`;
  return [kind, id, type].filter(Boolean).join(' ');
}
