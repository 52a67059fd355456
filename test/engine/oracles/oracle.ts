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
import type { Delivery, HistorySession } from '../histories/announcements.ts';
import { type ComparisonRun, handedOverAt, type ReportedFinding } from '../histories/comparisonRun.ts';
import type { HistoryContainer } from '../histories/containers.ts';
import { type GroundTruth, wallAt } from '../histories/groundTruth.ts';
import { HORIZON } from '../histories/history.ts';
import type { HistoryRelist, ListCall } from '../histories/relists.ts';

export interface HistoryRun {
  readonly truth: GroundTruth;
  readonly outcome: ComparisonRun;
}

/** What one oracle says of one run. */
export interface OracleResult {
  /** What was told and is not so. */
  readonly wrong: readonly string[];
  /** What was clearly to be seen and was not told. */
  readonly overlooked: readonly string[];
  /** How many were clearly to be seen: an oracle that never has any proves nothing. */
  readonly clear: number;
}

export type Oracle = (run: HistoryRun) => OracleResult;

/** What the reader's pipe, slow lists and ticks may add to a deadline. */
export const SLACK = 3_000;

/** OracleResult of a rule that says what must be told: names of what is due, and of what was told. */
export function compared(
  wrong: readonly string[],
  due: Iterable<string>,
  findings: Iterable<string>,
): OracleResult {
  const all = new Set(due);
  const reported = new Set(findings);
  return { wrong, overlooked: [...all].filter((name) => !reported.has(name)), clear: all.size };
}

export const findingsOf = ({ outcome }: HistoryRun, kind: FindingKind): ReportedFinding[] =>
  outcome.reported.filter(({ finding }) => finding.kind === kind);

export const nameOf = ({ finding }: ReportedFinding): string => `${finding.containerId} ${finding.eventType}`;

export const containerOf = (
  { truth }: HistoryRun,
  { finding }: ReportedFinding,
): HistoryContainer | undefined => truth.containers.find(({ id }) => id === finding.containerId);

export const callOf = (list: HistoryRelist, { isSandbox }: HistoryContainer): ListCall =>
  isSandbox ? list.sandboxes : list.containers;

export const shownBy = (list: HistoryRelist, container: HistoryContainer): string =>
  callOf(list, container).shown.get(container.id) ?? 'absent';

/** Lists that come one after the other, both whole, with none between them that failed. */
export function pairsOf({ lists }: GroundTruth): [HistoryRelist, HistoryRelist][] {
  return lists.flatMap((after, i): [HistoryRelist, HistoryRelist][] => {
    const before = lists[i - 1];
    const inARow = before?.whole === true && after.whole && !after.afterFailure;
    return before !== undefined && inARow ? [[before, after]] : [];
  });
}

export const isPlain = ({ announcements }: GroundTruth, container: HistoryContainer): boolean =>
  container.wrongViews.length === 0 &&
  !announcements.some((each) => each.container.id === container.id && each.happened === null);

/** Whether nothing disturbed us from a moment until another. */
export function isWatched(truth: GroundTruth, from: number, to: number): boolean {
  const session = truth.sessions.find(({ registered, closed }) => from > registered && to < closed);
  if (session === undefined) return false;
  const begun = coveredFrom(truth, session);
  return begun !== null && from > begun && isUndisturbed(truth, session, from, to);
}

/** Whether a stretch is whole: one session, no pause, no step of the clock, and over before the end. */
function isUndisturbed({ history }: GroundTruth, session: HistorySession, from: number, to: number): boolean {
  const { streamGaps, clockSteps, readerStalls } = history;
  const within = (at: number) => at >= from - 1_000 && at <= to;
  return (
    from > session.registered &&
    to < Math.min(session.closed, HORIZON) &&
    !streamGaps.some(within) &&
    !clockSteps.some(({ at }) => within(at)) &&
    // That it stood still is told by its next sign.
    !readerStalls.some((each) => each.at + each.for >= from - 1_000 && each.at <= to)
  );
}

/** When the baseline of a session had been compared: it had heard something before that list was asked for. */
function coveredFrom({ deliveries, lists, history }: GroundTruth, session: HistorySession): number | null {
  const heard = deliveries.flatMap((each) => (each.session === session.number ? each.received : []));
  const armed = Math.min(...heard) + history.pipe;
  const baseline = lists.find(({ sandboxes }) => sandboxes.start > armed + 1_000);
  return baseline === undefined ? null : baseline.compared;
}

/** How far steps of the wall clock that are too small for anybody to notice can have moved it. */
export const unnoticedClockSteps = ({ history }: GroundTruth): number =>
  history.clockSteps.reduce((sum, { by }) => sum + (Math.abs(by) <= 500 ? Math.abs(by) : 0), 0);

/** The deliveries that the comparison was told of before this one. */
export function before({ deliveries }: GroundTruth, delivery: Delivery): readonly Delivery[] {
  return deliveries.slice(0, deliveries.indexOf(delivery));
}

export function isFresh(truth: GroundTruth, delivery: Delivery): boolean {
  const session = truth.sessions.find(({ number }) => number === delivery.session);
  if (session === undefined) return false;
  const opened = wallAt(truth.history, session.opened) + 1;
  return [...before(truth, delivery), delivery].some(
    (each) => each.session === session.number && wallAt(truth.history, each.of.built) >= opened,
  );
}

export const isSame = (one: Delivery, other: Delivery): boolean =>
  one.of.container.id === other.of.container.id && one.of.type === other.of.type;

/** Whether an id and type was accused by then, and that not taken back. */
export function wasMissed(run: HistoryRun, delivery: Delivery): boolean {
  const { container, type } = delivery.of;
  const { resolved } = run.outcome;
  const turn = handedOverAt(run.truth, delivery);
  return findingsOf(run, 'missed').some(
    (reported) =>
      nameOf(reported) === `${container.id} ${type}` &&
      reported.turn <= turn &&
      (resolved.get(reported.finding.findingId) ?? Number.POSITIVE_INFINITY) >= turn,
  );
}
