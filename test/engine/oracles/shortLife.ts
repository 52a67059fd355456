/*
 * Short lives. Not wrong: two lists in a row, all watched between their ends, could not see it (a whole life, a run, an exit
 * status), all of which lies between the two; how long it truly lasted is within the bounds; and each is reported once. Not
 * overlooked: where both lists are whole, all was watched, and the events that announce it came between them with their
 * payload. All of it for ids without a wrong view.
 */
import type { EventType } from '../../../src/protocol/record.ts';
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
  // A run or a life that a list could show ends when the runtime notices; the container ended before that.
  const lasted = last - first - (cause === 'start' ? container.noticedAfter : 0);
  // Calls take time: what a list shows is from some moment of it.
  const call = Math.max(
    ...truth.lists.map((list) => callOf(list, container).end - callOf(list, container).start),
  );
  return (
    first >= from - call &&
    last <= to + call &&
    Number(proof['lifeMinMs']) <= lasted + unnoticedClockSteps(truth) &&
    lasted <= Number(proof['lifeMaxMs']) + unnoticedClockSteps(truth) &&
    isInterrupted(truth, from, to, reported.reportedAt) === false
  );
}

/** Whether there was a session or stream gap, or a failed list, within a stretch that was reported at `reportedAt`. */
function isInterrupted(
  { history, sessions, failures }: GroundTruth,
  from: number,
  to: number,
  reportedAt: number,
): boolean {
  const within = (at: number) => at > from && at < Math.min(to, reportedAt);
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
