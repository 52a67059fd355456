/*
 * Short lives: what two lists, one right after the other, could not see of a container although the stream was covered.
 *
 *   life    absent, absent: it came and went between them
 *   start   absent, exited: nobody saw it run
 *   exit    running, absent: nobody saw how it ended
 *
 * How long what was overlooked lasted is known between two bounds. A Generic PLEG that lists every I milliseconds misses
 * what lasts L < I with the probability 1 - L/I; that is for a reader of the finding to work out, and never certain.
 */
import { between, type Micros, type Mono, millis } from '../../evidence/units.ts';
import { CREATED, DELETED, type Life, STOPPED } from './life.ts';

export interface ShortLife {
  readonly cause: 'life' | 'start' | 'exit';
  readonly least: Micros;
  readonly most: Micros;
  /** The end of the list before, and the start of the one after: what happened did so between the two. */
  readonly before: Mono;
  readonly after: Mono;
}

/** The stretch between two lists. */
export interface Between {
  readonly before: Mono;
  readonly after: Mono;
}

/** A container that no list showed has been created, as its events say, and deleted. */
export function wholeLife(life: Life, { before, after }: Between): ShortLife | null {
  const [first, last] = [life.heardAt[CREATED], life.heardAt[DELETED]];
  if (last === null || first === null || first < before || last > after) return null;
  return { cause: 'life', least: between(first, last), most: between(before, after), before, after };
}

/** A container that the first list to show it shows exited. `life` is known to have run. */
export function unseenRun(life: Life, { before, after }: Between): ShortLife {
  const [, started, finished] = life.moments;
  const exact = started === null || finished === null ? null : millis(Math.max(0, finished - started) / 1000);
  return { cause: 'start', least: exact ?? millis(0), most: exact ?? between(before, after), before, after };
}

/** A container that one list shows running and the next not at all. */
export function unseenExit(life: Life, { before, after }: Between): ShortLife {
  const [stopped, deleted] = [life.heardAt[STOPPED], life.heardAt[DELETED]];
  const exact = stopped === null || deleted === null ? null : millis(Math.max(0, deleted - stopped) / 1000);
  return { cause: 'exit', least: exact ?? millis(0), most: exact ?? between(before, after), before, after };
}
