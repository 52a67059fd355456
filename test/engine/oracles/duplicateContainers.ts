/*
 * Duplicate containers. Not wrong: both truly ran at the same time. Not overlooked: two whole lists in a row show both running;
 * or the events of both their ends came with exact times that overlap clearly, by a clock that was never set, and a list
 * followed; or two lists in a row show one of them running, and the other ran in between. All of it for ids without a wrong view.
 */
import type { Delivery } from '../histories/announcements.ts';
import { handedOverAt, type ReportedFinding } from '../histories/comparisonRun.ts';
import type { HistoryContainer } from '../histories/containers.ts';
import type { GroundTruth } from '../histories/groundTruth.ts';
import { callOf, compared, findingsOf, isFresh, type Oracle, pairsOf, shownBy } from './oracle.ts';

const pair = (one: string, other: string) => [one, other].sort().join(' and ');

export const duplicateContainers: Oracle = (run) => {
  const { truth } = run;
  const findings = findingsOf(run, 'duplicate_container');
  const nameOf = ({ finding }: ReportedFinding) =>
    pair(String(finding.containerId), String(finding.proof['other']));
  const pairs = containerPairs(truth);
  const names = findings.map(nameOf);
  const wrong = names.filter((name, i) => {
    const found = pairs.find(([one, other]) => pair(one.id, other.id) === name);
    return found === undefined || names.indexOf(name) < i || !ranTogether(found);
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

/** This long, in milliseconds, both must have run at the same time for their exact times to say so. */
const CLEARLY = 510;

/** How long both ran at the same time. */
function overlap([one, other]: readonly [HistoryContainer, HistoryContainer]): number {
  const runs = ({ at, failed }: HistoryContainer) =>
    failed === null ? ([at.STARTED ?? 0, at.STOPPED ?? 0] as const) : ([0, -1] as const);
  const [[oneStarted, oneStopped], [otherStarted, otherStopped]] = [runs(one), runs(other)];
  return Math.min(oneStopped, otherStopped) - Math.max(oneStarted, otherStarted);
}

const ranTogether = (both: readonly [HistoryContainer, HistoryContainer]): boolean =>
  both.some(({ wrongViews }) => wrongViews.length > 0) || overlap(both) > 0;

const areListed = (truth: GroundTruth, both: readonly [HistoryContainer, HistoryContainer]): boolean =>
  pairsOf(truth).some((lists) =>
    lists.every((list) => both.every((container) => shownBy(list, container) === 'running')),
  );

function haveOverlapped(truth: GroundTruth, both: readonly [HistoryContainer, HistoryContainer]): boolean {
  const [one] = both;
  if (one.isSandbox || truth.history.clockSteps.length > 0 || overlap(both) <= CLEARLY) return false;
  // There the exact end is not known.
  if (truth.history.runtime === 'isulad') return false;
  const ends = both.map((container) =>
    truth.deliveries.find((each) => tellsOfEnd(each, container) && isFresh(truth, each)),
  );
  const last = Math.max(
    ...ends.map((end) => (end === undefined ? Number.POSITIVE_INFINITY : handedOverAt(truth, end))),
  );
  return truth.lists.some((list) => list.compared > last);
}

/** Two lists in a row show one of them running, and the end event of the other shows that it ran in between. */
const areBeside = (
  truth: GroundTruth,
  [one, other]: readonly [HistoryContainer, HistoryContainer],
): boolean => ranBeside(truth, one, other) || ranBeside(truth, other, one);

function ranBeside(truth: GroundTruth, long: HistoryContainer, short: HistoryContainer): boolean {
  const { STARTED: started, STOPPED: stopped } = short.at;
  if (long.isSandbox || short.failed !== null || truth.history.clockSteps.length > 0) return false;
  if (truth.history.runtime === 'isulad') return false;
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
