/*
 * Findings that rest on lists alone.
 *
 * Regression: reported once for each time that a list shows an id running and the last one that showed it, UNKNOWN aside,
 *   showed it exited; neither more nor less. A sandbox of iSulad is NOTREADY before it starts too: that is none, and where no list
 *   showed it up before, or an event is wrong about it, nobody can tell.
 * Unannounced: not wrong where the runtime never sends that type for such an id, which is reported once and not for each id; or
 *   where the start of that container failed, its end was not announced, and this runtime announces no such end; reported once. Not
 *   overlooked: CREATED of a sandbox of CRI-O and STARTED of one of iSulad, where two whole lists in a row show that one came up while all was watched; and a
 *   failed start of a plain container whose `created` and
 *   `exited` two whole lists in a row show, with every status query answered while it still exists, and all of it watched
 *   until it can be judged. That time begins with the answer, not with the list: only the answer says that it never ran.
 * First lists: from the first event of each session until the end of the first whole lists that begin after it a gap of the
 *   findings is reported, once and exactly; and no other.
 * Silent stream: not wrong where the session had received nothing by then, and ten events were due in it; for a starved one, nothing
 *   since what its window calls the last event, and that one it had received.
 */

import type { EventType } from '../../../src/protocol/record.ts';
import type { HistorySession } from '../histories/announcements.ts';
import { handedOverAt, type ReportedFinding } from '../histories/comparisonRun.ts';
import type { HistoryContainer } from '../histories/containers.ts';
import type { GroundTruth } from '../histories/groundTruth.ts';
import { type HistoryRuntime, MISSED_AFTER } from '../histories/history.ts';
import {
  compared,
  containerOf,
  findingsOf,
  type HistoryRun,
  isPlain,
  isWatched,
  nameOf,
  type Oracle,
  pairsOf,
  SLACK,
  shownBy,
} from './oracle.ts';

export const regression: Oracle = (run) => {
  const mayBeStarting = ({ isSandbox }: HistoryContainer) =>
    isSandbox && run.truth.history.runtime === 'isulad';
  const isClear = (container: HistoryContainer) => !mayBeStarting(container) || wasUp(run.truth, container);
  const containers = run.truth.containers.filter(isClear);
  const ids = new Set(containers.map(({ id }) => id));
  const findings = findingsOf(run, 'regression')
    .map(({ finding }) => String(finding.containerId))
    .filter((id) => ids.has(id));
  const due = containers.flatMap((container) => {
    const shown = run.truth.lists.map((list) => shownBy(list, container));
    const known = shown.filter((state) => state !== 'unknown' && state !== 'absent');
    return known.flatMap((state, i) =>
      state === 'running' && known[i - 1] === 'exited' ? container.id : [],
    );
  });
  const same = JSON.stringify([...findings].sort()) === JSON.stringify([...due].sort());
  return { wrong: same ? [] : [`findings of ${findings}, due of ${due}`], overlooked: [], clear: due.length };
};

/** Whether the first list that showed a sandbox at all, UNKNOWN aside, showed it up, and no event is wrong about it. */
function wasUp(truth: GroundTruth, container: HistoryContainer): boolean {
  const shown = truth.lists.map((list) => shownBy(list, container));
  const first = shown.find((state) => state !== 'unknown' && state !== 'absent');
  return (
    first !== 'exited' &&
    truth.announcements.every((each) => each.container.id !== container.id || each.happened !== null)
  );
}

export const unannounced: Oracle = (run) => {
  const { truth } = run;
  const findings = findingsOf(run, 'unannounced');
  const nameIn = (reported: ReportedFinding) =>
    reported.finding.cause === 'never_sent' ? blindSpotOf(run, reported) : nameOf(reported);
  const names = findings.map(nameIn);
  const twice = names.filter((name, i) => names.indexOf(name) < i);
  const wrong = findings.filter((reported) => !isBlindSpot(run, reported)).map(nameOf);
  const failed = truth.containers.filter((container) => failedInSight(truth, container));
  const silent = NEVER_SENT[truth.history.runtime][0];
  const came = silent !== undefined && truth.containers.some((each) => cameInSight(truth, each));
  const due = [...failed.map(({ id }) => `${id} STOPPED`), ...(came ? [`sandbox ${silent}`] : [])];
  return compared([...wrong, ...twice], due, names);
};

/** The sandbox events that a runtime never announces. */
const NEVER_SENT: Readonly<Record<HistoryRuntime, readonly EventType[]>> = {
  containerd: [],
  'containerd-2.4': [],
  'containerd-2.5': [],
  crio: ['CREATED', 'DELETED'],
  isulad: ['STARTED'],
};

const blindSpotOf = (run: HistoryRun, reported: ReportedFinding): string =>
  `${containerOf(run, reported)?.isSandbox === true ? 'sandbox' : 'container'} ${reported.finding.eventType}`;

/** A sandbox that one list lacks and the next one shows up, before any event of it. */
const cameInSight = (truth: GroundTruth, container: HistoryContainer): boolean =>
  container.isSandbox &&
  isPlain(truth, container) &&
  pairsOf(truth).some(
    ([before, after]) =>
      shownBy(before, container) === 'absent' &&
      shownBy(after, container) === 'running' &&
      !truth.deliveries.some(
        ({ of, received }) => of.container.id === container.id && received <= after.compared,
      ) &&
      isWatched(truth, before.sandboxes.start, after.compared),
  );

