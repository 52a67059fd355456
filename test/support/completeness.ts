/*
 * Rules for all stored events, changes, gaps and sessions of a run. Each returns its violations.
 */
import type { LifecycleTransition, TransitionFact } from '../../devtools/simulator/groundTruth.ts';
import type { ProcessStop, RuntimeTruth, TimeRange } from './groundTruth.ts';
import type { StoredChange, StoredEvidence, StoredGap, StoredSession } from './storedEvidence.ts';

/** How far apart the times may be that two processes record for the same moment, in milliseconds. */
export const BLUR = 30;
/** A process that was stopped for longer than this leaves a gap of the stream. */
const MIN_GAP_MS = 1_500;

/** Exactly the delivered events are stored; those delivered near a gap of the stream or of the agent may be missing. */
export function wrongDeliveries(
  { deliveries, end }: RuntimeTruth,
  { events, gaps }: StoredEvidence,
): string[] {
  const stored = countOf(events);
  const delivered = countOf(deliveries);
  const invented = [...stored].flatMap(([key, count]) =>
    count > (delivered.get(key) ?? 0) ? [`invented ${key}`] : [],
  );
  const streamGaps = gaps.filter(({ scope }) => scope === 'stream' || scope === 'agent');
  const nearGaps = countOf(deliveries.filter(({ ms }) => streamGaps.some((gap) => isWithin(ms, gap, end))));
  const lost = [...delivered].flatMap(([key, count]) =>
    count - (stored.get(key) ?? 0) > (nearGaps.get(key) ?? 0) ? [`lost ${key}`] : [],
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

const isWithin = (ms: number, { from, to }: TimeRange, end: number): boolean =>
  ms > from - BLUR && ms < (to ?? end) + BLUR;

/** A change is stored only if the container reached its new state within the change's window. */
export function wrongChanges(truth: RuntimeTruth, changes: readonly StoredChange[]): string[] {
  return changes.flatMap(({ id, old, new: state, from, to }) => {
    const isReal = truth.transitions.some(
      (each) => each.id === id && stateAfter(each) === state && isWithin(each.ms, { from, to }, to),
    );
    return isReal || truth.isDoubtful(id) ? [] : [`change ${id} from ${old} to ${state}`];
  });
}

const STATE_AFTER: Readonly<Record<LifecycleTransition, string>> = {
  created: 'unknown',
  started: 'running',
  stopped: 'exited',
  deleted: 'non-existent',
};

/** In the kubelet's terms; a sandbox that fails to start is first seen not ready. */
function stateAfter({ transition, isSandbox, silent }: TransitionFact): string {
  const failed = isSandbox && transition === 'created' && silent === 'profile';
  return failed ? 'exited' : STATE_AFTER[transition];
}

/** Each long stop of the agent or its reader lies within a gap of the stream. */
export function stopsWithoutGap({ stops, end }: RuntimeTruth, gaps: readonly StoredGap[]): string[] {
  const hasGap = ({ from, to }: ProcessStop) =>
    gaps.some((gap) => gap.scope === 'stream' && isWithin(from, gap, end) && isWithin(to, gap, end));
  return stops
    .filter(({ from, to }) => to - from > MIN_GAP_MS)
    .filter((stop) => !hasGap(stop))
    .map(({ stopped, from, to }) => `${stopped} was stopped for ${Math.round(to - from)} ms without a gap`);
}

/** Each session that the runtime broke is stored with that code, and ends no earlier. The agent may stop while the last break is under way. */
export function breaksWithoutSession({ breaks }: RuntimeTruth, sessions: readonly StoredSession[]): string[] {
  return breaks.flatMap(({ ms, opened, code }, i) => {
    // It opens when the reader asks, shortly before the runtime sees the subscriber.
    const session = sessions.findLast((each) => each.opened < opened + BLUR);
    const isStored = session?.code === code && session.closed !== null && session.closed > ms - BLUR;
    const isStopped = session?.code === 'AGENT_STOPPED' && i > 0 && i === breaks.length - 1;
    return isStored || isStopped ? [] : [`broken with ${code}, stored as ${session?.code}`];
  });
}
