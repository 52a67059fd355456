/*
 * Histories: random lives on a random runtime, watched by a random agent, in time that is only counted. For tests.
 *
 * What really happens is worked out first and kept as the truth; the comparison is then told what an agent would have seen
 * of it. Nothing in here knows how the comparison thinks. All times are whole milliseconds from 0.
 *
 *   transition   a stage of an id is reached, and lists that sample the id from then on show it
 *   event        is built, waits (a slow runtime), is sent; then it is dropped, delivered, or lost with its session
 *   session      asked for at `opened`, registered with the runtime somewhat later, broken at `closed`
 *   list         two calls, one after the other; each item is sampled at a moment of its own within its call
 */
import * as fc from 'fast-check';
import { EVENT_TYPES, type EventType } from '../../evidence/record.ts';
import { millis } from '../../evidence/units.ts';
import type { ExactTimes, ShownState } from './observation.ts';

export const HORIZON = 150_000;
export const CONFIRM = 15_000;
/** What waits longest still comes well before the verdict. */
const LONGEST_WAIT = 8_000;
const LEAD = millis(10_000) / 1000;

const ms = (max: number, min = 0) => fc.integer({ min, max });
const many = <T>(each: fc.Arbitrary<T>, maxLength: number) => fc.array(each, { maxLength });

const aContainer = fc.record({
  create: ms(4_000),
  start: ms(4_000),
  /** 0: its start fails. Odd: where removed sandboxes take their containers along, this one goes with it. */
  habit: ms(19),
  run: fc.oneof(ms(300), ms(30_000)),
  remove: fc.oneof(ms(300), ms(15_000)),
});

const aPod = fc.record({
  at: ms(90_000),
  containers: fc.array(aContainer, { maxLength: 2 }),
  rest: fc.oneof(ms(200), ms(10_000)),
  remove: fc.oneof(ms(200), ms(12_000)),
  lead: ms(LEAD - 500),
});

/** Everything that chance decides. */
export const anyHistory = fc.record({
  crio: ms(4).map((n) => n === 0),
  pods: fc.array(aPod, { minLength: 1, maxLength: 5 }),
  /** Which events are dropped, delayed, or come without a name: picked by their number. */
  drops: many(fc.nat(), 6),
  waits: many(fc.record({ which: fc.nat(), ms: ms(LONGEST_WAIT), builtLate: fc.boolean() }), 4),
  nameless: many(fc.nat(), 3),
  sessions: fc.array(fc.record({ after: ms(60_000), down: ms(8_000, 1), register: ms(2_000) }), {
    minLength: 1,
    maxLength: 4,
  }),
  firstList: ms(8_000),
  lists: fc.array(
    fc.record({ gap: fc.oneof(ms(6_000, 300), ms(400, 200)), took: ms(900, 1), fate: ms(24), lag: ms(200) }),
    { minLength: 5, maxLength: 20 },
  ),
  holes: many(ms(HORIZON), 2),
  steps: many(fc.record({ at: ms(HORIZON), by: fc.oneof(ms(1_500, -1_500), ms(4_000_000, -4_000_000)) }), 2),
  stuck: many(fc.record({ at: ms(HORIZON), for: ms(20_000) }), 1),
  answers: fc.array(fc.record({ lag: ms(4_000), lost: fc.boolean() }), { minLength: 1, maxLength: 4 }),
  backlog: fc.boolean(),
  unknowns: fc.boolean(),
  pipe: ms(400),
  salt: fc.nat(),
});
export type History = typeof anyHistory extends fc.Arbitrary<infer T> ? T : never;

/** One id, and when it reached each stage; null where it never did. A failed start is stopped, and never started. */
export interface Subject {
  readonly id: string;
  readonly sandbox: string;
  readonly isSandbox: boolean;
  readonly at: Readonly<Record<EventType, number | null>>;
  /** How long before it leaves the list its DELETED is announced. */
  readonly lead: number;
  /** It goes with its sandbox, and the runtime says nothing of it. */
  readonly silentEnd: boolean;
}

