/*
 * Random histories. The rule, in words:
 *
 *   No false accusation. Whatever is said to be missed, at any time, was dropped by the runtime while our session was
 *   registered with it: neither delivered late, nor lost with the session, nor sent while nobody was subscribed, nor never
 *   sent at all.
 *
 *   No observable drop is overlooked. A dropped event is observable, at the least, when nothing disturbed us (no pause, no
 *   break, no clock step) from well before it until its time to confirm is over, all of it after the baseline, and
 *   (list)      three whole lists in a row show the id before, before, and after: the third in a state that proves the
 *               stage by itself (gone only where nothing was heard of the id after that list was asked for); or
 *   (sequence)  no list ever showed the id, but a later event of it came that says when it was created, and for a stop
 *               the start had come too.
 *
 * PLEGWATCH_HISTORIES sets how many are tried.
 */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { EVENT_TYPES, type EventType } from '../../evidence/record.ts';
import {
  anyHistory,
  CONFIRM,
  type History,
  HORIZON,
  type List,
  type SentEvent,
  type Session,
  stateAt,
  type Truth,
  truthOf,
} from './histories.ts';
import { play } from './playing.ts';

const ASKED = process.env['PLEGWATCH_HISTORIES'];
const HISTORIES = Number(ASKED ?? 400);
/** What the reader's pipe, slow lists and ticks may add to a deadline. */
const SLACK = 3_000;
const LEAD = 10_000;

const nameOf = ({ subject, type }: SentEvent): string => `${subject.id} ${type}`;

test('nothing is accused but what was dropped, and no observable drop is overlooked', {
  timeout: 3_600_000,
}, () => {
  let dropped = 0;
  let observable = 0;
  let missed = 0;
  fc.assert(
    fc.property(anyHistory, (history: History) => {
      const truth = truthOf(history);
      const played = play(truth);
      const guilty = new Set(truth.events.filter(({ fate }) => fate === 'dropped').map(nameOf));
      for (const accusation of played.accused) expect(guilty, 'accused falsely').toContain(accusation);
      const due = truth.events
        .filter((event) => event.fate === 'dropped' && isObservable(truth, event))
        .map(nameOf);
      for (const event of due) expect(played.missed, 'overlooked').toContain(event);
      const { expected, matched, unobservable } = played.figures;
      expect(expected).toBe(matched + played.figures.missed + unobservable + played.awaited);
      dropped += guilty.size;
      observable += due.length;
      missed += played.missed.size;
    }),
    { numRuns: HISTORIES },
  );
  // Histories in which nothing is at stake would prove nothing.
  expect(observable).toBeGreaterThan(HISTORIES / 10);
  if (ASKED !== undefined)
    console.info(`${HISTORIES} histories: ${dropped} dropped, ${observable} observable, ${missed} missed`);
});

function isObservable(truth: Truth, event: SentEvent): boolean {
  const session = truth.sessions.find(({ number }) => number === event.session);
  if (session === undefined) return false;
  const begun = coveredFrom(truth, session);
  return (
    begun !== null && (byLists(truth, event, session, begun) || bySequence(truth, event, session, begun))
  );
}

/** When the baseline of a session had been compared: it had heard something before that list was asked for. */
function coveredFrom({ events, lists, history }: Truth, session: Session): number | null {
  const heard = events.flatMap((event) => (event.session === session.number ? (event.received ?? []) : []));
  const armed = Math.min(...heard) + history.pipe;
  const baseline = lists.find(({ sandboxes }) => sandboxes.start > armed + 1_000);
  return baseline === undefined ? null : baseline.compared;
}

/** Whether a stretch is whole: one session, no pause, no step of the clock, and over before the end. */
function undisturbed({ history }: Truth, session: Session, from: number, to: number): boolean {
  const { holes, steps, stuck } = history;
  const within = (at: number) => at >= from - 1_000 && at <= to;
  return (
    from > session.registered &&
    to < Math.min(session.closed, HORIZON) &&
    !holes.some(within) &&
    !steps.some(({ at }) => within(at)) &&
    !stuck.some((each) => each.at + each.for >= from && each.at <= to)
  );
}

