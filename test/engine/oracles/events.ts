/*
 * What is said of an event that came: one thing at most, and of one that was replayed nothing.
 *
 * Not wrong:
 *   duplicate      the same id and type came before
 *   late           it is a container's STARTED or STOPPED and was taken more than the limit after that truly happened, all of
 *                  which we watched; or it was accused before
 *   out_of_order   an event of a later stage of the id came before, and had not turned out to be spurious by then
 *   stale          it was built before, and taken more than the grace after, a list that showed its stage passed
 *
 * Not overlooked: of a fresh event with its payload, of a plain id, whose every earlier event was such a one too, the same
 * rules say clearly which one is to be told, in this order; and where none fits clearly nothing is.
 */
import { GRACE, LATE_LIMIT } from '../histories/history.ts';
import type { Call } from '../histories/listing.ts';
import { handedAt, type Said } from '../histories/playing.ts';
import { type Delivery, isLater } from '../histories/sending.ts';
import { stageOfState, stageOfType, stateAt } from '../histories/subjects.ts';
import {
  before,
  type Complaints,
  callOf,
  isFresh,
  isPlain,
  isSame,
  isWatched,
  type Oracle,
  type Story,
  saidOf,
  unnoticed,
  wasAccused,
} from './story.ts';

type Kind = 'duplicate' | 'late' | 'out_of_order' | 'stale';
const KINDS: readonly Kind[] = ['duplicate', 'late', 'out_of_order', 'stale'];

export const events: Oracle = (story): Complaints => {
  const told = KINDS.flatMap((kind) => saidOf(story, kind));
  const wrong = told
    .filter((said) => !isSo(story, said))
    .map((said) => `${said.finding.kind} ${nameIn(said)}`);
  const overlooked: string[] = [];
  let clear = 0;
  for (const delivery of story.truth.deliveries) {
    const kind = clearKind(story, delivery);
    if (kind === null) continue;
    if (kind !== 'nothing') clear += 1;
    const said = told.filter((each) => each.delivery === delivery).map(({ finding }) => finding.kind);
    const right = kind === 'nothing' ? said.length === 0 : said.length === 1 && said[0] === kind;
    if (!right) {
      const { of, received } = delivery;
      overlooked.push(`${of.subject.id} ${of.type} at ${received} is ${kind}, told ${said.join(' and ')}`);
    }
  }
  return { wrong, overlooked, clear };
};

const nameIn = ({ finding, turn }: Said) =>
  `${finding.containerId} ${finding.eventType} ${finding.cause} at ${turn}`;

function isSo(story: Story, said: Said): boolean {
  const { delivery, finding } = said;
  if (delivery === null || !isFresh(story.truth, delivery)) return false;
  const earlier = before(story.truth, delivery).filter(({ of }) => of.subject.id === delivery.of.subject.id);
  switch (finding.kind) {
    case 'duplicate':
      return earlier.some((each) => isSame(each, delivery));
    case 'late':
      return finding.cause === 'after_missed' ? wasAccused(story, delivery) : isTooLate(story, delivery);
    case 'out_of_order':
      return earlier.some((each) => isLater(each, delivery) && !turnedOut(story, each, said));
    default:
      return passing(story, delivery).some(
        ({ start, end }) => delivery.of.built < start && delivery.received > end + GRACE,
      );
  }
}

/** Whether an event had turned out to be spurious by the time something was said. */
const turnedOut = (story: Story, delivery: Delivery, said: Said): boolean =>
  saidOf(story, 'spurious').some((each) => each.delivery === delivery && each.turn < said.turn);

/** How long after it happened a start or an end was taken; null for what has no time of its own. */
function lagOf({ of, received }: Delivery): number | null {
  const { subject, type } = of;
  if (subject.isSandbox || (type !== 'STARTED' && type !== 'STOPPED')) return null;
  const happened = subject.failed === 'equal' ? subject.at.CREATED : subject.at[type];
  return happened === null ? null : received - happened;
}

function isTooLate({ truth }: Story, delivery: Delivery): boolean {
  const lag = lagOf(delivery);
  if (lag === null || lag + unnoticed(truth) <= LATE_LIMIT) return false;
  const from = delivery.received - lag;
  const within = (at: number) => at > from && at < handedAt(truth, delivery);
  const session = truth.sessions.find(({ number }) => number === delivery.session);
  const { holes, steps } = truth.history;
  return (
    session !== undefined &&
    from >= session.opened &&
    !holes.some(within) &&
    !steps.some(({ at, by }) => within(at) && Math.abs(by) > 500)
  );
}

/** Calls that showed the stage of an event passed and were compared before it was handed over. */
function passing({ truth }: Story, delivery: Delivery): Call[] {
  const { subject, type } = delivery.of;
  let listed = false;
  return truth.lists.flatMap((list) => {
    const call = callOf(list, subject);
    const shown = call.shown.get(subject.id);
    const gone = shown === undefined && listed && list.whole && type !== 'DELETED';
    listed ||= shown !== undefined;
    const passed = gone || (shown !== undefined && stageOfState(shown) > stageOfType(type));
    return passed && list.compared <= handedAt(truth, delivery) ? [call] : [];
  });
}

function clearKind(story: Story, delivery: Delivery): Kind | 'nothing' | null {
  const { truth } = story;
  const { of, received } = delivery;
  const alone = truth.deliveries.every(
    (each) => each === delivery || !isSame(each, delivery) || each.received !== received,
  );
  const earlier = before(truth, delivery).filter((each) => each.of.subject.id === of.subject.id);
  const all = [...earlier, delivery];
  const clear = all.every(
    (each) => isFresh(truth, each) && !each.of.digest && each.session === delivery.session,
  );
  // What is not there any more has no status with it.
  const said = of.type === 'DELETED' || stateAt(of.subject, of.built) !== null;
  if (!alone || !clear || !said || !isPlain(truth, of.subject)) return null;
  if (earlier.some((each) => isSame(each, delivery))) return 'duplicate';
  if (wasAccused(story, delivery)) return 'late';
  const lag = lagOf(delivery) ?? 0;
  if (lag > LATE_LIMIT + 2 && isClean(story, received - lag, delivery)) return 'late';
  if (lag >= LATE_LIMIT) return null;
  if (earlier.some((each) => isLater(each, delivery))) return 'out_of_order';
  return clearlyStale(story, delivery);
}

function clearlyStale(story: Story, delivery: Delivery): 'stale' | 'nothing' | null {
  const { of, received } = delivery;
  const [first, ...others] = passing(story, delivery);
  if (first === undefined) return 'nothing';
  const stale = ({ start, end }: Call) => of.built < start && received > end + GRACE;
  if (stale(first) && isClean(story, of.built, delivery)) return 'stale';
  return [first, ...others].some(stale) ? null : 'nothing';
}

/** All watched since then, by clocks that were never set. */
const isClean = ({ truth }: Story, from: number, delivery: Delivery): boolean =>
  truth.history.steps.length === 0 && isWatched(truth, from, handedAt(truth, delivery));
