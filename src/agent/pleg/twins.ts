/*
 * Twins: two containers of one pod and one name that ran at the same time, or two sandboxes of one pod that were ready.
 *
 * Two lists in a row that show both running are a proof, and so are exact times that overlap. One list is none: its items
 * are read one after the other.
 */
import type { Life } from './life.ts';

/** Overlaps shorter than this (in microseconds) are within what clocks and runtimes round. */
const LEAST_OVERLAP = 10_000;

export interface Twins {
  readonly one: Life;
  readonly other: Life;
  readonly cause: 'both_listed_running' | 'times_overlap';
}

/** `ranBefore` says whether the list before showed an id running. Each pair is found once. */
export function findTwins(lives: Iterable<Life>, ranBefore: (id: string) => boolean): Twins[] {
  const found: Twins[] = [];
  for (const group of groupsOf(lives)) {
    for (const [i, one] of group.entries()) {
      for (const other of group.slice(i + 1)) {
        const cause = one.twins.has(other.object.id) ? null : causeOf(one, other, ranBefore);
        if (cause === null) continue;
        one.twins.add(other.object.id);
        other.twins.add(one.object.id);
        found.push({ one, other, cause });
      }
    }
  }
  return found;
}

/** Lives that stand for the same thing in one pod; only groups of two and more. */
function groupsOf(lives: Iterable<Life>): Life[][] {
  const groups = new Map<string, Life[]>();
  for (const life of lives) {
    const { podUid, container, isSandbox } = life.object;
    if (podUid === '' || (!isSandbox && container === '')) continue;
    const key = `${podUid}/${isSandbox ? '' : container}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [life]);
    else group.push(life);
  }
  return [...groups.values()].filter((group) => group.length > 1);
}

function causeOf(one: Life, other: Life, ranBefore: (id: string) => boolean): Twins['cause'] | null {
  const runs = (life: Life) => life.state === 'running' && ranBefore(life.object.id);
  if (runs(one) && runs(other)) return 'both_listed_running';
  return overlap(one, other) > LEAST_OVERLAP ? 'times_overlap' : null;
}

/** How long both ran at the same time, by their exact times; 0 where one of them is not known. */
function overlap(one: Life, other: Life): number {
  const [, oneStarted, oneFinished] = one.moments;
  const [, otherStarted, otherFinished] = other.moments;
  if (oneStarted === null || otherStarted === null || oneFinished === null || otherFinished === null)
    return 0;
  return Math.min(oneFinished, otherFinished) - Math.max(oneStarted, otherStarted);
}
