/*
 * The shared base of the oracles. They know what really happened and what was reported, and nothing of how the comparison works. For tests.
 *
 *   watched   from one moment to another nothing disturbed us: one session, already armed and with its baseline; no stream
 *             gap, no stall of the reader, no step of the clock
 *   plain     nothing contradicts what lists and events show of an id: no wrong view, no event of what did not happen
 *   fresh     not replayed: by the time it was received, its session had received an event built after the subscription
 */
import type { FindingKind } from '../../../src/protocol/record.ts';
import type { Delivery, HistorySession } from '../histories/announcements.ts';
import { type ComparisonRun, handedOverAt, type ReportedFinding, TICK } from '../histories/comparisonRun.ts';
import { type HistoryContainer, isListedEarly } from '../histories/containers.ts';
import { type GroundTruth, wallAt } from '../histories/groundTruth.ts';
import { HORIZON } from '../histories/history.ts';
import type { HistoryListCall, HistoryRelist } from '../histories/relists.ts';

export interface HistoryRun {
  readonly truth: GroundTruth;
  readonly outcome: ComparisonRun;
}

/** The result of one oracle for one run. */
export interface OracleResult {
  /** Reports that are not true. */
  readonly wrong: readonly string[];
  /** Clearly observable facts that were not reported. */
  readonly overlooked: readonly string[];
  /** How many were clearly observable: an oracle that never has any proves nothing. */
  readonly clear: number;
}

export type Oracle = (run: HistoryRun) => OracleResult;

/** The reader's pipe, slow lists and ticks may add this much to a deadline. */
export const SLACK = 3_000;

/** The result of a rule that says what must be reported: the names of what is due, and of what was reported. */
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

export const callOf = (list: HistoryRelist, { isSandbox }: HistoryContainer): HistoryListCall =>
  isSandbox ? list.sandboxes : list.containers;

/** The state of an id in a list. A sandbox that is listed as ended before it started proves as little as UNKNOWN. */
export function shownBy(list: HistoryRelist, container: HistoryContainer): string {
  const call = callOf(list, container);
  const shown = call.shown.get(container.id) ?? 'absent';
  const { at, failed } = container;
  const hasNotEnded = failed !== null || call.end <= (at.STOPPED ?? 0);
  return shown === 'exited' && isListedEarly(container) && hasNotEnded ? 'unknown' : shown;
}

/** Successive lists that are both whole, with no failed list between them. */
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

/** Whether nothing disturbed us between two moments. */
export function isWatched(truth: GroundTruth, from: number, to: number): boolean {
  const session = truth.sessions.find(({ registered, closed }) => from > registered && to < closed);
  if (session === undefined) return false;
  const begun = coveredFrom(truth, session);
  return begun !== null && from > begun && isUndisturbed(truth, session, from, to);
}

/** Whether a stretch lies in one session, without a stream gap, stall or clock step, and ends before the horizon. */
function isUndisturbed({ history }: GroundTruth, session: HistorySession, from: number, to: number): boolean {
  const { streamGaps, clockSteps, readerStalls } = history;
  const within = (at: number) => at >= from - 1_000 && at <= to;
  return (
    from > session.registered &&
    to < Math.min(session.closed, HORIZON) &&
    !streamGaps.some(within) &&
    !clockSteps.some(({ at }) => within(at)) &&
    // A stall is noticed at the next watermark.
    !readerStalls.some((each) => each.at + each.for >= from - 1_000 && each.at <= to)
  );
}

/** When the baseline of a session had been compared: it had received something before that list began. */
function coveredFrom({ deliveries, lists, history }: GroundTruth, session: HistorySession): number | null {
  const received = deliveries.flatMap((each) => (each.session === session.number ? each.received : []));
  const armed = Math.min(...received) + history.pipe;
  const baseline = lists.find(({ sandboxes }) => sandboxes.start > armed + 1_000);
  return baseline === undefined ? null : baseline.compared;
}

/** The steps of the wall clock as the comparison sees them: those between two ticks are one. */
function seenClockSteps({ history }: GroundTruth): { readonly until: number; readonly by: number }[] {
  const ticks = Map.groupBy(history.clockSteps, ({ at }) => Math.ceil(at / TICK) * TICK);
  return [...ticks].map(([until, steps]) => ({ until, by: steps.reduce((sum, { by }) => sum + by, 0) }));
}

/** How far steps of the wall clock that are too small to be noticed can have moved it. */
export const unnoticedClockSteps = (truth: GroundTruth): number =>
  seenClockSteps(truth).reduce((sum, { by }) => sum + (Math.abs(by) <= 500 ? Math.abs(by) : 0), 0);

/** When the comparison notices steps. */
export const noticedClockSteps = (truth: GroundTruth): number[] =>
  seenClockSteps(truth).flatMap(({ until, by }) => (Math.abs(by) > 500 ? [until] : []));

/** The deliveries that the comparison received before this one. */
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

/** Whether the event was missed by then, and that not resolved. */
export function wasMissed(run: HistoryRun, delivery: Delivery): boolean {
  const { container, type } = delivery.of;
  const { resolved } = run.outcome;
  const at = handedOverAt(run.truth, delivery);
  return findingsOf(run, 'missed').some(
    (reported) =>
      nameOf(reported) === `${container.id} ${type}` &&
      reported.reportedAt <= at &&
      (resolved.get(reported.finding.findingId) ?? Number.POSITIVE_INFINITY) >= at,
  );
}
