/*
 * What the oracles share: the words in which a history is talked about. They know what happened and what was told, and
 * nothing of how the comparison thinks. For tests.
 *
 *   watched   from a moment until another nothing disturbed us: one session, which was heard of and listed before; no pause,
 *             no reader that stood still, no step of the clock
 *   plain     nothing contradicts what lists and events show of an id: no wrong view, no event of what did not happen
 *   fresh     not replayed: an event of its session that was built after the subscription was taken no later than it
 */
import type { FindingKind } from '../../../src/protocol/record.ts';
import { HORIZON } from '../histories/history.ts';
import type { Call, List } from '../histories/listing.ts';
import { handedAt, type Played, type Said } from '../histories/playing.ts';
import type { Delivery, Session } from '../histories/sending.ts';
import type { Subject } from '../histories/subjects.ts';
import { type Truth, wallAt } from '../histories/truth.ts';

export interface Story {
  readonly truth: Truth;
  readonly played: Played;
}

/** What one oracle says of one story. */
export interface Complaints {
  /** What was told and is not so. */
  readonly wrong: readonly string[];
  /** What was clearly to be seen and was not told. */
  readonly overlooked: readonly string[];
  /** How many were clearly to be seen: an oracle that never has any proves nothing. */
  readonly clear: number;
}

export type Oracle = (story: Story) => Complaints;

/** What the reader's pipe, slow lists and ticks may add to a deadline. */
export const SLACK = 3_000;

/** Complaints of a rule that says what must be told: names of what is due, and of what was told. */
export function compared(
  wrong: readonly string[],
  due: Iterable<string>,
  told: Iterable<string>,
): Complaints {
  const all = new Set(due);
  const said = new Set(told);
  return { wrong, overlooked: [...all].filter((name) => !said.has(name)), clear: all.size };
}

export const saidOf = ({ played }: Story, kind: FindingKind): Said[] =>
  played.said.filter(({ finding }) => finding.kind === kind);

export const nameOf = ({ finding }: Said): string => `${finding.containerId} ${finding.eventType}`;

export const subjectOf = ({ truth }: Story, { finding }: Said): Subject | undefined =>
  truth.subjects.find(({ id }) => id === finding.containerId);

export const callOf = (list: List, { isSandbox }: Subject): Call =>
  isSandbox ? list.sandboxes : list.containers;

export const shownBy = (list: List, subject: Subject): string =>
  callOf(list, subject).shown.get(subject.id) ?? 'absent';

/** Lists that come one after the other, both whole, with none between them that failed. */
export function pairsOf({ lists }: Truth): [List, List][] {
  return lists.flatMap((after, i): [List, List][] => {
    const before = lists[i - 1];
    const inARow = before?.whole === true && after.whole && !after.afterFailure;
    return before !== undefined && inARow ? [[before, after]] : [];
  });
}

export const isPlain = ({ announcements }: Truth, subject: Subject): boolean =>
  subject.views.length === 0 &&
  !announcements.some((each) => each.subject.id === subject.id && each.happened === null);

/** Whether nothing disturbed us from a moment until another. */
export function isWatched(truth: Truth, from: number, to: number): boolean {
  const session = truth.sessions.find(({ registered, closed }) => from > registered && to < closed);
  if (session === undefined) return false;
  const begun = coveredFrom(truth, session);
  return begun !== null && from > begun && isUndisturbed(truth, session, from, to);
}

/** Whether a stretch is whole: one session, no pause, no step of the clock, and over before the end. */
function isUndisturbed({ history }: Truth, session: Session, from: number, to: number): boolean {
  const { holes, steps, stuck } = history;
  const within = (at: number) => at >= from - 1_000 && at <= to;
  return (
    from > session.registered &&
    to < Math.min(session.closed, HORIZON) &&
    !holes.some(within) &&
    !steps.some(({ at }) => within(at)) &&
    // That it stood still is told by its next sign.
    !stuck.some((each) => each.at + each.for >= from - 1_000 && each.at <= to)
  );
}

/** When the baseline of a session had been compared: it had heard something before that list was asked for. */
function coveredFrom({ deliveries, lists, history }: Truth, session: Session): number | null {
  const heard = deliveries.flatMap((each) => (each.session === session.number ? each.received : []));
  const armed = Math.min(...heard) + history.pipe;
  const baseline = lists.find(({ sandboxes }) => sandboxes.start > armed + 1_000);
  return baseline === undefined ? null : baseline.compared;
}

/** How far steps of the wall clock that are too small for anybody to notice can have moved it. */
export const unnoticed = ({ history }: Truth): number =>
  history.steps.reduce((sum, { by }) => sum + (Math.abs(by) <= 500 ? Math.abs(by) : 0), 0);

/** The deliveries that the comparison was told of before this one. */
export function before({ deliveries }: Truth, delivery: Delivery): readonly Delivery[] {
  return deliveries.slice(0, deliveries.indexOf(delivery));
}

export function isFresh(truth: Truth, delivery: Delivery): boolean {
  const session = truth.sessions.find(({ number }) => number === delivery.session);
  if (session === undefined) return false;
  const opened = wallAt(truth.history, session.opened) + 1;
  return [...before(truth, delivery), delivery].some(
    (each) => each.session === session.number && wallAt(truth.history, each.of.built) >= opened,
  );
}

export const isSame = (one: Delivery, other: Delivery): boolean =>
  one.of.subject.id === other.of.subject.id && one.of.type === other.of.type;

/** Whether an id and type was accused by then, and that not taken back. */
export function wasAccused(story: Story, delivery: Delivery): boolean {
  const { subject, type } = delivery.of;
  const { resolved } = story.played;
  const turn = handedAt(story.truth, delivery);
  return saidOf(story, 'missed').some(
    (said) =>
      nameOf(said) === `${subject.id} ${type}` &&
      said.turn <= turn &&
      (resolved.get(said.finding.findingId) ?? Number.POSITIVE_INFINITY) >= turn,
  );
}
