/*
 * Makes few lines of many entries, in one pass and with bounded memory.
 *
 *   routine       events and changes become one line until something else happens
 *   repetition    of entries that say the same within a quarter of an hour of each other, the first three are shown, of findings that
 *                 accuse nobody the first one; the others become one line with their number, when the last one was, and their pods
 *
 * A folded repetition does not end a routine line: a stream that breaks every minute all night makes a handful of lines.
 */
import { isRoutine, type TimelineEntry } from './entry.ts';
import { isRepeatedSoon, pluralOf, sentenceOf, signatureOf } from './sentences.ts';

const SHOWN = 3;
const REPEATS_WITHIN_MS = 15 * 60_000;
const MAX_NAMES = 3;

export interface StoryLine {
  readonly at: string;
  readonly kind: string;
  readonly what: string;
  readonly text: () => string;
}

/** The entries left out for the limit. */
export interface Cut {
  entries: number;
  readonly from: string;
}

/** Entries that are shown as one line. */
class Group {
  readonly #counts = new Map<string, number>();
  readonly #pods = new Set<string>();
  #name = '';
  last = '';

  add(entry: TimelineEntry): void {
    const { at, until, kind, what, pod } = entry;
    this.#name ||= pluralOf(entry);
    const key = kind === 'event' || kind === 'change' ? `${kind}s` : what;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    if (pod !== null) this.#pods.add(pod);
    this.last = until !== null && until > at ? until : at;
  }

  routine(): string {
    const counts = [...this.#counts].map(([kind, n]) => `${n} ${n === 1 ? kind.slice(0, -1) : kind}`);
    return `${counts.join(' and ')} of ${this.#podsInWords()}, until ${timeOf(this.last)}`;
  }

  repetition(): string {
    const n = [...this.#counts.values()].reduce((sum, each) => sum + each, 0);
    const pods = this.#pods.size === 0 ? '' : `, ${this.#podsInWords()}`;
    return `… and ${n} more ${this.#name} until ${timeOf(this.last)}${pods}`;
  }

  #podsInWords(): string {
    const { size } = this.#pods;
    const names = [...this.#pods].slice(0, MAX_NAMES).join(', ');
    if (size === 0) return 'pods without a name';
    return size <= MAX_NAMES ? `pod${size === 1 ? '' : 's'} ${names}` : `${size} pods`;
  }
}

interface Streak {
  shown: number;
  lastMs: number;
  folded: Group | undefined;
}

const timeOf = (at: string): string => at.slice(11, 19);

export class Story {
  readonly #limit: number;
  readonly #every: boolean;
  readonly #streaks = new Map<string, Streak>();
  readonly lines: StoryLine[] = [];
  #routine: Group | undefined;
  cut: Cut | undefined;

  /** `every`: a line for each entry. */
  constructor(limit: number, every: boolean) {
    this.#limit = limit;
    this.#every = every;
  }

  add(entry: TimelineEntry): void {
    if (this.#every) this.#push(entry, () => sentenceOf(entry));
    else if (isRoutine(entry)) this.#addRoutine(entry);
    else this.#addOther(entry);
  }

  #addRoutine(entry: TimelineEntry): void {
    if (this.#routine === undefined) {
      const group = new Group();
      if (!this.#push({ ...entry, kind: 'routine' }, () => group.routine())) return;
      this.#routine = group;
    }
    this.#routine.add(entry);
  }

  #addOther(entry: TimelineEntry): void {
    const ms = Date.parse(entry.at);
    const signature = signatureOf(entry);
    let streak = this.#streaks.get(signature);
    if (streak === undefined || ms - streak.lastMs > REPEATS_WITHIN_MS) {
      streak = { shown: 0, lastMs: ms, folded: undefined };
      this.#streaks.set(signature, streak);
    }
    streak.lastMs = ms;
    if (streak.shown < (isRepeatedSoon(entry) ? 1 : SHOWN)) {
      streak.shown += 1;
      // A finding is about something that routine shows too, and does not end it.
      if (this.#push(entry, () => sentenceOf(entry)) && entry.kind !== 'finding') this.#routine = undefined;
      return;
    }
    if (streak.folded === undefined) {
      const group = new Group();
      if (!this.#push(entry, () => group.repetition())) return;
      streak.folded = group;
    }
    streak.folded.add(entry);
  }

  /** Returns whether there was room. */
  #push({ at, kind, what }: TimelineEntry, text: () => string): boolean {
    if (this.cut === undefined && this.lines.length < this.#limit) {
      this.lines.push({ at, kind, what, text });
      return true;
    }
    this.cut ??= { entries: 0, from: at };
    this.cut.entries += 1;
    return false;
  }
}
