/*
 * Spurious events.
 *
 * Not wrong: the event came, and two list calls that both began more than the lead after it show the id before that stage
 * (for a DELETED: at all). Where lists show the truth, the event announced what had not happened.
 *
 * Not overlooked: a fresh event of what did not happen, the first of its type of a plainly listed id, with two whole lists
 * in a row that contradict it and none before them that confirms it.
 */
import type { EventType } from '../../../src/protocol/record.ts';
import type { Delivery } from '../histories/announcements.ts';
import { handedOverAt } from '../histories/comparisonRun.ts';
import { type HistoryContainer, stageOfState, stageOfType } from '../histories/containers.ts';
import type { GroundTruth } from '../histories/groundTruth.ts';
import { isContainerd, LEAD } from '../histories/history.ts';
import type { HistoryRelist } from '../histories/relists.ts';
import {
  before,
  callOf,
  compared,
  containerOf,
  findingsOf,
  isFresh,
  isSame,
  nameOf,
  type Oracle,
  shownBy,
} from './oracle.ts';

export const spurious: Oracle = (run) => {
  const { truth } = run;
  const findings = findingsOf(run, 'spurious');
  const wrong = findings.filter((reported) => {
    const container = containerOf(run, reported);
    return !truth.deliveries.some((each) => {
      const { of } = each;
      const invented = of.happened === null || (container?.wrongViews.length ?? 0) > 0;
      return (
        `${of.container.id} ${of.type}` === nameOf(reported) &&
        invented &&
        contradicting(truth, each, reported.reportedAt).length >= 2
      );
    });
  });
  const due = truth.deliveries.filter((each) => isClearlySpurious(truth, each));
  return compared(
    wrong.map(nameOf),
    due.map(({ of }) => `${of.container.id} ${of.type}`),
    findings.map(nameOf),
  );
};

const leadOf = ({ history }: GroundTruth, { isSandbox }: HistoryContainer) =>
  isSandbox && isContainerd(history.runtime) ? LEAD : 0;

function contradicts(list: HistoryRelist, { of }: Delivery): boolean {
  return isBefore(shownBy(list, of.container), of.type);
}

function isBefore(shown: string, type: EventType): boolean {
  if (shown === 'absent') return false;
  if (shown === 'created' || shown === 'running' || shown === 'exited') {
    return stageOfState(shown) < stageOfType(type);
  }
  return type === 'DELETED';
}

/** Lists that were begun after the event, and after its lead. */
function after(truth: GroundTruth, { of, received }: Delivery): HistoryRelist[] {
  const from = received + leadOf(truth, of.container);
  return truth.lists.filter((list) => callOf(list, of.container).start > from);
}

const contradicting = (truth: GroundTruth, delivery: Delivery, until: number): HistoryRelist[] =>
  after(truth, delivery).filter((list) => list.compared <= until && contradicts(list, delivery));

function isClearlySpurious(truth: GroundTruth, delivery: Delivery): boolean {
  const { of } = delivery;
  if (of.happened !== null || of.container.wrongViews.length > 0 || !isFresh(truth, delivery)) return false;
  if (before(truth, delivery).some((each) => isSame(each, delivery))) return false;
  // A state that is already shown when it comes: a list that was begun before it may still be compared after it.
  const later = after(truth, delivery);
  const [first, second] = later;
  return (
    later.every(({ compared: at }) => at > handedOverAt(truth, delivery)) &&
    [first, second].every((list) => list?.whole === true && contradicts(list, delivery))
  );
}
