/*
 * Nothing is missed falsely. An event that is reported missed, at any time, did happen, was to be announced, and either was dropped by the runtime
 * while our session was registered with it, or was held back by it until the judgement. It was neither delivered before, nor lost with the session,
 * nor sent while nobody was subscribed, nor never sent at all.
 *
 * Where the lists themselves are wrong less can be asked, but nothing is ever missed that had come. Where they leave out an
 * existing id, its DELETED may be missed, and is resolved as soon as it is listed again; and what was announced to nobody
 * before may seem to have happened since. So may the STOPPED of what they go on to show as running.
 *
 * No observable drop is overlooked. A dropped event of a plain id is observable, at the least, when all was watched from
 * well before it until it can be judged, and
 * (list)      three whole lists in a row show the id before, before, and after: the third in a state that proves the stage
 *             alone, and, for a stop of what ran before the session, six minutes into that: a restarted runtime may show
 *             for a while what ended before; or
 * (sequence)  no list ever showed the id, but a later event of it came that carries its creation, and for a stop the start
 *             had come too; and a whole list that was begun after its last event lacks it, still in that stretch: until
 *             then nothing confirms what an event claims. An event with the creation comes before a stage that the first event proved can be judged.
 */
import type { EventType } from '../../../src/protocol/record.ts';
import type { Announcement } from '../histories/announcements.ts';
import { handedOverAt, type ReportedFinding } from '../histories/comparisonRun.ts';
import { type HistoryContainer, stateAt } from '../histories/containers.ts';
import type { GroundTruth } from '../histories/groundTruth.ts';
import { LEAD, MISSED_AFTER, OVERDUE_AFTER } from '../histories/history.ts';
import type { HistoryRelist } from '../histories/relists.ts';
import {
  callOf,
  compared,
  containerOf,
  findingsOf,
  type HistoryRun,
  isFresh,
  isPlain,
  isWatched,
  nameOf,
  type Oracle,
  SLACK,
  shownBy,
} from './oracle.ts';

export const missed: Oracle = (run) => {
  const { truth, outcome } = run;
  const misses = findingsOf(run, 'missed');
  const wrong = misses
    .filter((reported) => !isTrulyMissed(run, reported) && !isMisled(run, reported))
    .map(nameOf);
  const stays = misses.filter(({ finding }) => !outcome.resolved.has(finding.findingId));
  const due = truth.announcements.filter((each) => wasDropped(truth, each) && isObservable(truth, each));
  return compared(
    wrong,
    due.map(({ container, type }) => `${container.id} ${type}`),
    stays.map(nameOf),
  );
};

/** It was dropped, and has not come in any other way. */
export const wasDropped = (
  { deliveries }: GroundTruth,
  { fate, container, type, happened }: Announcement,
): boolean =>
  fate === 'dropped' &&
  happened !== null &&
  !deliveries.some(({ of }) => of.container.id === container.id && of.type === type);

function isTrulyMissed({ truth }: HistoryRun, reported: ReportedFinding): boolean {
  const announcement = truth.announcements.find(
    ({ container, type, happened }) => `${container.id} ${type}` === nameOf(reported) && happened !== null,
  );
  if (announcement?.happened == null) return false;
  const came = truth.deliveries.some(
    (each) => each.of === announcement && handedOverAt(truth, each) < reported.reportedAt,
  );
  const heldBack = announcement.sent >= announcement.happened + MISSED_AFTER;
  return !came && (announcement.fate === 'dropped' || heldBack);
}

