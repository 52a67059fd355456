/*
 * What lists overlook, and what they show twice. All of it of ids without a wrong view.
 *
 * Short lives. Not wrong: two lists in a row, all between their ends watched, could not see it (a whole life, a run, an exit
 * status), all of which lies between the two; how long it truly lasted is within the bounds; and each is told once. Not
 * overlooked: where both lists are whole, all was watched, and the events that say so came between them with their payload.
 *
 * Twins. Not wrong: both truly ran at the same time. Not overlooked: two whole lists in a row show both running; or the
 * events of both their ends came with exact times that overlap clearly, by a clock that was never set, and a list followed.
 */
import type { EventType } from '../../../src/protocol/record.ts';
import type { List } from '../histories/listing.ts';
import { handedAt, type Said } from '../histories/playing.ts';
import type { Delivery } from '../histories/sending.ts';
import type { Subject } from '../histories/subjects.ts';
import type { Truth } from '../histories/truth.ts';
import {
  callOf,
  compared,
  isFresh,
  isPlain,
  isWatched,
  type Oracle,
  pairsOf,
  type Story,
  saidOf,
  shownBy,
  subjectOf,
  unnoticed,
} from './story.ts';

const short = ({ finding }: Said) => `${finding.containerId} ${finding.cause}`;

export const shortLife: Oracle = (story) => {
  const told = saidOf(story, 'short_life');
  const twice = told.filter(
    (said, i) =>
      told.findIndex((each) => short(each) === short(said)) < i && subjectOf(story, said)?.views.length === 0,
  );
  const wrong = [...told.filter((said) => !isShort(story, said)), ...twice];
  const plain = story.truth.subjects.filter((each) => !each.isSandbox && isPlain(story.truth, each));
  const due = pairsOf(story.truth)
    .filter(([before, after]) => isWatched(story.truth, before.sandboxes.start, after.compared + 1))
    .flatMap((pair) => plain.flatMap((subject) => clearlyShort(story.truth, subject, pair)));
  return compared(
    wrong.map((said) => `${short(said)} ${JSON.stringify(said.finding.proof)}`),
    due,
    told.map(short),
  );
};

/** Which stretch of a life each cause is about. */
const STRETCH: Readonly<Record<string, readonly [EventType, EventType]>> = {
  life: ['CREATED', 'DELETED'],
  start: ['STARTED', 'STOPPED'],
  exit: ['STOPPED', 'DELETED'],
};

function isShort(story: Story, said: Said): boolean {
  const { truth } = story;
  const subject = subjectOf(story, said);
  const { cause, window, proof } = said.finding;
  if (subject === undefined || window === null) return false;
  if (subject.views.length > 0) return true;
  const [first, last] = (STRETCH[cause] ?? []).map((type) => subject.at[type]);
  if (first == null || last == null) return false;
  const [from, to] = [window.from / 1000, window.to / 1000];
  const lasted = last - first;
  // Calls take time: what a list shows is from some moment of it.
  const call = Math.max(
    ...truth.lists.map((list) => callOf(list, subject).end - callOf(list, subject).start),
  );
  return (
    first >= from - call &&
    last <= to + call &&
    Number(proof['lifeMinMs']) <= lasted + unnoticed(truth) &&
    lasted <= Number(proof['lifeMaxMs']) + unnoticed(truth) &&
    isHole(truth, from, to, said.turn) === false
  );
}

/** Whether we were away, or paused, or a list failed, somewhere in a stretch that was told at `turn`. */
function isHole({ history, sessions, failures }: Truth, from: number, to: number, turn: number): boolean {
  const within = (at: number) => at > from && at < Math.min(to, turn);
  return (
    history.holes.some(within) ||
    failures.some(within) ||
    !sessions.some(({ opened, closed }) => opened <= from && closed + history.pipe >= to)
  );
}

function clearlyShort(truth: Truth, subject: Subject, [before, after]: [List, List]): string[] {
  const [from, to] = [callOf(before, subject).end, callOf(after, subject).start];
  const came = (type: EventType) =>
    truth.deliveries.some(
      (each) =>
        each.of.subject.id === subject.id &&
        each.of.type === type &&
        !each.of.digest &&
        each.received > from &&
        each.received < to &&
        (type !== 'CREATED' || each.of.built < (subject.at.DELETED ?? 0)) &&
        handedAt(truth, each) < after.compared &&
        isFresh(truth, each),
    );
  const shown = `${shownBy(before, subject)} ${shownBy(after, subject)}`;
  const everShown = truth.lists.some(
    (list) => list.compared <= after.compared && shownBy(list, subject) !== 'absent',
  );
  const name = (cause: string) => [`${subject.id} ${cause}`];
  if (shown === 'running absent') return name('exit');
  if (shown === 'absent exited' && came('STARTED') && isFirst(truth, subject, after)) return name('start');
  const within = truth.history.steps.length === 0 && (subject.at.CREATED ?? 0) > from;
  if (shown === 'absent absent' && !everShown && within && came('CREATED') && came('DELETED')) {
    return name('life');
  }
  return [];
}

