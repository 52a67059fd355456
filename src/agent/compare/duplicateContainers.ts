/*
 * Duplicate containers: two containers of one pod and name that ran at the same time, or two sandboxes of one pod that were
 * ready at the same time.
 *
 * Two lists in a row that show both running are proof, and so are times that overlap: exact ones, or the time of a list for
 * one that it shows running. One list is no proof: its items are read one after the other.
 */
import type { ListAnswer, Relist } from '../../protocol/observation.ts';
import { type Mono, mono } from '../../protocol/units.ts';
import type { Emitter } from './emitter.ts';
import { plainFinding, timesOf } from './findings.ts';
import type { TimeSpan } from './listHistory.ts';
import type { TrackedContainer } from './trackedContainer.ts';
import type { TrackedContainers } from './trackedContainers.ts';
import { CLOCK_STEP } from './wallClock.ts';

/** A shorter overlap proves nothing: the wall clock may have moved this far without being noticed. */
const MIN_OVERLAP = CLOCK_STEP;

/** A runtime may invent any number of containers of one name; only this many are compared with each other. */
const MAX_OF_ONE_NAME = 100;

/** The last whole answers before the present ones; null before the first. */
export interface PreviousAnswers {
  readonly sandboxes: ListAnswer | null;
  readonly containers: ListAnswer | null;
}

interface Duplicate {
  readonly one: TrackedContainer;
  readonly other: TrackedContainer;
  readonly cause: 'both_listed_running' | 'times_overlap';
  /** When both ran, by their times; null where lists alone prove it. */
  readonly together: TimeSpan | null;
}

/** When lists show an id running: at the end of the one before and at the start of this one, where they do. */
interface ListedRunning {
  readonly before: Mono | null;
  readonly now: Mono | null;
}

export class DuplicateContainers {
  readonly #emitter: Emitter;
  readonly #containers: TrackedContainers;
  /** Containers of one pod and name. On a quiet node these stay the same from list to list. */
  #groups: readonly TrackedContainer[][] = [];
  #identityVersion: number | null = null;

  constructor(emitter: Emitter, containers: TrackedContainers) {
    this.#emitter = emitter;
    this.#containers = containers;
  }

  report(relist: Relist, previous: PreviousAnswers): void {
    const running = (id: string): ListedRunning => ({
      before: runningIn(previous, id)?.end ?? null,
      now: runningIn(relist, id)?.start ?? null,
    });
    for (const { one, other, cause, together } of this.find(running)) {
      const listed = ({ id }: TrackedContainer) =>
        [runningIn(previous, id), runningIn(relist, id)].map((list) => list && this.#emitter.span(list));
      const judgement = this.#emitter.judgement('duplicate_container', cause, {
        other: other.id,
        together: together && this.#emitter.span(together),
        exactTimes: timesOf(one),
        exactTimesOfOther: timesOf(other),
        listedRunning: listed(one),
        listedRunningOfOther: listed(other),
      });
      const finding = plainFinding(judgement, one.identity);
      if (together === null) this.#emitter.emit(one.identity, finding);
      else this.#emitter.emitUnlessStepped(one.identity, finding, () => unlink(one, other));
    }
  }

  /** Finds each pair once. */
  find(running: (id: string) => ListedRunning): Duplicate[] {
    const found: Duplicate[] = [];
    for (const group of this.#currentGroups()) {
      for (const [i, one] of group.entries()) {
        for (const other of group.slice(i + 1)) {
          const proof = one.duplicates.has(other.id) ? null : proofOf(one, other, running);
          if (proof === null) continue;
          one.duplicates.add(other.id);
          other.duplicates.add(one.id);
          found.push({ one, other, ...proof });
        }
      }
    }
    return found;
  }

  #currentGroups(): readonly TrackedContainer[][] {
    const { identityVersion } = this.#containers;
    if (this.#identityVersion !== identityVersion) {
      this.#groups = groupsOf(this.#containers);
      this.#identityVersion = identityVersion;
    }
    return this.#groups;
  }
}

/** The answer that shows an id running; null where none does. */
const runningIn = ({ sandboxes, containers }: PreviousAnswers, id: string): ListAnswer | null =>
  [containers, sandboxes].find((answer) => answer?.items.get(id)?.state === 'running') ?? null;

/** The newest containers of each pod and name; only groups of two and more. */
function groupsOf(containers: Iterable<TrackedContainer>): TrackedContainer[][] {
  const crowded = new Set<string>();
  const withSandbox = new Set<string>();
  const withContainer = new Set<string>();
  for (const { identity } of containers) {
    const { podUid, container: name, isSandbox } = identity;
    if (podUid === '') continue;
    if (isSandbox) notePod(podUid, withSandbox, crowded);
    else if (name !== '') notePod(podUid, withContainer, crowded);
  }
  return crowded.size === 0 ? [] : groupsWithin(crowded, containers);
}

/** Most pods have one sandbox and one container: only those with two of a kind need a closer look. */
function notePod(podUid: string, seen: Set<string>, crowded: Set<string>): void {
  if (seen.has(podUid)) crowded.add(podUid);
  else seen.add(podUid);
}

function groupsWithin(
  pods: ReadonlySet<string>,
  containers: Iterable<TrackedContainer>,
): TrackedContainer[][] {
  const groups = new Map<string, TrackedContainer[]>();
  for (const each of containers) {
    const { podUid, container: name, isSandbox } = each.identity;
    if (!pods.has(podUid) || (!isSandbox && name === '')) continue;
    const key = `${podUid}/${isSandbox ? '' : name}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [each]);
    else group.push(each);
  }
  return [...groups.values()]
    .filter((group) => group.length > 1)
    .map((group) => group.slice(-MAX_OF_ONE_NAME));
}

/** They may be found again. */
function unlink(one: TrackedContainer, other: TrackedContainer): void {
  one.duplicates.delete(other.id);
  other.duplicates.delete(one.id);
}

function proofOf(
  one: TrackedContainer,
  other: TrackedContainer,
  running: (id: string) => ListedRunning,
): Pick<Duplicate, 'cause' | 'together'> | null {
  const lists = [running(one.id), running(other.id)] as const;
  if (lists.every(({ before, now }) => before !== null && now !== null)) {
    return { cause: 'both_listed_running', together: null };
  }
  const together = overlap(ranWithin(one, lists[0]), ranWithin(other, lists[1]));
  return together === null ? null : { cause: 'times_overlap', together };
}

/** A stretch in which a container ran all the time; null where its start or its end is not known. */
function ranWithin(
  { times: { started, ranUntil, proveFailedStart }, hasRegressed }: TrackedContainer,
  { before, now }: ListedRunning,
): TimeSpan | null {
  const from = started ?? before;
  const to = ranUntil ?? now;
  // One that went back to running did not run all the time, and one whose start failed did not run at all.
  const ran = !hasRegressed && !proveFailedStart;
  return from === null || to === null || !ran ? null : { start: from, end: to };
}

function overlap(one: TimeSpan | null, other: TimeSpan | null): TimeSpan | null {
  if (one === null || other === null) return null;
  const start = mono(Math.max(one.start, other.start));
  const end = mono(Math.min(one.end, other.end));
  return end - start > MIN_OVERLAP ? { start, end } : null;
}