function isBlindSpot(run: HistoryRun, reported: ReportedFinding): boolean {
  const { truth } = run;
  const container = containerOf(run, reported);
  const { eventType: type, cause } = reported.finding;
  if (container === undefined || type === null || container.at[type] === null) return false;
  if (cause === 'never_sent') {
    return container.isSandbox && NEVER_SENT[truth.history.runtime].includes(type);
  }
  const came = truth.deliveries.some(
    (each) =>
      `${each.of.container.id} ${each.of.type}` === nameOf(reported) &&
      handedOverAt(truth, each) < reported.reportedAt,
  );
  return type === 'STOPPED' && container.failed !== null && container.failed !== 'later' && !came;
}

function failedInSight(truth: GroundTruth, container: HistoryContainer): boolean {
  const { history } = truth;
  const silent = container.failed !== null && !container.failureAnnounced && !container.isSandbox;
  if (!silent || !isPlain(truth, container)) return false;
  if (history.clockSteps.length > 0 || history.statusAnswers.some(({ lost }) => lost)) return false;
  const slowest = Math.max(...history.statusAnswers.map(({ lag }) => lag));
  return pairsOf(truth).some(([before, after]) => {
    const answered = after.compared + slowest;
    return (
      (shownBy(before, container) === 'created' || shownBy(before, container) === 'absent') &&
      shownBy(after, container) === 'exited' &&
      (container.at.DELETED ?? 0) > answered &&
      isWatched(truth, before.sandboxes.start, answered + MISSED_AFTER + SLACK)
    );
  });
}

export const silentStream: Oracle = (run) => {
  const { truth } = run;
  const findings = findingsOf(run, 'silent_stream');
  const wrong = findings.filter(({ finding, reportedAt }) => {
    const session = truth.sessions.find(
      ({ opened, closed }) => reportedAt >= opened && reportedAt <= closed + truth.history.pipe,
    );
    const received = truth.deliveries.filter(
      (each) => each.session === session?.number && handedOverAt(truth, each) < reportedAt,
    );
    if (finding.cause !== 'starved') return received.length > 0 || !areEnoughOwed(truth, session, reportedAt);
    return Math.max(...received.map((each) => each.received)) !== (finding.window?.from ?? 0) / 1000;
  });
  return { wrong: wrong.map(({ reportedAt }) => `at ${reportedAt}`), overlooked: [], clear: findings.length };
};

/**
 * Whether the runtime had ten events to announce in a session that is called silent. Wrong lists show changes that there were not, and nobody
 * knows what containerd 2.5 sends of restored pods.
 */
function areEnoughOwed(
  { announcements, history }: GroundTruth,
  session: HistorySession | undefined,
  by: number,
): boolean {
  const since = session?.opened ?? 0;
  // One that is held back is owed too.
  const owed = announcements.filter(
    ({ happened }) => happened !== null && happened >= since && happened < by,
  );
  const isKnown = history.wrongViews.length === 0 && history.runtime !== 'containerd-2.5';
  return !isKnown || owed.length >= 10;
}

export const firstLists: Oracle = (run) => {
  const gaps = run.outcome.emissions.flatMap(({ record }) =>
    record.type === 'gap'
      ? [`${record.scope} ${record.cause} ${record.from / 1000} ${(record.to ?? 0) / 1000}`]
      : [],
  );
  const due = firstListsOf(run).map(({ from, to }) => `findings first_lists ${from} ${to}`);
  return compared(
    gaps.filter((gap) => !due.includes(gap)),
    due,
    gaps,
  );
};

/** From the first event of a session, or the end of a gap within it, until the end of the first whole lists that began after it. */
function firstListsOf({ truth, outcome }: HistoryRun): { readonly from: number; readonly to: number }[] {
  const armed = truth.sessions.flatMap(({ number, closed }) => {
    const first = truth.deliveries.find(({ session, received }) => session === number && received < closed);
    if (first === undefined) return [];
    const known = handedOverAt(truth, first);
    const listsBefore = truth.lists.filter(({ compared: at }) => at < known).length;
    return [{ closed, from: first.received, known, listsBefore }];
  });
  const resumed = outcome.streamGaps.flatMap(({ cause, to, known, listsBefore }) => {
    const isArmed = armed.some((each) => each.known <= known && known < each.closed + truth.history.pipe);
    return cause === 'broken' || !isArmed ? [] : [{ from: to / 1000, listsBefore }];
  });
  const watched: { readonly from: number; readonly listsBefore: number }[] = [...armed, ...resumed];
  return truth.lists.flatMap((_, i) => {
    const last = truth.lists.slice(0, i + 1).findLast(({ whole }) => whole);
    const waiting = watched.filter(({ listsBefore }) => listsBefore <= i);
    const since = Math.max(...waiting.map((each) => each.from));
    if (last === undefined || since >= Math.min(last.sandboxes.start, last.containers.start)) return [];
    for (const each of waiting) watched.splice(watched.indexOf(each), 1);
    const from = Math.min(...waiting.map((each) => each.from));
    return waiting.length === 0 ? [] : [{ from, to: Math.max(last.sandboxes.end, last.containers.end) }];
  });
}