export interface SentEvent {
  readonly subject: Subject;
  readonly type: EventType;
  readonly built: number;
  readonly sent: number;
  readonly nameless: boolean;
  readonly fate: 'dropped' | 'delivered' | 'lost' | 'unheard';
  readonly session: number;
  /** When the reader took it; null where it did not come. */
  readonly received: number | null;
}

export interface Session {
  readonly number: number;
  readonly opened: number;
  readonly registered: number;
  readonly closed: number;
}

export interface Call {
  readonly start: number;
  readonly end: number;
  readonly shown: ReadonlyMap<string, ShownState>;
}
export interface List {
  readonly sandboxes: Call;
  readonly containers: Call;
  readonly whole: boolean;
  readonly compared: number;
}

export interface Truth {
  readonly history: History;
  readonly subjects: readonly Subject[];
  readonly events: readonly SentEvent[];
  readonly sessions: readonly Session[];
  readonly lists: readonly List[];
}

export function truthOf(history: History): Truth {
  const subjects = history.pods.flatMap((pod, n) => subjectsOf(pod, n + 1, history.crio));
  const sessions = sessionsOf(history);
  const lists = listsOf(history, subjects);
  return { history, subjects, sessions, lists, events: eventsOf(history, subjects, sessions) };
}

/** Of containers: what a status says at a moment. */
export function timesAt(
  { at, isSandbox }: Subject,
  moment: number,
  wallNs: (at: number) => bigint,
): ExactTimes {
  const ns = (time: number | null) => (time !== null && time <= moment ? wallNs(time) : 0n);
  const none = { startedNs: 0n, finishedNs: 0n };
  const own = isSandbox ? none : { startedNs: ns(at.STARTED), finishedNs: ns(at.STOPPED) };
  return { createdNs: ns(at.CREATED), ...own, exitCode: 0, reason: '' };
}

function subjectsOf(pod: History['pods'][number], n: number, crio: boolean): Subject[] {
  const sandbox = `s${n}`;
  const containers = pod.containers.map((each, i): Subject => {
    const created = pod.at + 5 + each.create;
    const begun = created + 1 + each.start;
    const failed = each.habit === 0;
    const stopped = begun + (failed ? 5 : 1 + each.run);
    return {
      id: `c${n}${'ab'[i] ?? ''}`,
      sandbox,
      isSandbox: false,
      at: {
        CREATED: created,
        STARTED: failed ? null : begun,
        STOPPED: stopped,
        DELETED: stopped + 1 + each.remove,
      },
      lead: 0,
      silentEnd: crio && each.habit % 2 === 1,
    };
  });
  const end = Math.max(pod.at, ...containers.map(({ at }) => at.STOPPED ?? 0)) + 5 + pod.rest;
  const gone = Math.max(end, ...containers.map(({ at }) => at.DELETED ?? 0)) + 5 + pod.remove;
  const lead = crio ? 0 : Math.min(pod.lead, gone - end - 2);
  const at = { CREATED: pod.at, STARTED: pod.at + 1, STOPPED: end, DELETED: gone };
  return [{ id: sandbox, sandbox, isSandbox: true, at, lead, silentEnd: false }, ...containers].map(
    (subject) =>
      // What is taken along goes while the sandbox is on its way out.
      subject.silentEnd ? { ...subject, at: { ...subject.at, DELETED: gone - 1 } } : subject,
  );
}

function sessionsOf({ sessions }: History): Session[] {
  let at = 500;
  return sessions.map(({ after, down, register }, i) => {
    const opened = at;
    const closed = i === sessions.length - 1 ? Number.POSITIVE_INFINITY : opened + 500 + after;
    at = closed + down;
    return { number: i + 1, opened, registered: opened + register, closed };
  });
}

function announces({ isSandbox, silentEnd }: Subject, type: EventType, crio: boolean): boolean {
  if (crio && isSandbox) return type === 'STARTED' || type === 'STOPPED';
  return !(silentEnd && type === 'DELETED');
}