function byLists(truth: Truth, event: SentEvent, session: Session, begun: number): boolean {
  const { lists, history } = truth;
  const { subject, type } = event;
  // What a silent removal looks like from outside is the comparison's own affair.
  if (history.crio && type === 'DELETED') return false;
  const lead = type === 'DELETED' && subject.isSandbox ? LEAD : 0;
  return lists.some((after, i) => {
    const [earlier, before] = [lists[i - 2], lists[i - 1]];
    if (earlier === undefined || before === undefined) return false;
    const from = earlier.sandboxes.start - lead;
    return (
      [earlier, before, after].every(({ whole }) => whole) &&
      from > begun &&
      undisturbed(truth, session, from, after.compared + CONFIRM + SLACK) &&
      proves(event, shownBy(earlier, event), shownBy(before, event), shownBy(after, event)) &&
      (type !== 'DELETED' || isGoneFor(truth, event, after)) &&
      (!(type === 'DELETED' && subject.isSandbox) || wasSeenRunning(lists.slice(0, i), event))
    );
  });
}

const shownBy = ({ sandboxes, containers }: List, { subject }: SentEvent): string =>
  (subject.isSandbox ? sandboxes : containers).shown.get(subject.id) ?? 'absent';

/** A list that lacks an id proves nothing where the id was still heard of after it was asked for. */
const isGoneFor = ({ events }: Truth, { subject }: SentEvent, { sandboxes, containers }: List): boolean => {
  const asked = (subject.isSandbox ? sandboxes : containers).start;
  return events.every((each) => each.subject.id !== subject.id || (each.received ?? 0) < asked);
};

const wasSeenRunning = (lists: readonly List[], event: SentEvent): boolean =>
  lists.some((list) => shownBy(list, event) === 'running');

function proves({ type, subject }: SentEvent, earlier: string, before: string, after: string): boolean {
  if (earlier === 'unknown' || (before === 'absent' && earlier !== 'absent')) return false;
  switch (type) {
    case 'CREATED':
      return before === 'absent' && (after === 'running' || after === 'created');
    case 'STARTED':
      return (before === 'created' || before === 'absent') && after === 'running';
    case 'STOPPED':
      return before === 'running' && after === 'exited';
    case 'DELETED':
      return before !== 'unknown' && before !== 'absent' && after === 'absent' && !subject.silentEnd;
  }
}

function bySequence(truth: Truth, event: SentEvent, session: Session, begun: number): boolean {
  const { subject, type } = event;
  const created = subject.at.CREATED;
  if (created === null || type === 'DELETED' || truth.history.steps.length > 0) return false;
  if (truth.lists.some((list) => shownBy(list, event) !== 'absent')) return false;
  const came = truth.events.filter(
    (other) => other.subject.id === subject.id && other.received !== null && !other.nameless,
  );
  const proof = came.find((other) => other.type === PROOF[type]);
  const latest = Math.max(...came.map(({ received }) => received ?? 0));
  if (proof?.received == null || created - 1_000 <= begun) return false;
  return (
    (type !== 'STOPPED' || cameBefore(came, 'STARTED', proof.received)) &&
    saysWhenCreated(came) &&
    undisturbed(truth, session, created - 1_000, latest + CONFIRM + SLACK)
  );
}

/** The event that proves that this one was due. */
const PROOF: Readonly<Record<EventType, EventType | null>> = {
  CREATED: 'STARTED',
  STARTED: 'STOPPED',
  STOPPED: 'DELETED',
  DELETED: null,
};

const cameBefore = (came: readonly SentEvent[], type: EventType, at: number): boolean =>
  came.some((event) => event.type === type && event.received !== null && event.received < at);

/** A status travels with an event that was built while the id was there. */
const saysWhenCreated = (came: readonly SentEvent[]): boolean =>
  came.some(({ type, subject, built }) => type !== 'DELETED' && stateAt(subject, built) !== null);

test('a history is told in the order of its stages', () => {
  fc.assert(
    fc.property(anyHistory, (history: History) => {
      for (const { at } of truthOf(history).subjects) {
        const times = EVENT_TYPES.flatMap((type) => at[type] ?? []);
        expect(times).toEqual([...times].sort((a, b) => a - b));
      }
    }),
    { numRuns: 50 },
  );
});
