/*
 * Selects the transitions of a batch whose status lag is measured. Pure.
 *
 *   overdue    the event of a start or stop is overdue
 *   fallback   an event arrived, on a node whose kubelet fell back and keeps what events told it: each of them
 *   sample     a fresh event arrived: a candidate, few of which are measured
 *   narrowed   a finding about an overdue transition can narrow its bounds
 */
import type { ContainerIdentity, RecordOf } from '../../protocol/record.ts';
import type { BatchTimes } from '../ingest/batchScope.ts';
import { ofType, type StorableRecord } from '../ingest/recordValidation.ts';
import { type TimeBounds, transitionBounds } from './bounds.ts';
import type { TransitionType } from './statements.ts';

export interface NewWatch extends TimeBounds {
  readonly findingId: string;
  readonly type: TransitionType;
  readonly container: ContainerIdentity;
}

export interface StoredBatch {
  readonly records: readonly StorableRecord[];
  readonly times: BatchTimes;
  readonly identities: ReadonlyMap<string, ContainerIdentity>;
  /** An event that arrives later than this after its transition counts as late. */
  readonly lateAfter: number;
}

/** By the event type of the CRI. */
const TRANSITION_TYPES: Readonly<Record<number, TransitionType>> = { 1: 'STARTED', 2: 'STOPPED' };

/** Maximum error of an exact time (src/agent/compare/wallClock.ts). */
const MAX_EXACT_ERROR = 500_000;
/** Older events show little of how fast the kubelet is. */
const MAX_SAMPLE_AGE = 10_000_000;

const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const POD = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** Whether the API server can have a pod of this name: a runtime can report anything. */
export const hasValidPod = ({ namespace, pod, podUid }: ContainerIdentity): boolean =>
  NAMESPACE.test(namespace) && POD.test(pod) && podUid !== '';

/** The overdue transitions to watch, and the ids of findings without a valid pod. */
export function overdueWatches({ records, times, identities }: StoredBatch): {
  watches: NewWatch[];
  withoutPod: string[];
} {
  const watches: NewWatch[] = [];
  const withoutPod: string[] = [];
  for (const { record } of ofType(records, 'event_overdue')) {
    const container = identities.get(record.containerId);
    if (container === undefined || !hasValidPod(container)) {
      withoutPod.push(record.findingId);
      continue;
    }
    const { findingId, eventType: type, window, occurred } = record;
    watches.push({ findingId, type, container, ...narrowest(times, window, occurred) });
  }
  return { watches, withoutPod };
}

/** Its lag belongs to no finding. */
export interface AnnouncedTransition extends Omit<NewWatch, 'findingId'> {
  /** Whether it shows how fast the kubelet is: it did not wait long to be stored. */
  readonly isFresh: boolean;
}

/** The announced starts and stops of containers that no finding is about. */
export function announcedTransitions({
  records,
  times,
  identities,
  lateAfter,
}: StoredBatch): AnnouncedTransition[] {
  const { storedAt, sealedAt, epochStart } = times;
  const found = new Set(
    ofType(records, 'finding').map(({ record: { containerId: id, eventType: type } }) => `${id} ${type}`),
  );
  return ofType(records, 'container_event').flatMap(({ record }) => {
    const type = TRANSITION_TYPES[record.eventType];
    const container = identities.get(record.containerId);
    if (type === undefined || record.isSandbox || record.replayed || container === undefined) return [];
    if (!hasValidPod(container) || found.has(`${record.containerId} ${type}`)) return [];
    const isFresh =
      sealedAt - record.t < MAX_SAMPLE_AGE && Math.abs(storedAt - epochStart - record.t) < MAX_SAMPLE_AGE;
    const window = { from: record.t - lateAfter, to: record.t };
    return [{ type, container, isFresh, ...transitionBounds(times, window) }];
  });
}

/** Narrower bounds, from findings, of transitions that may be watched. */
export function narrowedBounds({
  records,
  times,
}: StoredBatch): (TimeBounds & { readonly findingId: string })[] {
  return ofType(records, 'finding').flatMap(({ record }) => {
    const { findingId, window, occurred } = record;
    const isTransition = record.eventType === 'STARTED' || record.eventType === 'STOPPED';
    if (!isTransition || occurred === null) return [];
    return [{ findingId, ...narrowest(times, window ?? ANY_TIME, occurred) }];
  });
}

/** For a finding that has only an exact time. */
const ANY_TIME = { from: null, to: Number.POSITIVE_INFINITY };

/** The intersection of the window and the exact time with its error. */
function narrowest(
  times: BatchTimes,
  window: RecordOf<'event_overdue'>['window'],
  occurred: number | null,
): TimeBounds {
  if (occurred === null) return transitionBounds(times, window);
  const exact = { from: occurred - MAX_EXACT_ERROR, to: occurred + MAX_EXACT_ERROR };
  // An exact time before the window is right: lists can be outdated. One after the window cannot be.
  if (window.from !== null && exact.to < window.from) return transitionBounds(times, exact);
  if (exact.from > window.to) return transitionBounds(times, window);
  return transitionBounds(times, {
    from: Math.max(window.from ?? exact.from, exact.from),
    to: Math.min(window.to, exact.to),
  });
}