function eventsOf(history: History, subjects: readonly Subject[], sessions: readonly Session[]): SentEvent[] {
  const planned = subjects.flatMap((subject) =>
    EVENT_TYPES.flatMap((type) => {
      const at = subject.at[type];
      const failedStop = type === 'STOPPED' && subject.at.STARTED === null;
      if (at === null || failedStop || !announces(subject, type, history.crio)) return [];
      return [{ subject, type, at: type === 'DELETED' ? at - subject.lead : at }];
    }),
  );
  const picks = (numbers: readonly number[]) => new Set(numbers.map((n) => n % planned.length));
  const drops = picks(history.drops);
  const nameless = picks(history.nameless);
  const waits = new Map(history.waits.map((wait) => [wait.which % planned.length, wait]));
  return planned.map(({ subject, type, at }, i) => {
    const wait = waits.get(i);
    const sent = at + 1 + (wait?.ms ?? 0);
    const built = wait?.builtLate === false ? at + 1 : sent;
    const event = { subject, type, built, sent, nameless: nameless.has(i) };
    return { ...event, ...fateOf(history, sessions, sent, drops.has(i), i) };
  });
}

function fateOf(
  history: History,
  sessions: readonly Session[],
  sent: number,
  dropped: boolean,
  number: number,
): Pick<SentEvent, 'fate' | 'session' | 'received'> {
  const session = sessions.find(({ registered, closed }) => sent >= registered && sent < closed);
  if (session !== undefined && dropped) return { fate: 'dropped', session: session.number, received: null };
  const next = session ?? sessions.find(({ registered, closed }) => registered > sent && registered < closed);
  const queued = history.backlog && number % 3 !== 0;
  if (next === undefined || (session === undefined && !queued)) {
    return { fate: 'unheard', session: 0, received: null };
  }
  const received = readAt(history, Math.max(sent, next.registered) + (number % 4));
  if (received >= next.closed) return { fate: 'lost', session: next.number, received: null };
  return { fate: 'delivered', session: next.number, received };
}

/** A reader that stands still takes what came when it goes on. */
const readAt = ({ stuck }: History, at: number): number =>
  stuck.reduce(
    (read, { at: from, for: length }) => (read >= from && read < from + length ? from + length : read),
    at,
  );

function listsOf(history: History, subjects: readonly Subject[]): List[] {
  const lists: List[] = [];
  let at = history.firstList;
  for (let n = 0; at < HORIZON; n += 1) {
    const { gap, took, fate, lag } = history.lists[n % history.lists.length] ?? {
      gap: 5000,
      took: 1,
      fate: 9,
      lag: 0,
    };
    const middle = at + took;
    const end = middle + took;
    const call = (start: number, isSandbox: boolean): Call => {
      const all = subjects.filter((subject) => subject.isSandbox === isSandbox);
      // An answer with an unreadable item lacks that item.
      const read = fate === 1 ? all.slice(1) : all;
      return { start, end: start + took, shown: shownIn(history, read, start, took, n) };
    };
    if (fate !== 0) {
      const both = { sandboxes: call(at, true), containers: call(middle, false) };
      lists.push({ ...both, whole: fate !== 1, compared: end + lag });
    }
    at = end + lag + gap;
  }
  return lists;
}

function shownIn(
  { salt, unknowns }: History,
  subjects: readonly Subject[],
  start: number,
  took: number,
  number: number,
): ReadonlyMap<string, ShownState> {
  const shown = new Map<string, ShownState>();
  for (const [i, subject] of subjects.entries()) {
    const dice = (salt + number * 7919 + i * 104_729) % 9973;
    const state = stateAt(subject, start + Math.floor(((dice % 100) / 100) * took));
    const hidden = unknowns && !subject.isSandbox && dice % 11 === 0;
    if (state !== null) shown.set(subject.id, hidden ? 'unknown' : state);
  }
  return shown;
}

/** What the runtime's list has of an id at a moment; null where it has nothing. */
export function stateAt({ at, isSandbox }: Subject, moment: number): ShownState | null {
  const reached = (type: EventType) => at[type] !== null && moment >= at[type];
  if (!reached('CREATED') || reached('DELETED')) return null;
  if (reached('STOPPED')) return 'exited';
  return reached('STARTED') || isSandbox ? 'running' : 'created';
}
