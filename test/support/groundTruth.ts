/*
 * The history of a simulated runtime, as it recorded it. Times are milliseconds of the machine's wall clock, whatever the clocks of runtime and agent
 * show.
 */

import type {
  EventFact,
  FaultFact,
  TransitionFact,
  TruthEntry,
  ViewFact,
} from '../../devtools/simulator/groundTruth.ts';
import { EVENT_TYPES, type EventType } from '../../src/protocol/record.ts';
import { type RecordedCall, relistsOf, type SeenRelist } from './relists.ts';

/** A range without an end is still open. */
export interface TimeRange {
  readonly from: number;
  readonly to: number | null;
}

/** The agent's main process, its reader, or both were stopped. */
export interface ProcessStop {
  readonly stopped: 'agent' | 'reader' | 'both';
  readonly from: number;
  readonly to: number;
}

/** The wall clocks of runtime and agent were moved by this many milliseconds. */
export interface ClockStep {
  readonly at: number;
  readonly by: number;
}

/** The interference of a test beside the runtime's own faults. */
export interface Interference {
  readonly stops: readonly ProcessStop[];
  readonly steps: readonly ClockStep[];
}

export const NO_INTERFERENCE: Interference = { stops: [], steps: [] };

/** The runtime ended the stream of the subscriber that came at `opened`. */
export interface StreamBreak {
  readonly ms: number;
  readonly opened: number;
  readonly code: string;
}

/** An agent notices a step of its clock within about a second. */
const NOTICED = 1_500;

export type Timed<T> = T & { readonly ms: number };

const STAGE_OF = { created: 'CREATED', started: 'STARTED', stopped: 'STOPPED', deleted: 'DELETED' } as const;

/** Identifies a transition and the event that announces it. */
export const keyOf = ({ id, transition }: TransitionFact): string => `${id} ${STAGE_OF[transition]}`;

export class RuntimeTruth {
  readonly transitions: readonly Timed<TransitionFact>[];
  /** Delivered or not. */
  readonly events: readonly Timed<EventFact>[];
  readonly deliveries: readonly Timed<EventFact>[];
  readonly views: readonly Timed<ViewFact>[];
  readonly end: number;
  /** When each subscriber came. */
  readonly openings: readonly number[];
  readonly firstSubscribed: number;
  readonly breaks: readonly StreamBreak[];
  readonly relists: readonly SeenRelist[];
  readonly stops: readonly ProcessStop[];
  readonly steps: readonly ClockStep[];
  readonly #late: ReadonlySet<string | null>;
  readonly #when: ReadonlyMap<string, number>;

  constructor(
    entries: readonly TruthEntry[],
    calls: readonly RecordedCall[],
    { stops, steps }: Interference,
  ) {
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
    this.firstSubscribed = this.openings[0] ?? this.end;
    const faults = timed.filter((entry) => entry.what === 'fault');
    this.#late = new Set(faults.filter(({ fault }) => fault === 'state_late').map(({ id }) => id));
    this.breaks = faults
      .filter(({ fault }) => fault === 'break_stream')
      .flatMap((each) => this.#breakOf(each));
    const downs = faults.filter(({ fault }) => fault === 'down').map(({ ms }) => ms);
    this.relists = relistsOf(calls, downs);
    this.#when = new Map(this.transitions.map((each) => [keyOf(each), each.ms]));
  }

  #breakOf({ ms, detail }: Timed<FaultFact>): StreamBreak[] {
    const [, subscriber, code = ''] = /^subscriber (\d+) .* with (\w+)$/.exec(detail) ?? [];
    const opened = this.openings[Number(subscriber) - 1];
    return opened === undefined ? [] : [{ ms, opened, code }];
  }

  /** When a stage was reached; null if never. */
  when(id: string, type: EventType | null): number | null {
    return this.#when.get(`${id} ${type}`) ?? null;
  }

  /** At some time a list or status showed another state than the true one. */
  isDoubtful(id: string): boolean {
    return this.#late.has(id) || this.views.some((each) => each.id === id);
  }

  /** How long the reader was stopped within a range. */
  readerStoppedFor(from: number, to: number): number {
    return this.stops
      .filter(({ stopped }) => stopped !== 'agent')
      .reduce((sum, stop) => sum + Math.max(0, Math.min(to, stop.to) - Math.max(from, stop.from)), 0);
  }

  /** Whether the wall clock showed, or may have shown, the time of a moment twice, as it does after a step back. */
  isShownAgain(ms: number): boolean {
    const steps = this.steps.filter(({ at }) => at < ms);
    const movedBefore = (count: number) => steps.slice(0, count).reduce((sum, { by }) => sum + by, 0);
    const shown = ms + movedBefore(steps.length);
    return steps.some(({ at }, i) => {
      const since = steps[i - 1]?.at ?? Number.NEGATIVE_INFINITY;
      return shown > since + movedBefore(i) - NOTICED && shown < at + movedBefore(i) + NOTICED;
    });
  }

  /** The last relist that ended before a moment. */
  relistBefore(ms: number): SeenRelist | undefined {
    return this.relists.findLast(({ to }) => to < ms);
  }

  /** The first relist that began after a moment. */
  relistAfter(ms: number): SeenRelist | undefined {
    return this.relists.find(({ from }) => from > ms);
  }

  /** A list, a status or an event was wrong about it. */
  isSuspect(id: string): boolean {
    return this.isDoubtful(id) || this.events.some((each) => each.id === id && each.spurious);
  }

  /** Deliveries before this one of the same id. */
  earlierOf(delivery: Timed<EventFact>): readonly Timed<EventFact>[] {
    return this.deliveries.slice(0, this.deliveries.indexOf(delivery)).filter(({ id }) => id === delivery.id);
  }

  isOvertaken(delivery: Timed<EventFact>): boolean {
    return this.earlierOf(delivery).some(
      ({ type }) => EVENT_TYPES.indexOf(type) > EVENT_TYPES.indexOf(delivery.type),
    );
  }

  /** Two of one pod and name that ran at the same time for longer than this. */
  duplicatePairs(least: number): { readonly name: string; readonly from: number; readonly to: number }[] {
    const running = this.transitions.filter(({ transition }) => transition === 'started');
    return running.flatMap((one) =>
      running.flatMap((other) => {
        const same =
          one !== other &&
          one.pod.uid === other.pod.uid &&
          one.container === other.container &&
          one.isSandbox === other.isSandbox;
        const from = Math.max(one.ms, other.ms);
        const to = Math.min(...[one, other].map(({ id }) => this.when(id, 'STOPPED') ?? this.end));
        const [first, second] = [one.id, other.id].sort();
        return same && to - from > least
          ? [{ name: `duplicate_container ${first} and ${second}`, from, to }]
          : [];
      }),
    );
  }
}