const isFirst = ({ lists }: Truth, subject: Subject, list: List): boolean =>
  lists.find((each) => shownBy(each, subject) !== 'absent') === list;

const pair = (one: string, other: string) => [one, other].sort().join(' and ');

export const twins: Oracle = (story) => {
  const { truth } = story;
  const told = saidOf(story, 'duplicate_container');
  const nameOf = ({ finding }: Said) => pair(String(finding.containerId), String(finding.proof['other']));
  const pairs = pairsOfSubjects(truth);
  const names = told.map(nameOf);
  const wrong = names.filter((name, i) => {
    const found = pairs.find(([one, other]) => pair(one.id, other.id) === name);
    return found === undefined || names.indexOf(name) < i || !mayBeTwins(found);
  });
  const due = pairs.filter(
    (both) => areListed(truth, both) || haveOverlapped(truth, both) || areBeside(truth, both),
  );
  return compared(
    wrong,
    due.map(([one, other]) => pair(one.id, other.id)),
    names,
  );
};

/** Two of one kind, pod and name. */
function pairsOfSubjects({ subjects }: Truth): [Subject, Subject][] {
  return subjects.flatMap((one, i) =>
    subjects
      .slice(i + 1)
      .filter(
        ({ isSandbox, object }) =>
          isSandbox === one.isSandbox &&
          object.podUid === one.object.podUid &&
          object.container === one.object.container,
      )
      .map((other): [Subject, Subject] => [one, other]),
  );
}

/** So long, in milliseconds, both must have run at the same time for their exact times to say so. */
const CLEARLY = 510;

/** How long both ran at the same time. */
function overlap([one, other]: readonly [Subject, Subject]): number {
  const runs = ({ at, failed }: Subject) =>
    failed === null ? ([at.STARTED ?? 0, at.STOPPED ?? 0] as const) : ([0, -1] as const);
  const [[oneStarted, oneStopped], [otherStarted, otherStopped]] = [runs(one), runs(other)];
  return Math.min(oneStopped, otherStopped) - Math.max(oneStarted, otherStarted);
}

const mayBeTwins = (both: readonly [Subject, Subject]): boolean =>
  both.some(({ views }) => views.length > 0) || overlap(both) > 0;

const areListed = (truth: Truth, both: readonly [Subject, Subject]): boolean =>
  pairsOf(truth).some((lists) =>
    lists.every((list) => both.every((subject) => shownBy(list, subject) === 'running')),
  );

function haveOverlapped(truth: Truth, both: readonly [Subject, Subject]): boolean {
  const [one] = both;
  if (one.isSandbox || truth.history.steps.length > 0 || overlap(both) <= CLEARLY) return false;
  const ends = both.map((subject) =>
    truth.deliveries.find((each) => tellsOfEnd(each, subject) && isFresh(truth, each)),
  );
  const last = Math.max(
    ...ends.map((end) => (end === undefined ? Number.POSITIVE_INFINITY : handedAt(truth, end))),
  );
  return truth.lists.some((list) => list.compared > last);
}

/** Two lists in a row show one of them running, and its end said that the other ran in between. */
const areBeside = (truth: Truth, [one, other]: readonly [Subject, Subject]): boolean =>
  ranBeside(truth, one, other) || ranBeside(truth, other, one);

function ranBeside(truth: Truth, long: Subject, short: Subject): boolean {
  const { STARTED: started, STOPPED: stopped } = short.at;
  if (long.isSandbox || short.failed !== null || truth.history.steps.length > 0) return false;
  if (started === null || stopped === null || [long, short].some(({ views }) => views.length > 0)) {
    return false;
  }
  const end = truth.deliveries.find((each) => tellsOfEnd(each, short) && isFresh(truth, each));
  if (end === undefined) return false;
  return pairsOf(truth).some(([before, after]) => {
    const [from, to] = [callOf(before, long).end, callOf(after, long).start];
    return (
      [before, after].every((list) => shownBy(list, long) === 'running') &&
      handedAt(truth, end) < after.compared &&
      Math.min(to, stopped) - Math.max(from, started) > CLEARLY
    );
  });
}

/** With exact times: the container was still there, and shown as it was, when the event was built. */
const tellsOfEnd = ({ of }: Delivery, subject: Subject): boolean =>
  of.subject.id === subject.id &&
  of.type === 'STOPPED' &&
  of.happened !== null &&
  !of.digest &&
  of.built < (subject.at.DELETED ?? 0) &&
  subject.views.length === 0;
