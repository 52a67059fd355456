/*
 * Which transitions of a batch the pods are read for. Pure.
 *
 *   overdue   an agent said that the event of a start or an end has not come
 *   sample    an event that came as it should: a candidate, of which few are taken
 *   closer    a finding about an overdue one, that may say more closely when it happened
 */
import type { ContainerIdentity, RecordOf } from '../../protocol/record.ts';
import type { BatchTimes } from '../ingest/batchScope.ts';
import { ofType, type StorableRecord } from '../ingest/recordValidation.ts';
import { type Transition, transitionOf } from './bounds.ts';

export type LifeEvent = 'STARTED' | 'STOPPED';

/** A transition to watch, with the pod to read. */
export interface Watch extends Transition {
  readonly finding: string;
  readonly type: LifeEvent;
  readonly object: ContainerIdentity;
}

/** What is known of a batch. */
export interface Batched {
  readonly records: readonly StorableRecord[];
  readonly times: BatchTimes;
  readonly identities: ReadonlyMap<string, ContainerIdentity>;
}

/** The CRI's numbers of the two events that are looked at. */
const TYPES: Readonly<Record<number, LifeEvent>> = { 1: 'STARTED', 2: 'STOPPED' };

/** So far at most can the wall clock of a node be off that gave an exact time (the agent's src/agent/compare/wallClock.ts). */
const EXACT_WITHIN = 500_000;
/** An announced event is at most this much younger than what it announces; else it counts as late. */
const ANNOUNCED_WITHIN = 1_000_000;
/** Events that waited longer, before their batch was cut or after, say little of how fast a kubelet is. */
const FRESH = 10_000_000;

const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const POD = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** Whether the API server can have a pod of that name: the runtime says what it likes. */
export const isNamed = ({ namespace, pod, podUid }: ContainerIdentity): boolean =>
  NAMESPACE.test(namespace) && POD.test(pod) && podUid !== '';

/** The overdue transitions whose pod is named, and the findings of those whose is not. */
export function overdueOf({ records, times, identities }: Batched): { watches: Watch[]; unnamed: string[] } {
  const watches: Watch[] = [];
  const unnamed: string[] = [];
  for (const { record } of ofType(records, 'event_overdue')) {
    const object = identities.get(record.containerId);
    if (object === undefined || !isNamed(object)) {
      unnamed.push(record.findingId);
      continue;
    }
    const { findingId: finding, eventType: type } = record;
    watches.push({ finding, type, object, ...closest(times, record.window, record.occurred) });
  }
  return { watches, unnamed };
}

/** Events that may be taken as samples. */
export function announcedOf({ records, times, identities }: Batched): Omit<Watch, 'finding'>[] {
  const { storedAt, cutAt, epochStart } = times;
  const found = new Set(
    ofType(records, 'finding').map(({ record: { containerId: id, eventType: type } }) => `${id} ${type}`),
  );
  return ofType(records, 'container_event').flatMap(({ record }) => {
    const type = TYPES[record.eventType];
    const object = identities.get(record.containerId);
    if (type === undefined || record.isSandbox || record.replayed || object === undefined) return [];
    const isFresh = cutAt - record.t < FRESH && Math.abs(storedAt - epochStart - record.t) < FRESH;
    if (!isFresh || !isNamed(object) || found.has(`${record.containerId} ${type}`)) return [];
    const window = { from: record.t - ANNOUNCED_WITHIN, to: record.t };
    return [{ type, object, ...transitionOf(times, window) }];
  });
}

/** What findings say of transitions that may be watched. */
export function closerOf({ records, times }: Batched): (Transition & { readonly finding: string })[] {
  return ofType(records, 'finding').flatMap(({ record }) => {
    const { findingId: finding, window, occurred } = record;
    const about = record.eventType === 'STARTED' || record.eventType === 'STOPPED';
    if (!about || occurred === null) return [];
    return [{ finding, ...closest(times, window ?? ANY_TIME, occurred) }];
  });
}

/** The window of what only an exact time is known of. */
const ANY_TIME = { from: null, to: Number.POSITIVE_INFINITY };

/** The exact time, as far as it is trusted, where that is closer than the window. */
function closest(
  times: BatchTimes,
  window: RecordOf<'event_overdue'>['window'],
  occurred: number | null,
): Transition {
  if (occurred === null) return transitionOf(times, window);
  const exact = { from: occurred - EXACT_WITHIN, to: occurred + EXACT_WITHIN };
  // Lists may show for long what is over: then the window is too late. One that is too early is what nobody can know better.
  if (window.from !== null && exact.to < window.from) return transitionOf(times, exact);
  if (exact.from > window.to) return transitionOf(times, window);
  return transitionOf(times, {
    from: Math.max(window.from ?? exact.from, exact.from),
    to: Math.min(window.to, exact.to),
  });
}
