/*
 * Spurious events.
 *
 * Not wrong: the event came, and two list calls that were both begun more than the lead after it show the id before that
 * stage (of a DELETED: at all). Where lists show what is, the event announced what had not happened.
 *
 * Not overlooked: a fresh event of what did not happen, the first of its type of a plainly listed id, with two whole lists
 * in a row that contradict it and none before them that confirms it.
 */
import type { EventType } from '../../../src/protocol/record.ts';
import { LEAD } from '../histories/history.ts';
import type { List } from '../histories/listing.ts';
import { handedAt } from '../histories/playing.ts';
import type { Delivery } from '../histories/sending.ts';
import { type Subject, stageOfState, stageOfType } from '../histories/subjects.ts';
import type { Truth } from '../histories/truth.ts';
import {
  before,
  callOf,
  compared,
  isFresh,
  isSame,
  nameOf,
  type Oracle,
  saidOf,
  shownBy,
  subjectOf,
} from './story.ts';

export const spurious: Oracle = (story) => {
  const { truth } = story;
  const told = saidOf(story, 'spurious');
  const wrong = told.filter((said) => {
    const subject = subjectOf(story, said);
    return !truth.deliveries.some((each) => {
      const { of } = each;
      const invented = of.happened === null || (subject?.views.length ?? 0) > 0;
      return (
        `${of.subject.id} ${of.type}` === nameOf(said) &&
        invented &&
        contradicting(truth, each, said.turn).length >= 2
      );
    });
  });
  const due = truth.deliveries.filter((each) => isClearlySpurious(truth, each));
  return compared(
    wrong.map(nameOf),
    due.map(({ of }) => `${of.subject.id} ${of.type}`),
    told.map(nameOf),
  );
};

const leadOf = ({ history }: Truth, { isSandbox }: Subject) => (isSandbox && !history.crio ? LEAD : 0);

function contradicts(list: List, { of }: Delivery): boolean {
  return isBefore(shownBy(list, of.subject), of.type);
}

function isBefore(shown: string, type: EventType): boolean {
  if (shown === 'absent') return false;
  if (shown === 'created' || shown === 'running' || shown === 'exited') {
    return stageOfState(shown) < stageOfType(type);
  }
  return type === 'DELETED';
}

/** Lists that were begun after the event, and after its lead. */
function after(truth: Truth, { of, received }: Delivery): List[] {
  const from = received + leadOf(truth, of.subject);
  return truth.lists.filter((list) => callOf(list, of.subject).start > from);
}

const contradicting = (truth: Truth, delivery: Delivery, until: number): List[] =>
  after(truth, delivery).filter((list) => list.compared <= until && contradicts(list, delivery));

function isClearlySpurious(truth: Truth, delivery: Delivery): boolean {
  const { of } = delivery;
  if (of.happened !== null || of.subject.views.length > 0 || !isFresh(truth, delivery)) return false;
  if (before(truth, delivery).some((each) => isSame(each, delivery))) return false;
  // What is already shown when it comes: a list that was begun before it may still be compared after it.
  const later = after(truth, delivery);
  const [first, second] = later;
  return (
    later.every(({ compared: at }) => at > handedAt(truth, delivery)) &&
    [first, second].every((list) => list?.whole === true && contradicts(list, delivery))
  );
}
