/*
 * One epoch in the store, as values: the inputs of an audit.
 *
 * Times are microseconds since the epoch began, as the agent recorded them. Long parts are streams, in the order in which the agent recorded them.
 */

import type { PlegProfile } from '../protocol/eventProfile.ts';
import type { ContainerIdentity, PlegState } from '../protocol/record.ts';
import type { Micros, Mono } from '../protocol/units.ts';

export interface StoredEvent {
  readonly seq: number;
  readonly received: Mono;
  readonly id: string;
  /** Null where no record says whose it is. */
  readonly identity: ContainerIdentity | null;
  readonly type: number;
  readonly createdNs: bigint;
  readonly replayed: boolean;
  readonly hasSandboxStatus: boolean;
}

export interface StoredChange {
  readonly seq: number;
  readonly from: Mono;
  readonly to: Mono;
  readonly identity: ContainerIdentity;
  readonly oldState: PlegState;
  readonly newState: PlegState;
}

export interface StoredFinding {
  readonly seq: number;
  readonly at: Mono;
  readonly findingId: string;
  readonly kind: string;
  readonly eventType: string | null;
  readonly cause: string;
  readonly id: string | null;
  readonly from: Mono | null;
  readonly to: Mono | null;
  /** When its event was received after all, as far as that is stored. */
  readonly resolved: Mono | null;
  /** When another incarnation of the agent first received the event of this miss. */
  readonly announcedToOther: Mono | null;
  readonly proof: Readonly<Record<string, unknown>>;
}

interface ListCall {
  readonly start: Mono;
  readonly end: Mono;
  readonly whole: boolean;
}

export interface StoredRelist {
  readonly sandboxes: ListCall;
  readonly containers: ListCall;
  readonly failed: boolean;
  /** The events that were received until then were compared before it. */
  readonly eventsTo: Mono;
}

/** A minute of relists. */
export interface StoredMinute {
  readonly seq: number;
  readonly from: Mono;
  readonly to: Mono;
  /** The wall clock at its end, less `to`. */
  readonly clock: number;
  readonly relists: readonly StoredRelist[];
}

export interface StoredSession {
  readonly opened: Mono;
  /** Null where nothing says that it ended before the stored records do. */
  readonly closed: Mono | null;
  /** When its first event was built that was not replayed; null where all were, or none came. */
  readonly firstLiveNs: bigint | null;
}

/** A gap of the scope `stream` or `kubelet_status`. */
export interface StoredGap {
  readonly cause: string;
  readonly from: Mono;
  /** Null while it is open. */
  readonly to: Mono | null;
}

/** A session as it is stored, and what is stored of its events. */
export interface SessionRecord extends StoredSession {
  readonly no: number;
  readonly armed: Mono | null;
  readonly events: number;
  readonly replayed: number;
  readonly firstEvent: Mono | null;
  readonly storedEvents: number;
  readonly storedReplayed: number;
}

/** A gap of the stream as it is stored. */
export interface GapRecord extends StoredGap {
  readonly gapId: string;
  /** When an event was received within it. */
  readonly eventInside: Mono | null;
}

/** From `seq` on this runtime was observed. */
export interface StoredRuntime {
  readonly seq: number;
  readonly profile: PlegProfile;
}

export interface AgentSettings {
  readonly overdueAfter: Micros;
  readonly missedAfter: Micros;
  readonly lateAfter: Micros;
}

export interface StoredEpoch {
  /** From here on the records are there: 0, or later where older ones were deleted or are not asked for. */
  readonly start: Mono;
  /** Until here, by the last minute. */
  readonly end: Mono;
  /**
   * The seq of the last minute. Later records are of a minute that was not recorded, even where they are dated before `end`: a list that is answered
   * while the agent records a minute counts for the next.
   */
  readonly lastMinute: number;
  /** The wall clock at the start, less `start`; null where it is not known. */
  readonly clock: number | null;
  readonly settings: AgentSettings;
  /** At least one; in the order of their seqs. */
  readonly runtimes: readonly StoredRuntime[];
  readonly sessions: readonly StoredSession[];
  readonly gaps: readonly StoredGap[];
  /** Those of the scope `kubelet_status`. */
  readonly kubeletGaps: readonly StoredGap[];
  /** The state, in the first list, of the ids that changed since: nothing else is on record. */
  readonly initial: readonly { readonly identity: ContainerIdentity; readonly state: PlegState }[];
  readonly events: AsyncIterable<StoredEvent>;
  readonly changes: AsyncIterable<StoredChange>;
  readonly findings: AsyncIterable<StoredFinding>;
  readonly minutes: AsyncIterable<StoredMinute>;
}
