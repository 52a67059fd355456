/*
 * What happened to a simulated runtime, from what it wrote down of itself. Times are milliseconds of the machine's wall clock,
 * whatever the clocks of runtime and agent were made to show.
 */

import type {
  EventFact,
  FaultFact,
  TransitionFact,
  TruthEntry,
  ViewFact,
} from '../../devtools/simulator/groundTruth.ts';
import type { EventType } from '../../src/protocol/record.ts';
import { type NoticedCall, relistsOf, type SeenRelist } from './relists.ts';

/** A stretch of time; one without an end goes on. */
export interface Stretch {
  readonly from: number;
  readonly to: number | null;
}

/** The agent's main process, its reader, or both did not run at all. */
export interface Stop {
  readonly who: 'agent' | 'reader' | 'both';
  readonly from: number;
  readonly to: number;
}

/** The wall clock of runtime and agent was moved by so much. */
export interface ClockStep {
  readonly at: number;
  readonly by: number;
}

/** What was done from outside, beside the runtime's own faults. */
export interface Interference {
  readonly stops: readonly Stop[];
  readonly steps: readonly ClockStep[];
}

export const UNTROUBLED: Interference = { stops: [], steps: [] };

/** The runtime ended the stream of a subscriber that had come at `opened`. */
export interface Break {
  readonly ms: number;
  readonly opened: number;
  readonly code: string;
}

/** An agent looks at its clock every second or so. */
const NOTICED = 1_500;

export type At<T> = T & { readonly ms: number };

const STAGE_OF = { created: 'CREATED', started: 'STARTED', stopped: 'STOPPED', deleted: 'DELETED' } as const;

/** Of a transition, as of the event that announces it. */
export const keyOf = ({ id, transition }: TransitionFact): string => `${id} ${STAGE_OF[transition]}`;

export class Happened {
  readonly transitions: readonly At<TransitionFact>[];
  /** Everything that was built, delivered or not. */
  readonly events: readonly At<EventFact>[];
  readonly deliveries: readonly At<EventFact>[];
  readonly views: readonly At<ViewFact>[];
  readonly end: number;
  /** When a subscriber came. */
  readonly openings: readonly number[];
  /** When somebody subscribed first. */
  readonly begun: number;
  readonly breaks: readonly Break[];
  readonly relists: readonly SeenRelist[];
  readonly stops: readonly Stop[];
  readonly steps: readonly ClockStep[];
  readonly #late: ReadonlySet<string | null>;
  readonly #when: ReadonlyMap<string, number>;

  constructor(entries: readonly TruthEntry[], calls: readonly NoticedCall[], { stops, steps }: Interference) {
    this.stops = stops;
    this.steps = steps;
    const timed = entries.map((entry) => ({ ...entry, ms: entry.at / 1000 }));
    this.transitions = timed.filter((entry) => entry.what === 'transition');
    this.events = timed.filter((entry) => entry.what === 'event');
    this.deliveries = this.events.filter(({ delivered }) => delivered);
    this.views = timed.filter((entry) => entry.what === 'view');
    this.end = timed.at(-1)?.ms ?? 0;
    this.openings = timed.flatMap((entry) =>
      entry.what === 'subscriber' && entry.change === 'opened' ? entry.ms : [],
    );
    this.begun = this.openings[0] ?? this.end;
    const faults = timed.filter((entry) => entry.what === 'fault');
    this.#late = new Set(faults.filter(({ fault }) => fault === 'state_late').map(({ id }) => id));
    this.breaks = faults
      .filter(({ fault }) => fault === 'break_stream')
      .flatMap((each) => this.#breakOf(each));
    const downs = faults.filter(({ fault }) => fault === 'down').map(({ ms }) => ms);
    this.relists = relistsOf(calls, downs);
    this.#when = new Map(this.transitions.map((each) => [keyOf(each), each.ms]));
  }

  #breakOf({ ms, detail }: At<FaultFact>): Break[] {
    const [, subscriber, code = ''] = /^subscriber (\d+) .* with (\w+)$/.exec(detail) ?? [];
    const opened = this.openings[Number(subscriber) - 1];
    return opened === undefined ? [] : [{ ms, opened, code }];
  }

  /** When a stage was reached; null where it never was. */
  when(id: string, type: EventType | null): number | null {
    return this.#when.get(`${id} ${type}`) ?? null;
  }

  /** Lists or statuses showed something else of it than what was, at some time. */
  isDoubtful(id: string): boolean {
    return this.#late.has(id) || this.views.some((each) => each.id === id);
  }

  /** How long the reader stood still within a stretch. */
  readerStoodStill(from: number, to: number): number {
    return this.stops
      .filter(({ who }) => who !== 'agent')
      .reduce((sum, stop) => sum + Math.max(0, Math.min(to, stop.to) - Math.max(from, stop.from)), 0);
  }

  /** Whether the wall clock showed the time of a moment before it was stepped, too, or may have: so it does after a step back. */
  isShownAgain(ms: number): boolean {
    const steps = this.steps.filter(({ at }) => at < ms);
    const movedBefore = (count: number) => steps.slice(0, count).reduce((sum, { by }) => sum + by, 0);
    const shown = ms + movedBefore(steps.length);
    return steps.some(({ at }, i) => {
      const since = steps[i - 1]?.at ?? Number.NEGATIVE_INFINITY;
      return shown > since + movedBefore(i) - NOTICED && shown < at + movedBefore(i) + NOTICED;
    });
  }

  /** The last relist that was over before a moment. */
  relistBefore(ms: number): SeenRelist | undefined {
    return this.relists.findLast(({ to }) => to < ms);
  }

  /** The first relist that began after a moment. */
  relistAfter(ms: number): SeenRelist | undefined {
    return this.relists.find(({ from }) => from > ms);
  }
}
