/*
 * Findings on an event that came: one at most, and none on a replayed event.
 *
 * Not wrong:
 *   duplicate      the same id and type came before
 *   late           it is a container's STARTED or STOPPED and was received more than the limit after its true time, all of
 *                  which we watched; or it was missed before
 *   out_of_order   an event of a later stage of the id came before, and had not turned out to be spurious by then
 *   stale          it was built before, and received more than overdueAfter after, a list that showed its stage passed
 *
 * Not overlooked: for a fresh event with its payload, of a plain id whose every earlier event was such a one too, the same
 * rules clearly decide which finding is due, in this order; and where none clearly fits, none is.
 */

import { type Delivery, isLater, isShownRunning } from '../histories/announcements.ts';
import { handedOverAt, type ReportedFinding, TICK } from '../histories/comparisonRun.ts';
import { isListedEarly, stageOfState, stageOfType, stateAt } from '../histories/containers.ts';
import { LATE_AFTER, OVERDUE_AFTER } from '../histories/history.ts';
import type { HistoryListCall } from '../histories/relists.ts';
import {
  before,
  callOf,
  findingsOf,
  type HistoryRun,
  isFresh,
  isPlain,
  isSame,
  isWatched,
  noticedClockSteps,
  type Oracle,
  type OracleResult,
  shownBy,
  unnoticedClockSteps,
  wasMissed,
} from './oracle.ts';

type Kind = 'duplicate' | 'late' | 'out_of_order' | 'stale';
const KINDS: readonly Kind[] = ['duplicate', 'late', 'out_of_order', 'stale'];

export const events: Oracle = (run): OracleResult => {
  const findings = KINDS.flatMap((kind) => findingsOf(run, kind));
  const wrong = findings
    .filter((reported) => !isSo(run, reported))
    .map((reported) => `${reported.finding.kind} ${nameIn(reported)}`);
  const overlooked: string[] = [];
  let clear = 0;
  for (const delivery of run.truth.deliveries) {
    const kind = clearKind(run, delivery);
    if (kind === null) continue;
    if (kind !== 'nothing') clear += 1;
    const reported = findings.filter((each) => each.delivery === delivery).map(({ finding }) => finding.kind);
    const right = kind === 'nothing' ? reported.length === 0 : reported.length === 1 && reported[0] === kind;
    if (!right) {
      const { of, received } = delivery;
      overlooked.push(
        `${of.container.id} ${of.type} at ${received} is ${kind}, findings ${reported.join(' and ')}`,
      );
    }
  }
  return { wrong, overlooked, clear };
};

const nameIn = ({ finding, reportedAt }: ReportedFinding) =>
  `${finding.containerId} ${finding.eventType} ${finding.cause} at ${reportedAt}`;

function isSo(run: HistoryRun, reported: ReportedFinding): boolean {
  const { delivery, finding } = reported;
  if (delivery === null || !isFresh(run.truth, delivery)) return false;
  const earlier = before(run.truth, delivery).filter(
    ({ of }) => of.container.id === delivery.of.container.id,
  );
  switch (finding.kind) {
    case 'duplicate':
      return earlier.some((each) => isSame(each, delivery));
    case 'late':
      return finding.cause === 'after_missed' ? wasMissed(run, delivery) : isTooLate(run, delivery);
    case 'out_of_order':
      return earlier.some((each) => isLater(each, delivery) && !wasSpurious(run, each, reported));
    default:
      return passing(run, delivery).some(
        ({ start, end }) => delivery.of.built < start && delivery.received > end + OVERDUE_AFTER,
      );
  }
}

/** Whether an event had turned out to be spurious by the time of a later finding. */
const wasSpurious = (run: HistoryRun, delivery: Delivery, reported: ReportedFinding): boolean =>
  findingsOf(run, 'spurious').some(
    (each) => each.delivery === delivery && each.reportedAt < reported.reportedAt,
  );

/** How long after it happened a start or an end was taken; null for what has no time of its own. */
function lagOf({ of, received }: Delivery): number | null {
  const { container, type } = of;
  if (container.isSandbox || (type !== 'STARTED' && type !== 'STOPPED')) return null;
  const happened =
    container.failed === 'equal' ? container.at.CREATED : (container.failedAt ?? container.at[type]);
  return happened === null ? null : received - happened;
}

