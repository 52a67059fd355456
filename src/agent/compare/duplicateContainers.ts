/*
 * Twins: two containers of one pod and one name that ran at the same time, or two sandboxes of one pod that were ready.
 *
 * Two lists in a row that show both running are a proof, and so are times that overlap: exact ones, or for one that a list
 * shows running, the time of that list. One list is none: its items are read one after the other.
 */
import { type Mono, mono } from '../../protocol/units.ts';
import type { Life, Span } from './trackedContainer.ts';
import type { Lives } from './trackedContainers.ts';
import { STEP } from './wallClock.ts';

/** A shorter overlap is none: that far the wall clock may have been moved without anybody noticing. */
const LEAST_OVERLAP = STEP;

/** Of one name only so many are held against each other: a runtime may invent any number of them. */
const MOST_OF_ONE_NAME = 100;

export interface Twins {
  readonly one: Life;
  readonly other: Life;
  readonly cause: 'both_listed_running' | 'times_overlap';
  /** When both ran, by their times; null where lists alone say it. */
  readonly together: Span | null;
}

/** When lists show an id running: at the end of the one before and at the start of this one, where they do. */
export interface Running {
  readonly before: Mono | null;
  readonly now: Mono | null;
}

/** Who is of one name: on a quiet node the same from list to list, so it is found out anew only where lives or names changed. */
export class Namesakes {
  #groups: readonly Life[][] = [];
  #revision: number | null = null;

  among(lives: Lives): readonly Life[][] {
    if (this.#revision !== lives.revision) {
      this.#groups = groupsOf(lives);
      this.#revision = lives.revision;
    }
    return this.#groups;
  }
}

/** `runs` says what this list and the one before show of an id. Each pair of a group is found once. */
export function findTwins(groups: readonly Life[][], runs: (id: string) => Running): Twins[] {
  const found: Twins[] = [];
  for (const group of groups) {
    for (const [i, one] of group.entries()) {
      for (const other of group.slice(i + 1)) {
        const proof = one.twins.has(other.object.id) ? null : proofOf(one, other, runs);
        if (proof === null) continue;
        one.twins.add(other.object.id);
        other.twins.add(one.object.id);
        found.push({ one, other, ...proof });
      }
    }
  }
  return found;
}

/** Lives that stand for the same thing in one pod, the newest of them; only groups of two and more. */
function groupsOf(lives: Iterable<Life>): Life[][] {
  const crowded = new Set<string>();
  const sandboxes = new Set<string>();
  const containers = new Set<string>();
  for (const { object } of lives) {
    const { podUid, container, isSandbox } = object;
    if (podUid === '') continue;
    if (isSandbox) note(podUid, sandboxes, crowded);
    else if (container !== '') note(podUid, containers, crowded);
  }
  return crowded.size === 0 ? [] : groupsWithin(crowded, lives);
}

/** Most pods have one sandbox and one container: only those with two of a kind are looked at any further. */
function note(podUid: string, seen: Set<string>, crowded: Set<string>): void {
  if (seen.has(podUid)) crowded.add(podUid);
  else seen.add(podUid);
}

function groupsWithin(pods: ReadonlySet<string>, lives: Iterable<Life>): Life[][] {
  const groups = new Map<string, Life[]>();
  for (const life of lives) {
    const { podUid, container, isSandbox } = life.object;
    if (!pods.has(podUid) || (!isSandbox && container === '')) continue;
    const key = `${podUid}/${isSandbox ? '' : container}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [life]);
    else group.push(life);
  }
  return [...groups.values()]
    .filter((group) => group.length > 1)
    .map((group) => group.slice(-MOST_OF_ONE_NAME));
}

/** They may be found again. */
export function notTwins(one: Life, other: Life): void {
  one.twins.delete(other.object.id);
  other.twins.delete(one.object.id);
}

function proofOf(
  one: Life,
  other: Life,
  runs: (id: string) => Running,
): Pick<Twins, 'cause' | 'together'> | null {
  const lists = [runs(one.object.id), runs(other.object.id)] as const;
  if (lists.every(({ before, now }) => before !== null && now !== null)) {
    return { cause: 'both_listed_running', together: null };
  }
  const together = overlap(ranWithin(one, lists[0]), ranWithin(other, lists[1]));
  return together === null ? null : { cause: 'times_overlap', together };
}

/** A stretch in which an id ran all the time; null where its beginning or its end is not known. */
function ranWithin(
  { moments: [, started, finished], regressed }: Life,
  { before, now }: Running,
): Span | null {
  const from = started ?? before;
  const to = finished ?? now;
  // One that went back to running did not run all the time.
  return from === null || to === null || regressed ? null : { start: from, end: to };
}

function overlap(one: Span | null, other: Span | null): Span | null {
  if (one === null || other === null) return null;
  const start = mono(Math.max(one.start, other.start));
  const end = mono(Math.min(one.end, other.end));
  return end - start > LEAST_OVERLAP ? { start, end } : null;
}
