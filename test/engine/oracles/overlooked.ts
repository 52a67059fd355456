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
import type { Delivery } from '../histories/announcements.ts';
import { handedOverAt, type ReportedFinding } from '../histories/comparisonRun.ts';
import type { HistoryContainer } from '../histories/containers.ts';
import type { GroundTruth } from '../histories/groundTruth.ts';
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
  type Oracle,
  pairsOf,
  shownBy,
  unnoticedClockSteps,
} from './oracle.ts';

const short = ({ finding }: ReportedFinding) => `${finding.containerId} ${finding.cause}`;

export const shortLife: Oracle = (run) => {
  const findings = findingsOf(run, 'short_life');
  const twice = findings.filter(
    (reported, i) =>
      findings.findIndex((each) => short(each) === short(reported)) < i &&
      containerOf(run, reported)?.wrongViews.length === 0,
  );
  const wrong = [...findings.filter((reported) => !isShort(run, reported)), ...twice];
  const plain = run.truth.containers.filter((each) => !each.isSandbox && isPlain(run.truth, each));
  const due = pairsOf(run.truth)
    .filter(([before, after]) => isWatched(run.truth, before.sandboxes.start, after.compared + 1))
    .flatMap((pair) => plain.flatMap((container) => clearlyShort(run.truth, container, pair)));
  return compared(
    wrong.map((reported) => `${short(reported)} ${JSON.stringify(reported.finding.proof)}`),
    due,
    findings.map(short),
  );
};

/** Which stretch of a life each cause is about. */
const STRETCH: Readonly<Record<string, readonly [EventType, EventType]>> = {
  life: ['CREATED', 'DELETED'],
  start: ['STARTED', 'STOPPED'],
  exit: ['STOPPED', 'DELETED'],
};

function isShort(run: HistoryRun, reported: ReportedFinding): boolean {
  const { truth } = run;
  const container = containerOf(run, reported);
  const { cause, window, proof } = reported.finding;
  if (container === undefined || window === null) return false;
  if (container.wrongViews.length > 0) return true;
  const [first, last] = (STRETCH[cause] ?? []).map((type) => container.at[type]);
  if (first == null || last == null) return false;
  const [from, to] = [window.from / 1000, window.to / 1000];
  const lasted = last - first;
  // Calls take time: what a list shows is from some moment of it.
  const call = Math.max(
    ...truth.lists.map((list) => callOf(list, container).end - callOf(list, container).start),
  );
  return (
    first >= from - call &&
    last <= to + call &&
    Number(proof['lifeMinMs']) <= lasted + unnoticedClockSteps(truth) &&
    lasted <= Number(proof['lifeMaxMs']) + unnoticedClockSteps(truth) &&
    isHole(truth, from, to, reported.turn) === false
  );
}

/** Whether we were away, or paused, or a list failed, somewhere in a stretch that was told at `turn`. */
function isHole(
  { history, sessions, failures }: GroundTruth,
  from: number,
  to: number,
  turn: number,
): boolean {
  const within = (at: number) => at > from && at < Math.min(to, turn);
  return (
    history.streamGaps.some(within) ||
    failures.some(within) ||
    !sessions.some(({ opened, closed }) => opened <= from && closed + history.pipe >= to)
  );
}

function clearlyShort(
  truth: GroundTruth,
  container: HistoryContainer,
  [before, after]: [HistoryRelist, HistoryRelist],
): string[] {
  const [from, to] = [callOf(before, container).end, callOf(after, container).start];
  const came = (type: EventType) =>
    truth.deliveries.some(
      (each) =>
        each.of.container.id === container.id &&
        each.of.type === type &&
        !each.of.digest &&
        each.received > from &&
        each.received < to &&
        (type !== 'CREATED' || each.of.built < (container.at.DELETED ?? 0)) &&
        handedOverAt(truth, each) < after.compared &&
        isFresh(truth, each),
    );
  const shown = `${shownBy(before, container)} ${shownBy(after, container)}`;
  const everShown = truth.lists.some(
    (list) => list.compared <= after.compared && shownBy(list, container) !== 'absent',
  );
  const name = (cause: string) => [`${container.id} ${cause}`];
  if (shown === 'running absent') return name('exit');
  if (shown === 'absent exited' && came('STARTED') && isFirst(truth, container, after)) return name('start');
  const within = truth.history.clockSteps.length === 0 && (container.at.CREATED ?? 0) > from;
  if (shown === 'absent absent' && !everShown && within && came('CREATED') && came('DELETED')) {
    return name('life');
  }
  return [];
}

