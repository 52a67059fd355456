/*
 * When somebody looked. The stream is *watched* from the first event of a session until the session ends or the last that is known of its
 * agent, without what gaps take out of it. *Decided* is the part of that for which every verdict is reached. Nothing is drawn, and nothing is
 * said of what is missing, beyond these.
 */
import { duration } from '../../../analysis/words.ts';
import type { Gap, TimelineAnswer } from '../../api.ts';
import type { Range } from '../drawing/timeScale.ts';
import { moment, msOf, share } from '../text.ts';

/** In gaps of these scopes, nothing can be said of events. */
const TAKES_STREAM: ReadonlySet<string> = new Set(['stream', 'agent', 'seq', 'spool']);
const TAKES_VERDICTS: ReadonlySet<string> = new Set([...TAKES_STREAM, 'findings']);

type Answer = Pick<TimelineAnswer, 'now' | 'firstSeen' | 'lastSeen' | 'decidedThrough' | 'sessions' | 'gaps'>;

/** The observed time of the node: from its first evidence until its last, or until now. Undefined where it never had an agent. */
export function knownPeriod({
  now,
  firstSeen,
  lastSeen,
}: Pick<Answer, 'now' | 'firstSeen' | 'lastSeen'>): Range | undefined {
  if (firstSeen === null || lastSeen === null) return undefined;
  return { from: msOf(firstSeen), to: Math.min(msOf(lastSeen), msOf(now)) };
}

/** As long as in SQL: store.silent_after(). */
const SILENT_AFTER_MS = 180_000;

/** When the agent was last heard of, if it is silent now. */
export const silenceOf = ({ now, lastSeen }: Pick<Answer, 'now' | 'lastSeen'>): string | undefined =>
  lastSeen !== null && msOf(now) - msOf(lastSeen) > SILENT_AFTER_MS ? lastSeen : undefined;

/** In order; they do not overlap. */
export const watchedPeriods = (answer: Answer): Range[] =>
  without(sessionPeriods(answer), answer, TAKES_STREAM);

export const decidedPeriods = (answer: Answer): Range[] =>
  without(sessionPeriods(answer), answer, TAKES_VERDICTS).flatMap(({ from, to }) => {
    const until = Math.min(to, decidedUntil(answer));
    return from < until ? [{ from, to: until }] : [];
  });

/** While lists hang, this can be long ago. */
const decidedUntil = ({ decidedThrough }: Answer): number =>
  decidedThrough === null ? Number.NEGATIVE_INFINITY : msOf(decidedThrough);

/** How much of `within` the periods cover, in milliseconds. */
export const lengthWithin = (periods: readonly Range[], within: Range): number =>
  periods.reduce(
    (sum, { from, to }) => sum + Math.max(0, Math.min(to, within.to) - Math.max(from, within.from)),
    0,
  );

/** From the first event of each session on. Nothing is known of a time before which sessions are left out. */
function sessionPeriods(answer: Answer): Range[] {
  const known = knownPeriod(answer);
  if (known === undefined) return [];
  const { rows, cut } = answer.sessions;
  const complete = cut === null ? Number.NEGATIVE_INFINITY : msOf(cut.until);
  const periods = rows.flatMap(({ armedAt, closedAt }) => {
    if (armedAt === null) return [];
    const to = Math.min(known.to, closedAt === null ? known.to : msOf(closedAt));
    return [{ from: Math.max(msOf(armedAt), complete), to }];
  });
  return united(periods);
}

function without(periods: readonly Range[], { gaps }: Answer, scopes: ReadonlySet<string>): Range[] {
  const all = gaps.rows.filter((gap) => scopes.has(gap.scope) && gap.filledAt === null).map(periodOf);
  // Gaps that ended before then may be left out.
  if (gaps.cut !== null) all.push({ from: Number.NEGATIVE_INFINITY, to: msOf(gaps.cut.until) });
  const holes = united(all);
  return periods.flatMap((period) => {
    const rest: Range[] = [];
    let { from } = period;
    for (const hole of holes.filter(({ from: began, to }) => began < period.to && to > period.from)) {
      if (hole.from > from) rest.push({ from, to: hole.from });
      from = Math.max(from, hole.to);
    }
    if (from < period.to) rest.push({ from, to: period.to });
    return rest;
  });
}

export const periodOf = ({ from, to }: Pick<Gap, 'from' | 'to'>): Range => ({
  from: msOf(from),
  to: to === null ? Number.POSITIVE_INFINITY : msOf(to),
});

/** In order, each until where the next one begins, without those that are empty. */
function united(periods: readonly Range[]): Range[] {
  const all: Range[] = [];
  for (const period of periods.filter(({ from, to }) => from < to).sort((a, b) => a.from - b.from)) {
    const last = all.at(-1);
    if (last !== undefined && period.from <= last.to)
      all[all.length - 1] = { from: last.from, to: Math.max(last.to, period.to) };
    else all.push(period);
  }
  return all;
}

/** The words for a period in which no gap is drawn. */
export function noGapInWords(answer: Answer, range: Range): string {
  const known = knownPeriod(answer);
  if (known === undefined) return 'no agent: nothing is known';
  if (range.from >= msOf(answer.now)) return 'not yet';
  if (range.from >= known.to || range.to <= known.from) return 'nothing is known of this period';
  const from = range.from < known.from ? ` from ${moment(known.from)}` : '';
  const to = range.to > known.to ? ` until ${moment(known.to)}` : '';
  return `no gap${from}${to}${from + to === '' ? '' : ' UTC'}`;
}

/** The words about missed events for a period that has no finding. */
export function noFindingInWords(answer: Answer & Pick<TimelineAnswer, 'empty'>, range: Range): string {
  if (answer.empty !== null) return 'Nothing is stored of this period, so nothing was found.';
  const decided = lengthWithin(decidedPeriods(answer), range);
  if (decided === 0 && lengthWithin(watchedPeriods(answer), range) > 0)
    return 'None, but nothing of it is decided: that says nothing of missed events.';
  if (decided === 0) return 'None, but no stream was watched: that says nothing of missed events.';
  const until = decidedUntil(answer);
  const part = decided / (range.to - range.from);
  if (part > 0.99999) return 'None: every event that was due was received.';
  const isWatchedOn = lengthWithin(watchedPeriods(answer), { from: until, to: range.to }) > 0;
  if (isWatchedOn && decided > 0.99999 * (until - range.from))
    return `None until ${moment(until)} UTC: every event that was due was received. Later ones are not decided.`;
  return `None in the ${duration(decided)} of this period (${share(part)}) in which the stream was watched and all is decided: every event that was due then was received. Of the rest nobody knows.`;
}
