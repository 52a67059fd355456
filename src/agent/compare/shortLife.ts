/*
 * Short lives: what two lists, one right after the other, could not see of a container although the stream was covered.
 *
 *   life    absent, absent: it came and went between them
 *   start   absent, exited: no list saw it run
 *   exit    running, absent: no list saw how it ended
 *
 * How long the unseen part lasted is known between two bounds. Only exact times bound it from below: an event may have been
 * late, so the end that it announces is the latest possible, not the earliest. A Generic PLEG that lists every I milliseconds
 * misses what lasts L < I with probability 1 - L/I; the reader of the finding may work that out, it is never certain.
 *
 * Exact times are those of the wall clock, which may have been stepped since its last tick: a finding waits for the next one.
 */
import type { ListAnswer } from '../../protocol/observation.ts';
import { PROOF_VERSION, type RecordOf } from '../../protocol/record.ts';
import { between, type Micros, type Mono, millis, since } from '../../protocol/units.ts';
import type { ComparisonParts } from './comparisonParts.ts';
import { type Judgement, plainFinding, timesOf } from './findings.ts';
import { CREATED, DELETED } from './stages.ts';
import type { TrackedContainer, UnseenInterval } from './trackedContainer.ts';

export interface ShortLife {
  readonly cause: 'life' | 'start' | 'exit';
  readonly min: Micros;
  readonly max: Micros;
  /** The end of the list before, and the start of the one after: it happened between the two. */
  readonly before: Mono;
  readonly after: Mono;
}

export class ShortLives {
  readonly #parts: Pick<ComparisonParts, 'coverage' | 'emitter'>;
  /** Whether no list call failed since the answers before. */
  #consecutive = true;

  constructor(parts: Pick<ComparisonParts, 'coverage' | 'emitter'>) {
    this.#parts = parts;
  }

  listFailed(): void {
    this.#consecutive = false;
  }

  relisted(whole: boolean): void {
    this.#consecutive = whole;
  }

  /** A list shows a container exited that had not been shown exited. */
  exited(container: TrackedContainer, answer: ListAnswer, previous: ListAnswer | null): void {
    const cameSince = container.lists.shown === null && previous?.items.has(container.id) === false;
    if (cameSince) container.unseenRun = this.#interval(container, answer, previous);
  }

  /** Reports an unseen run as soon as it is known that the container ran. */
  reportUnseenRun(container: TrackedContainer): void {
    const { stages, times, unseenRun: interval } = container;
    if (interval === null || !stages.ran || times.proveFailedStart) return;
    this.#report(container, () => unseenRun(container, interval));
    container.unseenRun = null;
  }

  absent(container: TrackedContainer, answer: ListAnswer, previous: ListAnswer | null): void {
    const interval = this.#interval(container, answer, previous);
    if (interval === null || previous === null) return;
    const ranBefore = previous.items.get(container.id)?.state === 'running';
    if (ranBefore) this.#report(container, () => unseenExit(container, interval));
    else if (!container.lists.isListed) this.#report(container, () => wholeLife(container, interval));
  }

  /** The stretch between this answer and the one right before it, where all of it was covered. */
  #interval(
    { isSandbox }: TrackedContainer,
    answer: ListAnswer,
    previous: ListAnswer | null,
  ): UnseenInterval | null {
    if (isSandbox || !answer.whole || previous === null || !this.#consecutive) return null;
    if (!this.#parts.coverage.covers(previous.start)) return null;
    return {
      before: previous.end,
      after: answer.start,
      longest: between(previous.start, answer.end),
      end: answer.end,
    };
  }

  /** After a step of the clock, what `find` concludes from the times that still hold is reported. */
  #report(container: TrackedContainer, find: () => ShortLife | null): void {
    const { emitter } = this.#parts;
    const short = find();
    if (short === null) return;
    const judgement = emitter.judgement('short_life', short.cause, {});
    const finding = (each: ShortLife) => shortLifeFinding(judgement, container, each);
    emitter.emitUnlessStepped(container.identity, finding(short), () => {
      const left = find();
      if (left !== null) emitter.emit(container.identity, finding(left));
    });
  }
}

function shortLifeFinding(
  judgement: Judgement,
  container: TrackedContainer,
  short: ShortLife,
): RecordOf<'finding'> {
  const window = {
    from: since(judgement.epochStart, short.before),
    to: since(judgement.epochStart, short.after),
  };
  return {
    ...plainFinding(judgement, container.identity),
    window,
    proof: {
      v: PROOF_VERSION,
      lifeMinMs: short.min / 1000,
      lifeMaxMs: short.max / 1000,
      listBefore: window.from,
      listAfter: window.to,
      exactTimes: timesOf(container),
    },
  };
}

/** A container that no list showed was created, as its events say, and deleted. */
function wholeLife(
  { events, times }: TrackedContainer,
  { before, after, longest }: UnseenInterval,
): ShortLife | null {
  const [first, last] = [events.first(CREATED), events.first(DELETED)];
  if (last === null || first === null || first < before || last > after) return null;
  const { created, ranUntil } = times;
  // Events may be late: without an exact time it may all have happened before.
  if (created === null || created < before) return null;
  return { cause: 'life', min: lasted(created, ranUntil) ?? NO_TIME, max: longest, before, after };
}

/** A container that the first list to show it shows exited, and that is known to have run. */
function unseenRun({ times }: TrackedContainer, { before, after, longest }: UnseenInterval): ShortLife {
  const min = lasted(times.started, times.ranUntil) ?? NO_TIME;
  return { cause: 'start', min, max: lasted(times.started, times.finished) ?? longest, before, after };
}

/** A container that one list shows running and the next lacks. */
function unseenExit({ times }: TrackedContainer, { before, after, longest, end }: UnseenInterval): ShortLife {
  const max = lasted(times.finished, end) ?? longest;
  return { cause: 'exit', min: NO_TIME, max, before, after };
}

const NO_TIME = millis(0);

function lasted(from: Mono | null, to: Mono | null): Micros | null {
  return from === null || to === null ? null : millis(Math.max(0, to - from) / 1000);
}
