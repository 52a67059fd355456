/*
 * What is to be said of one event that came, beside that it came. One thing at most, in this order:
 *
 *   duplicate      the same type came for this id before
 *   late           it comes after its `missed`, or is a STARTED or STOPPED received longer after its true time than allowed
 *   out_of_order   an event of a later stage of this id came before it
 *   stale          built before, and received more than the grace after, a list that had already shown its stage passed
 *
 * A replayed event is from before our subscription, and nothing is said of it.
 */
import { type Micros, type Mono, millis, shift } from '../../protocol/units.ts';
import { type Life, STARTED, STOPPED, type Stage } from './trackedContainer.ts';

export interface EventVerdict {
  readonly kind: 'duplicate' | 'late' | 'out_of_order' | 'stale';
  readonly cause: string;
  /** The true time of what it announces, where it is known. */
  readonly occurred: Mono | null;
  /** Whether it rests on a time of the wall clock. */
  readonly byWallClock: boolean;
  /** True time to receipt, and building to receipt; null where one of both is not known. Never negative. */
  readonly lateness: Micros | null;
  readonly delivery: Micros | null;
}

export interface Hearing {
  readonly stage: Stage;
  readonly received: Mono;
  /** When it was built, on the monotonic clock; null where that cannot be told. */
  readonly built: Mono | null;
  readonly overdueAfter: Micros;
  readonly lateAfter: Micros;
  /** When the reader had last taken everything, before it took this. */
  readonly drained: Mono;
  /** Whether everything since a moment was watched: a delay of our own is not the runtime's. */
  readonly watchedSince: (at: Mono) => boolean;
}

/** To be asked before the event counts as announced. */
export function judgeEvent(life: Life, hearing: Hearing): EventVerdict | null {
  const { stage, received, built } = hearing;
  const occurred = trueTime(life, stage);
  const lateness = elapsed(occurred, received);
  const delivery = elapsed(built, received);
  const verdict = (kind: EventVerdict['kind'], cause: string, byWallClock = false): EventVerdict => ({
    kind,
    cause,
    byWallClock,
    occurred,
    lateness,
    delivery,
  });
  if (life.standings[stage].is === 'announced') return verdict('duplicate', 'same_type_again');
  if (life.standings[stage].is === 'missed') return verdict('late', 'after_missed');
  if (isLate(occurred, lateness, hearing)) {
    const slowly = delivery !== null && lateness !== null && delivery > lateness / 2;
    return verdict('late', slowly ? 'delivered_late' : 'built_late', true);
  }
  if (life.furthest > stage) return verdict('out_of_order', 'after_a_later_stage');
  return isStale(life, hearing) ? verdict('stale', 'after_the_list', true) : null;
}

/** When a container started or stopped. Of a sandbox nobody says it, and other events have no time but their building. */
function trueTime(life: Life, stage: Stage): Mono | null {
  if (stage === STARTED) return life.moments[1];
  return stage === STOPPED ? life.moments[2] : null;
}

function isLate(occurred: Mono | null, lateness: Micros | null, hearing: Hearing): boolean {
  const { received, drained, lateAfter } = hearing;
  if (occurred === null || lateness === null || lateness <= lateAfter) return false;
  // A reader that was silent for so long could have made it late by itself: it may have been there all the time.
  if (received > shift(drained, lateAfter) && drained <= shift(occurred, lateAfter)) return false;
  return hearing.watchedSince(occurred);
}

function isStale(life: Life, { stage, received, built, overdueAfter, watchedSince }: Hearing): boolean {
  const passed = life.passed[stage];
  if (passed === null || built === null) return false;
  return built < passed.start && received > shift(passed.end, overdueAfter) && watchedSince(built);
}

function elapsed(from: Mono | null, to: Mono): Micros | null {
  return from === null ? null : millis(Math.max(0, to - from) / 1000);
}
