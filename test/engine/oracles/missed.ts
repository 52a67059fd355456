/*
 * No false accusation. Whatever is said to be missed, at any time, did happen, was to be announced, and either was dropped
 * by the runtime while our session was registered with it, or was held back by it until the time to confirm was over. It was
 * neither delivered before, nor lost with the session, nor sent while nobody was subscribed, nor never sent at all.
 *
 * Where the lists themselves are wrong less can be asked, but never is anything accused that had come. Where they leave out
 * an id that is there, its DELETED may be said to be missed, and is taken back as soon as it is listed again; and what was
 * announced to nobody before may seem to have happened since. So may the STOPPED of what they go on to show as running.
 *
 * No observable drop is overlooked. A dropped event of a plain id is observable, at the least, when all was watched from
 * well before it until its time to confirm is over, and
 * (list)      three whole lists in a row show the id before, before, and after: the third in a state that proves the stage
 *             by itself, and, for a stop of what ran before the session, six minutes into that: a runtime that was
 *             started again may show for a while what ended before; or
 * (sequence)  no list ever showed the id, but a later event of it came that says when it was created, and for a stop the
 *             start had come too; and a whole list that was begun after its last event lacks it, still in that stretch: until
 *             then nothing bears out the word of an event. What says when it was created comes before the time to confirm
 *             what the first event proved is over.
 */
import type { EventType } from '../../../src/protocol/record.ts';
import { CONFIRM, LEAD } from '../histories/history.ts';
import { handedAt, type Said } from '../histories/playing.ts';
import type { Announcement } from '../histories/sending.ts';
import { type Subject, stateAt } from '../histories/subjects.ts';
import type { Truth } from '../histories/truth.ts';
import {
  callOf,
  compared,
  isPlain,
  isWatched,
  nameOf,
  type Oracle,
  SLACK,
  type Story,
  saidOf,
  shownBy,
  subjectOf,
} from './story.ts';

export const missed: Oracle = (story) => {
  const { truth, played } = story;
  const accusations = saidOf(story, 'missed');
  const wrong = accusations.filter((said) => !isGuilty(story, said) && !isMisled(story, said)).map(nameOf);
  const stays = accusations.filter(({ finding }) => !played.resolved.has(finding.findingId));
  const due = truth.announcements.filter((each) => wasDropped(truth, each) && isObservable(truth, each));
  return compared(
    wrong,
    due.map(({ subject, type }) => `${subject.id} ${type}`),
    stays.map(nameOf),
  );
};

/** It was dropped, and has not come in any other way. */
const wasDropped = ({ deliveries }: Truth, { fate, subject, type, happened }: Announcement): boolean =>
  fate === 'dropped' &&
  happened !== null &&
  !deliveries.some(({ of }) => of.subject.id === subject.id && of.type === type);

function isGuilty({ truth }: Story, said: Said): boolean {
  const announcement = truth.announcements.find(
    ({ subject, type, happened }) => `${subject.id} ${type}` === nameOf(said) && happened !== null,
  );
  if (announcement?.happened == null) return false;
  const came = truth.deliveries.some((each) => each.of === announcement && handedAt(truth, each) < said.turn);
  const heldBack = announcement.sent >= announcement.happened + CONFIRM;
  return !came && (announcement.fate === 'dropped' || heldBack);
}

/** The runtime's own lists are wrong. That an id is there is taken back when they show it again. */
function isMisled(story: Story, said: Said): boolean {
  const subject = subjectOf(story, said);
  const came = story.truth.deliveries.some(
    (each) =>
      `${each.of.subject.id} ${each.of.type}` === nameOf(said) && handedAt(story.truth, each) < said.turn,
  );
  const wentOn = subject?.views.some(({ shown }) => shown === 'running') ?? false;
  if (wentOn && said.finding.eventType === 'STOPPED' && !came) return true;
  const absent = subject?.views.find(({ shown }) => shown === 'absent');
  if (subject === undefined || absent === undefined) return false;
  if (said.finding.eventType !== 'DELETED') return !came;
  const again = story.truth.lists.some(
    (list) => list.compared > said.turn && shownBy(list, subject) !== 'absent',
  );
  return said.turn > absent.from && (!again || story.played.resolved.has(said.finding.findingId));
}

