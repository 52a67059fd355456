/*
 * Rules on what the store has as a whole: events, changes and gaps, held against what happened. Each gives what breaks it.
 */
import type { LifecycleTransition, TransitionFact } from '../../devtools/simulator/groundTruth.ts';
import type { Happened, Stop, Stretch } from './groundTruth.ts';
import type { Change, Evidence, Gap, Session } from './storedEvidence.ts';

/** What two processes take to agree on a moment. */
export const BLUR = 30;
/** A process that stood still for longer than this was silent for longer than any may be; see the scenario's own grace. */
const TOLD_FROM = 1_500;

/** What was delivered is stored, unless it was on its way when the stream was not whole; and nothing else is. */
export function lostDeliveries({ deliveries, end }: Happened, { events, gaps }: Evidence): string[] {
  const stored = countOf(events);
  const delivered = countOf(deliveries);
  const invented = [...stored].flatMap(([key, count]) =>
    count > (delivered.get(key) ?? 0) ? [`invented ${key}`] : [],
  );
  const holes = gaps.filter(({ scope }) => scope === 'stream');
  const inHoles = countOf(deliveries.filter(({ ms }) => holes.some((hole) => isWithin(ms, hole, end))));
  const lost = [...delivered].flatMap(([key, count]) =>
    count - (stored.get(key) ?? 0) > (inHoles.get(key) ?? 0) ? [`lost ${key}`] : [],
  );
  return [...invented, ...lost];
}

function countOf(events: readonly { readonly id: string; readonly type: string }[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { id, type } of events) {
    counts.set(`${id} ${type}`, (counts.get(`${id} ${type}`) ?? 0) + 1);
  }
  return counts;
}

const isWithin = (ms: number, { from, to }: Stretch, end: number): boolean =>
  ms > from - BLUR && ms < (to ?? end) + BLUR;

/** A change is told where the id came to its new state within the window, whatever a list was able to show in between. */
export function alteredChanges(happened: Happened, changes: readonly Change[]): string[] {
  return changes.flatMap(({ id, old, new: state, from, to }) => {
    const came = happened.transitions.some(
      (each) => each.id === id && stateAfter(each) === state && isWithin(each.ms, { from, to }, to),
    );
    return came || happened.isDoubtful(id) ? [] : [`change ${id} from ${old} to ${state}`];
  });
}

const STATE_AFTER: Readonly<Record<LifecycleTransition, string>> = {
  created: 'unknown',
  started: 'running',
  stopped: 'exited',
  deleted: 'non-existent',
};

/** In the words of the kubelet; a sandbox that does not come up is first seen not ready. */
function stateAfter({ transition, isSandbox, silent }: TransitionFact): string {
  const failed = isSandbox && transition === 'created' && silent === 'profile';
  return failed ? 'exited' : STATE_AFTER[transition];
}

/** Each stretch in which the agent or its reader stood still for long lies in a gap of the stream. */
export function untoldStops({ stops, end }: Happened, gaps: readonly Gap[]): string[] {
  const told = ({ from, to }: Stop) =>
    gaps.some((gap) => gap.scope === 'stream' && isWithin(from, gap, end) && isWithin(to, gap, end));
  return stops
    .filter(({ from, to }) => to - from > TOLD_FROM)
    .filter((stop) => !told(stop))
    .map(({ who, from, to }) => `${who} stood still for ${Math.round(to - from)} ms, untold`);
}

/** Each session that the runtime broke is over by then or later, with the code that it broke with. */
export function untoldBreaks({ breaks }: Happened, sessions: readonly Session[]): string[] {
  return breaks.flatMap(({ ms, opened, code }) => {
    // It begins when the reader asks, a little before the runtime has heard of it.
    const told = sessions.findLast((each) => each.opened < opened + BLUR);
    const isTold = told?.code === code && told.closed !== null && told.closed > ms - BLUR;
    return isTold ? [] : [`broken with ${code}, told as ${told?.code}`];
  });
}