/** The runtime's own lists are wrong. That an id is there is taken back when they show it again. */
function isMisled(run: HistoryRun, reported: ReportedFinding): boolean {
  const container = containerOf(run, reported);
  const came = run.truth.deliveries.some(
    (each) =>
      `${each.of.container.id} ${each.of.type}` === nameOf(reported) &&
      handedOverAt(run.truth, each) < reported.reportedAt,
  );
  const wentOn = container?.wrongViews.some(({ shown }) => shown === 'running') ?? false;
  if (wentOn && reported.finding.eventType === 'STOPPED' && !came) return true;
  const absent = container?.wrongViews.find(({ shown }) => shown === 'absent');
  if (container === undefined || absent === undefined) return false;
  if (reported.finding.eventType !== 'DELETED') return !came;
  const again = run.truth.lists.some(
    (list) => list.compared > reported.reportedAt && shownBy(list, container) !== 'absent',
  );
  return (
    reported.reportedAt > absent.from && (!again || run.outcome.resolved.has(reported.finding.findingId))
  );
}

function isObservable(truth: GroundTruth, event: Announcement): boolean {
  return isPlain(truth, event.container) && (byLists(truth, event) || bySequence(truth, event));
}

function byLists(truth: GroundTruth, event: Announcement): boolean {
  const { lists, history } = truth;
  const { container, type } = event;
  const lead = type === 'DELETED' && container.isSandbox ? LEAD : 0;
  return lists.some((after, i) => {
    const [earlier, previous] = [lists[i - 2], lists[i - 1]];
    if (earlier === undefined || previous === undefined) return false;
    const judged = after.compared + MISSED_AFTER;
    const isSharedPid = isSharedPidKnown(truth, container, after.compared);
    return (
      [earlier, previous, after].every(({ whole }) => whole) &&
      (history.runtime !== 'crio' || isSharedPid || !mayBePartOfRemoval(event)) &&
      (type !== 'STOPPED' || isSettled(truth, container, callOf(previous, container).start)) &&
      isWatched(truth, earlier.sandboxes.start - lead, judged + SLACK) &&
      isKnownNotRestored(truth, event, after) &&
      // An event that comes while a list is being made is newer than the list.
      !truth.deliveries.some(
        ({ of, received }) => of.container.id === container.id && received >= callOf(after, container).start,
      ) &&
      proves(
        event,
        [shownBy(earlier, container), shownBy(previous, container), shownBy(after, container)],
        isSharedPid,
      ) &&
      (!(type === 'DELETED' && container.isSandbox) ||
        lists.slice(0, i).some((list) => shownBy(list, container) === 'running'))
    );
  });
}

/** On CRI-O nobody can tell such an event that was lost from one that was never sent. */
const mayBePartOfRemoval = ({ container, type }: Announcement): boolean =>
  container.isSandbox ? type === 'STOPPED' : type === 'DELETED';

const isSharedPidKnown = (truth: GroundTruth, container: HistoryContainer, by: number): boolean =>
  container.trait === 'shared_pid' &&
  truth.deliveries.some(
    (each) =>
      each.of.container.id === container.id &&
      !each.of.digest &&
      // A replayed event of what is not tracked yet is not read.
      isFresh(truth, each) &&
      stateAt(container, each.of.built) !== null &&
      handedOverAt(truth, each) < by,
  );

/**
 * Whether it is known, before its event is judged, that a container or sandbox was created and started like any other: its CREATED came;
 * or, on CRI-O, a status of it while it existed.
 */
function isKnownNotRestored(
  truth: GroundTruth,
  { container, type }: Announcement,
  proven: HistoryRelist,
): boolean {
  const { runtime, statusAnswers } = truth.history;
  const isStart = type === 'CREATED' || type === 'STARTED';
  if (!isStart || (runtime !== 'crio' && runtime !== 'containerd-2.5')) return true;
  const { end } = callOf(proven, container);
  const came = (wanted: EventType) =>
    truth.deliveries.some(
      ({ of, ...each }) =>
        of.container.id === container.id &&
        of.type === wanted &&
        handedOverAt(truth, { ...each, of }) < end + MISSED_AFTER,
    );
  if (came('CREATED')) return true;
  if (runtime !== 'crio') return false;
  const slowest = Math.max(...statusAnswers.map(({ lag }) => lag));
  const answered =
    statusAnswers.every(({ lost }) => !lost) && proven.compared + OVERDUE_AFTER + slowest + SLACK;
  return container.isSandbox || (answered !== false && (container.at.DELETED ?? 0) > answered);
}