function isTooLate({ truth }: HistoryRun, delivery: Delivery): boolean {
  const lag = lagOf(delivery);
  const error = unnoticedClockSteps(truth);
  if (lag === null || lag + error <= LATE_AFTER) return false;
  const from = delivery.received - lag + error;
  const within = (at: number) => at > from && at < handedOverAt(truth, delivery);
  const session = truth.sessions.find(({ number }) => number === delivery.session);
  return (
    session !== undefined &&
    from >= session.opened &&
    !truth.history.streamGaps.some(within) &&
    !noticedClockSteps(truth).some(within)
  );
}

/** Calls that showed the stage of an event passed and were compared before it was handed over. */
function passing({ truth }: HistoryRun, delivery: Delivery): HistoryListCall[] {
  const { container, type } = delivery.of;
  let listed = false;
  return truth.lists.flatMap((list) => {
    const call = callOf(list, container);
    const known = shownBy(list, container);
    const shown = known === 'absent' ? undefined : call.shown.get(container.id);
    const gone = shown === undefined && listed && list.whole && type !== 'DELETED';
    listed ||= shown !== undefined;
    const isAhead = shown !== undefined && known !== 'unknown' && stageOfState(shown) > stageOfType(type);
    const passed = gone || isAhead;
    return passed && list.compared <= handedOverAt(truth, delivery) ? [call] : [];
  });
}

function clearKind(run: HistoryRun, delivery: Delivery): Kind | 'nothing' | null {
  const { truth } = run;
  const { of, received } = delivery;
  const alone = truth.deliveries.every(
    (each) => each === delivery || !isSame(each, delivery) || each.received !== received,
  );
  const earlier = before(truth, delivery).filter((each) => each.of.container.id === of.container.id);
  const all = [...earlier, delivery];
  const clear = all.every(
    (each) => isFresh(truth, each) && !each.of.digest && each.session === delivery.session,
  );
  // A container that is not there any more has no status with it.
  const reported = of.type === 'DELETED' || stateAt(of.container, of.built) !== null;
  if (!alone || !clear || !reported || !isPlain(truth, of.container)) return null;
  // Its end is known only where its status says so; and an early listed sandbox has passed its start only where that was seen.
  if (isShownRunning(truth.history, of) || isListedEarly(of.container)) return null;
  if (earlier.some((each) => isSame(each, delivery))) return 'duplicate';
  if (wasMissed(run, delivery)) return 'late';
  const lag = lagOf(delivery) ?? 0;
  if (lag > LATE_AFTER + 2 && isClean(run, received - lag, delivery)) return 'late';
  if (lag + unnoticedClockSteps(truth) >= LATE_AFTER) return null;
  // It may have looked late by a clock that had been stepped, until that was noticed.
  const handedOver = handedOverAt(truth, delivery);
  if (noticedClockSteps(truth).some((at) => at >= handedOver && at < handedOver + TICK)) return null;
  if (earlier.some((each) => isLater(each, delivery))) return 'out_of_order';
  return clearlyStale(run, delivery);
}

function clearlyStale(run: HistoryRun, delivery: Delivery): 'stale' | 'nothing' | null {
  const { of, received } = delivery;
  const [first, ...others] = passing(run, delivery);
  if (first === undefined) return 'nothing';
  // A list that lacks an id proves nothing where an event of it came since the list began.
  const lacked = !first.shown.has(of.container.id);
  const isOlder = before(run.truth, delivery).some(
    (each) => each.of.container.id === of.container.id && each.received >= first.start,
  );
  if (lacked && isOlder) return null;
  const stale = ({ start, end }: HistoryListCall) => of.built < start && received > end + OVERDUE_AFTER;
  if (stale(first) && isClean(run, of.built, delivery)) return 'stale';
  return [first, ...others].some(stale) ? null : 'nothing';
}

/** All watched since then, by clocks that were never set. */
const isClean = ({ truth }: HistoryRun, from: number, delivery: Delivery): boolean =>
  truth.history.clockSteps.length === 0 && isWatched(truth, from, handedOverAt(truth, delivery));
