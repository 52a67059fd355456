/*
 * Classifies an event that came. It gets one finding at most, the first that fits:
 *
 *   duplicate      the same type came for this id before
 *   late           it comes after its `missed`, or is a STARTED or STOPPED received more than --late-after after its true time
 *   out_of_order   an event of a later stage of this id came before it
 *   stale          built before, and received more than --overdue-after after, a list that had already shown its stage passed
 *
 * A replayed event is from before our subscription and gets none.
 */
import { type Micros, type Mono, millis, shift } from '../../protocol/units.ts';
import { STARTED, STOPPED, type Stage } from './stages.ts';
import type { TrackedContainer } from './trackedContainer.ts';

export interface EventClassification {
  readonly kind: 'duplicate' | 'late' | 'out_of_order' | 'stale';
  readonly cause: string;
  /** The true time of what it announces, where it is known. */
  readonly occurred: Mono | null;
  /** Whether it rests on a time of the wall clock. */
  readonly byWallClock: boolean;
  /** From the true time, and from building, to receipt; null where one end is not known. Never negative. */
  readonly lateness: Micros | null;
  readonly delivery: Micros | null;
}

export interface EventContext {
  readonly stage: Stage;
  readonly received: Mono;
  /** When it was built, on the monotonic clock; null where that cannot be determined. */
  readonly built: Mono | null;
  readonly overdueAfter: Micros;
  readonly lateAfter: Micros;
  /** When the reader had last drained the socket, before it took this event. */
  readonly drained: Mono;
  /** Whether everything since a moment was covered: a delay of ours is not the runtime's. */
  readonly coveredSince: (at: Mono) => boolean;
}

/** Must be called before the event counts as announced. */
export function classifyEvent(
  container: TrackedContainer,
  context: EventContext,
): EventClassification | null {
  const { stage, received, built } = context;
  const occurred = trueTime(container, stage);
  const lateness = elapsed(occurred, received);
  const delivery = elapsed(built, received);
  const classified = (
    kind: EventClassification['kind'],
    cause: string,
    byWallClock = false,
  ): EventClassification => ({ kind, cause, byWallClock, occurred, lateness, delivery });
  const { is } = container.stages.standing(stage);
  if (is === 'announced') return classified('duplicate', 'same_type_again');
  if (is === 'missed') return classified('late', 'after_missed');
  if (isLate(occurred, lateness, context)) {
    const slowly = delivery !== null && lateness !== null && delivery > lateness / 2;
    return classified('late', slowly ? 'delivered_late' : 'built_late', true);
  }
  if (container.events.furthest > stage) return classified('out_of_order', 'after_a_later_stage');
  return isStale(container, context) ? classified('stale', 'after_the_list', true) : null;
}

/** When a container started or stopped. A sandbox has no such times, and other events have no time but their building. */
function trueTime({ times }: TrackedContainer, stage: Stage): Mono | null {
  if (stage === STARTED) return times.started;
  return stage === STOPPED ? times.finished : null;
}

function isLate(occurred: Mono | null, lateness: Micros | null, context: EventContext): boolean {
  const { received, drained, lateAfter } = context;
  if (occurred === null || lateness === null || lateness <= lateAfter) return false;
  // A reader that was silent for this long may have caused the delay: the event may have been in the socket all the time.
  if (received > shift(drained, lateAfter) && drained <= shift(occurred, lateAfter)) return false;
  return context.coveredSince(occurred);
}

function isStale(
  { lists }: TrackedContainer,
  { stage, received, built, overdueAfter, coveredSince }: EventContext,
): boolean {
  const passed = lists.passed(stage);
  if (passed === null || built === null) return false;
  return built < passed.start && received > shift(passed.end, overdueAfter) && coveredSince(built);
}

function elapsed(from: Mono | null, to: Mono): Micros | null {
  return from === null ? null : millis(Math.max(0, to - from) / 1000);
}