/** A restarted runtime may show for this long what ended before. */
const RESTART_SETTLING = 360_000;

/** Whether the lists of a session know by then what had ended before it, or one of them shows that it had not started. */
function isSettled({ sessions, lists }: GroundTruth, container: HistoryContainer, listed: number): boolean {
  const session = sessions.find(({ opened, closed }) => opened <= listed && listed < closed);
  if (session === undefined) return false;
  if (listed >= session.opened + RESTART_SETTLING + 1_000) return true;
  return lists.some((list) => {
    const { start } = callOf(list, container);
    const shown = shownBy(list, container);
    const toCome = list.whole && (shown === 'absent' || shown === 'created');
    return toCome && start >= session.opened && start < listed;
  });
}

/** `isAnnouncedGone`: whatever ends it, its STOPPED is announced. */
function proves(
  { type, container }: Announcement,
  [earlier, previous, after]: readonly [earlier: string, previous: string, after: string],
  isAnnouncedGone: boolean,
): boolean {
  if (earlier === 'unknown' || (previous === 'absent' && earlier !== 'absent')) return false;
  switch (type) {
    case 'CREATED':
      return previous === 'absent' && (after === 'running' || after === 'created');
    case 'STARTED':
      return (previous === 'created' || previous === 'absent') && after === 'running';
    case 'STOPPED':
      return previous === 'running' && (after === 'exited' || (after === 'absent' && isAnnouncedGone));
    case 'DELETED':
      return (
        previous !== 'unknown' && previous !== 'absent' && after === 'absent' && !container.removedSilently
      );
  }
}

function bySequence(truth: GroundTruth, event: Announcement): boolean {
  const { container, type } = event;
  const created = container.at.CREATED;
  if (created === null || type === 'DELETED' || truth.history.clockSteps.length > 0) return false;
  if (truth.lists.some((list) => shownBy(list, container) !== 'absent')) return false;
  const deliveries = truth.deliveries.filter(({ of }) => of.container.id === container.id);
  const came = deliveries.filter(({ of }) => !of.digest);
  const proof = came.find(({ of }) => of.type === PROOF[type]);
  if (proof === undefined) return false;
  // On these only the status of a container that has ended tells a run from a start that failed.
  const { runtime } = truth.history;
  const isRunByEvent =
    runtime === 'containerd' || runtime === 'isulad' || (runtime !== 'crio' && container.isSandbox);
  const isRun = isRunByEvent || stateAt(container, proof.of.built) !== null;
  if (type === 'STARTED' && !isRun) return false;
  // Nothing else says on this runtime that it was not restored.
  const isCreationKnown = deliveries.some(({ of }) => of.type === 'CREATED');
  if (truth.history.runtime === 'containerd-2.5' && type !== 'STOPPED' && !isCreationKnown) return false;
  const startCame = came.some(({ of, received }) => of.type === 'STARTED' && received < proof.received);
  const received = deliveries.map((each) => each.received);
  const latest = Math.max(...received);
  const confirmed = truth.lists.find(
    (list) => list.whole && callOf(list, container).start > latest,
  )?.compared;
  return (
    confirmed !== undefined &&
    latest < Math.min(...received) + MISSED_AFTER &&
    (type !== 'STOPPED' || startCame) &&
    // A status travels with an event that was built while the id was there.
    came.some(({ of }) => of.type !== 'DELETED' && stateAt(container, of.built) !== null) &&
    isWatched(truth, created - 1_000, confirmed + MISSED_AFTER + SLACK)
  );
}

/** The event that proves that this one was due. */
const PROOF: Readonly<Record<EventType, EventType | null>> = {
  CREATED: 'STARTED',
  STARTED: 'STOPPED',
  STOPPED: 'DELETED',
  DELETED: null,
};
