/*
 * Short lives: what two lists, one right after the other, could not see of a container although the stream was covered.
 *
 *   life    absent, absent: it came and went between them
 *   start   absent, exited: nobody saw it run
 *   exit    running, absent: nobody saw how it ended
 *
 * How long what was overlooked lasted is known between two bounds. Only exact times bound it from below: an event may have
 * been late, so that what it says of the end of something is the latest, not the earliest. A Generic PLEG that lists every I milliseconds misses
 * what lasts L < I with the probability 1 - L/I; that is for a reader of the finding to work out, and never certain.
 */
import { type Micros, type Mono, millis } from '../../protocol/units.ts';
import { type Between, CREATED, DELETED, type Life } from './trackedContainer.ts';

export interface ShortLife {
  readonly cause: 'life' | 'start' | 'exit';
  readonly least: Micros;
  readonly most: Micros;
  /** The end of the list before, and the start of the one after: what happened did so between the two. */
  readonly before: Mono;
  readonly after: Mono;
}

/** A container that no list showed has been created, as its events say, and deleted. */
export function wholeLife(life: Life, { before, after, longest }: Between): ShortLife | null {
  const [first, last] = [life.heardAt[CREATED], life.heardAt[DELETED]];
  if (last === null || first === null || first < before || last > after) return null;
  const [created, , finished] = life.moments;
  // Events may be late: without an exact time it may all have been over before.
  if (created === null || created < before) return null;
  return { cause: 'life', least: lasted(created, finished) ?? NO_TIME, most: longest, before, after };
}

/** A container that the first list to show it shows exited. `life` is known to have run. */
export function unseenRun(life: Life, { before, after, longest }: Between): ShortLife {
  const [, started, finished] = life.moments;
  const exact = lasted(started, finished);
  return { cause: 'start', least: exact ?? NO_TIME, most: exact ?? longest, before, after };
}

/** A container that one list shows running and the next not at all. */
export function unseenExit(life: Life, { before, after, longest, end }: Between): ShortLife {
  const most = lasted(life.moments[2], end) ?? longest;
  return { cause: 'exit', least: NO_TIME, most, before, after };
}

const NO_TIME = millis(0);

function lasted(from: Mono | null, to: Mono | null): Micros | null {
  return from === null || to === null ? null : millis(Math.max(0, to - from) / 1000);
}