const isFirst = ({ lists }: GroundTruth, container: HistoryContainer, list: HistoryRelist): boolean =>
  lists.find((each) => shownBy(each, container) !== 'absent') === list;

const pair = (one: string, other: string) => [one, other].sort().join(' and ');

export const twins: Oracle = (run) => {
  const { truth } = run;
  const findings = findingsOf(run, 'duplicate_container');
  const nameOf = ({ finding }: ReportedFinding) =>
    pair(String(finding.containerId), String(finding.proof['other']));
  const pairs = containerPairs(truth);
  const names = findings.map(nameOf);
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
function containerPairs({ containers }: GroundTruth): [HistoryContainer, HistoryContainer][] {
  return containers.flatMap((one, i) =>
    containers
      .slice(i + 1)
      .filter(
        ({ isSandbox, object }) =>
          isSandbox === one.isSandbox &&
          object.podUid === one.object.podUid &&
          object.container === one.object.container,
      )
      .map((other): [HistoryContainer, HistoryContainer] => [one, other]),
  );
}

/** So long, in milliseconds, both must have run at the same time for their exact times to say so. */
const CLEARLY = 510;

/** How long both ran at the same time. */
function overlap([one, other]: readonly [HistoryContainer, HistoryContainer]): number {
  const runs = ({ at, failed }: HistoryContainer) =>
    failed === null ? ([at.STARTED ?? 0, at.STOPPED ?? 0] as const) : ([0, -1] as const);
  const [[oneStarted, oneStopped], [otherStarted, otherStopped]] = [runs(one), runs(other)];
  return Math.min(oneStopped, otherStopped) - Math.max(oneStarted, otherStarted);
}

const mayBeTwins = (both: readonly [HistoryContainer, HistoryContainer]): boolean =>
  both.some(({ wrongViews }) => wrongViews.length > 0) || overlap(both) > 0;

const areListed = (truth: GroundTruth, both: readonly [HistoryContainer, HistoryContainer]): boolean =>
  pairsOf(truth).some((lists) =>
    lists.every((list) => both.every((container) => shownBy(list, container) === 'running')),
  );

function haveOverlapped(truth: GroundTruth, both: readonly [HistoryContainer, HistoryContainer]): boolean {
  const [one] = both;
  if (one.isSandbox || truth.history.clockSteps.length > 0 || overlap(both) <= CLEARLY) return false;
  const ends = both.map((container) =>
    truth.deliveries.find((each) => tellsOfEnd(each, container) && isFresh(truth, each)),
  );
  const last = Math.max(
    ...ends.map((end) => (end === undefined ? Number.POSITIVE_INFINITY : handedOverAt(truth, end))),
  );
  return truth.lists.some((list) => list.compared > last);
}

/** Two lists in a row show one of them running, and its end said that the other ran in between. */
const areBeside = (
  truth: GroundTruth,
  [one, other]: readonly [HistoryContainer, HistoryContainer],
): boolean => ranBeside(truth, one, other) || ranBeside(truth, other, one);

function ranBeside(truth: GroundTruth, long: HistoryContainer, short: HistoryContainer): boolean {
  const { STARTED: started, STOPPED: stopped } = short.at;
  if (long.isSandbox || short.failed !== null || truth.history.clockSteps.length > 0) return false;
  if (started === null || stopped === null || [long, short].some(({ wrongViews }) => wrongViews.length > 0)) {
    return false;
  }
  const end = truth.deliveries.find((each) => tellsOfEnd(each, short) && isFresh(truth, each));
  if (end === undefined) return false;
  return pairsOf(truth).some(([before, after]) => {
    const [from, to] = [callOf(before, long).end, callOf(after, long).start];
    return (
      [before, after].every((list) => shownBy(list, long) === 'running') &&
      handedOverAt(truth, end) < after.compared &&
      Math.min(to, stopped) - Math.max(from, started) > CLEARLY
    );
  });
}

/** With exact times: the container was still there, and shown as it was, when the event was built. */
const tellsOfEnd = ({ of }: Delivery, container: HistoryContainer): boolean =>
  of.container.id === container.id &&
  of.type === 'STOPPED' &&
  of.happened !== null &&
  !of.digest &&
  of.built < (container.at.DELETED ?? 0) &&
  container.wrongViews.length === 0;
