/*
 * What the store tells of a node, as rows. Times are milliseconds of the wall clock.
 */
import type { EventType } from '../../src/protocol/record.ts';
import type { Stretch } from './groundTruth.ts';

export type Kind =
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

export interface Finding extends Record<string, unknown> {
  readonly kind: Kind | 'stale';
  readonly type: EventType | null;
  readonly cause: string;
  readonly id: string;
  readonly detected: number;
  readonly resolved: number | null;
  readonly proof: Readonly<Record<string, unknown>>;
}

export interface Stored extends Record<string, unknown> {
  readonly id: string;
  readonly type: EventType;
  readonly received: number;
}

export interface Gap extends Stretch {
  readonly [column: string]: unknown;
  readonly scope: string;
  readonly cause: string;
}

/** What two relists in a row showed of one id. */
export interface Change extends Record<string, unknown> {
  readonly id: string;
  readonly old: string;
  readonly new: string;
  readonly from: number;
  readonly to: number;
}

/** One subscription, in the order in which they were opened. */
export interface Session extends Record<string, unknown> {
  readonly opened: number;
  readonly closed: number | null;
  readonly code: string | null;
}

export interface Evidence {
  readonly findings: readonly Finding[];
  readonly events: readonly Stored[];
  readonly gaps: readonly Gap[];
  readonly changes: readonly Change[];
  readonly sessions: readonly Session[];
}