function isObservable(truth: Truth, event: Announcement): boolean {
  return isPlain(truth, event.subject) && (byLists(truth, event) || bySequence(truth, event));
}

function byLists(truth: Truth, event: Announcement): boolean {
  const { lists, history } = truth;
  const { subject, type } = event;
  // What a silent removal looks like from outside is the comparison's own affair.
  if (history.crio && type === 'DELETED') return false;
  const lead = type === 'DELETED' && subject.isSandbox ? LEAD : 0;
  return lists.some((after, i) => {
    const [earlier, previous] = [lists[i - 2], lists[i - 1]];
    if (earlier === undefined || previous === undefined) return false;
    return (
      [earlier, previous, after].every(({ whole }) => whole) &&
      (type !== 'STOPPED' || isSettled(truth, subject, callOf(previous, subject).start)) &&
      isWatched(truth, earlier.sandboxes.start - lead, after.compared + CONFIRM + SLACK) &&
      // An event that comes while a list is being made is newer than the list.
      !truth.deliveries.some(
        ({ of, received }) => of.subject.id === subject.id && received >= callOf(after, subject).start,
      ) &&
      proves(event, shownBy(earlier, subject), shownBy(previous, subject), shownBy(after, subject)) &&
      (!(type === 'DELETED' && subject.isSandbox) ||
        lists.slice(0, i).some((list) => shownBy(list, subject) === 'running'))
    );
  });
}

/** How long a runtime that was started again may show what ended before. */
const SETTLING = 360_000;

/** Whether the lists of a session know by then what had ended before it, or one of them shows that it had not started. */
function isSettled({ sessions, lists }: Truth, subject: Subject, listed: number): boolean {
  const session = sessions.find(({ opened, closed }) => opened <= listed && listed < closed);
  if (session === undefined) return false;
  if (listed >= session.opened + SETTLING + 1_000) return true;
  return lists.some((list) => {
    const { start } = callOf(list, subject);
    const shown = shownBy(list, subject);
    const toCome = list.whole && (shown === 'absent' || shown === 'created');
    return toCome && start >= session.opened && start < listed;
  });
}

function proves({ type, subject }: Announcement, earlier: string, previous: string, after: string): boolean {
  if (earlier === 'unknown' || (previous === 'absent' && earlier !== 'absent')) return false;
  switch (type) {
    case 'CREATED':
      return previous === 'absent' && (after === 'running' || after === 'created');
    case 'STARTED':
      return (previous === 'created' || previous === 'absent') && after === 'running';
    case 'STOPPED':
      return previous === 'running' && after === 'exited';
    case 'DELETED':
      return previous !== 'unknown' && previous !== 'absent' && after === 'absent' && !subject.silentEnd;
  }
}

function bySequence(truth: Truth, event: Announcement): boolean {
  const { subject, type } = event;
  const created = subject.at.CREATED;
  if (created === null || type === 'DELETED' || truth.history.steps.length > 0) return false;
  if (truth.lists.some((list) => shownBy(list, subject) !== 'absent')) return false;
  const heard = truth.deliveries.filter(({ of }) => of.subject.id === subject.id);
  const came = heard.filter(({ of }) => !of.digest);
  const proof = came.find(({ of }) => of.type === PROOF[type]);
  if (proof === undefined) return false;
  const startCame = came.some(({ of, received }) => of.type === 'STARTED' && received < proof.received);
  const received = heard.map((each) => each.received);
  const latest = Math.max(...received);
  const confirmed = truth.lists.find((list) => list.whole && callOf(list, subject).start > latest)?.compared;
  return (
    confirmed !== undefined &&
    latest < Math.min(...received) + CONFIRM &&
    (type !== 'STOPPED' || startCame) &&
    // A status travels with an event that was built while the id was there.
    came.some(({ of }) => of.type !== 'DELETED' && stateAt(subject, of.built) !== null) &&
    isWatched(truth, created - 1_000, Math.max(latest + CONFIRM, confirmed) + SLACK)
  );
}

/** The event that proves that this one was due. */
const PROOF: Readonly<Record<EventType, EventType | null>> = {
  CREATED: 'STARTED',
  STARTED: 'STOPPED',
  STOPPED: 'DELETED',
  DELETED: null,
};
