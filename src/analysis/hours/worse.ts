/*
 * The change for the worse since yesterday, where, and since when, in one sentence: the last 24 hours against the 24 before, pool by pool.
 *
 *   missed       more missed events than chance explains: more than twice the square root of both days together. Those of the day before count as if it
 *                had been watched for as long as the last one. After a day that was watched for 90 % and had none, any missed event is worse
 *   fallback     more kubelets were in fallback in the last hour than in the same hour a day before
 *   slow         PLEG was slow or hung on more nodes in some hour than in any of the day before
 *   unobserved   a hundredth more of the time was not watched
 *
 * A pool of which nothing was observed on one of the days is not compared, and the sentence says of how many nodes nobody knows.
 */
import { HOUR_MS, type PoolHours } from './hours.ts';

export interface Change {
  /** worse: something is. same: nothing is, as far as it was observed. unknown: nothing was observed that can be compared. */
  readonly verdict: 'worse' | 'same' | 'unknown';
  /** With names of clusters and pools, which nobody has checked. */
  readonly sentence: string;
}

/** Hours of one day. */
export const DAY_HOURS = 24;

type Pool = Pick<PoolHours, 'cluster' | 'pool' | 'nodes' | 'silent'>;
type Figures = Pick<PoolHours, 'missed' | 'fallen' | 'slow' | 'knownSeconds' | 'watchedSeconds'>;
/** Days of a pool. */
interface Days {
  readonly pool: Pool;
  readonly before: Figures;
  readonly today: Figures;
}

interface Worse {
  /** By how much: the pool of which a sentence speaks is the one with the most. */
  readonly excess: number;
  readonly what: string;
  /** The first hour of today that is worse than the day before. */
  readonly hour: number;
}

const MOSTLY = 0.9;
const SHARE = 0.01;
const RULES = [worseMissed, worseFallback, worseSlow, worseUnobserved];

/** `pools` by the hour: those of two days, of which the last one ends at `end` or will. */
export function changeSince(pools: readonly PoolHours[], end: number): Change {
  const days = pools.map(daysOf);
  const silent = sum(pools.map((pool) => pool.silent));
  const unknown =
    silent === 0 ? '' : `; of ${nodesInWords(silent)} without a reporting agent it cannot be known`;
  const worse = RULES.flatMap((rule) => clauseOf(days, rule, end));
  if (worse.length > 0) {
    return { verdict: 'worse', sentence: `Worse than yesterday: ${worse.join('; ')}${unknown}.` };
  }
  if (!days.some(isComparable)) {
    const sentence = `Whether anything became worse since yesterday cannot be known: ${whyUnknown(days, silent)}.`;
    return { verdict: 'unknown', sentence };
  }
  return { verdict: 'same', sentence: `Nothing that was observed became worse since yesterday${unknown}.` };
}

function daysOf({ cluster, pool, nodes, silent, ...figures }: PoolHours): Days {
  const part = (from: number, to?: number): Figures => ({
    missed: figures.missed.slice(from, to),
    fallen: figures.fallen.slice(from, to),
    slow: figures.slow.slice(from, to),
    knownSeconds: figures.knownSeconds.slice(from, to),
    watchedSeconds: figures.watchedSeconds.slice(from, to),
  });
  return {
    pool: { cluster, pool, nodes, silent },
    before: part(-2 * DAY_HOURS, -DAY_HOURS),
    today: part(-DAY_HOURS),
  };
}

function whyUnknown(days: readonly Days[], silent: number): string {
  if (days.some(({ today }) => sum(today.watchedSeconds) > 0)) return 'nothing was observed a day ago';
  return silent > 0 ? `no agent of ${nodesInWords(silent)} reports` : 'no event stream was watched today';
}

const isComparable = ({ before, today }: Days): boolean =>
  sum(before.watchedSeconds) > 0 && sum(today.watchedSeconds) > 0;

/** A rule's clause about the pool for which it is worst, and about how many others. */
function clauseOf(days: readonly Days[], rule: (days: Days) => Worse | undefined, end: number): string[] {
  const found = days.flatMap((each) => {
    const worse = rule(each);
    return worse === undefined ? [] : [{ pool: each.pool, worse }];
  });
  const [worst, ...others] = found.toSorted((a, b) => b.worse.excess - a.worse.excess);
  if (worst === undefined) return [];
  const { pool, worse } = worst;
  const since = new Date(end - (DAY_HOURS - worse.hour) * HOUR_MS).toISOString();
  const more =
    others.length === 0 ? '' : ` (and in ${others.length} other pool${others.length === 1 ? '' : 's'})`;
  return [`${worse.what} in ${placeOf(pool)}, since ${since.slice(0, 10)} ${since.slice(11, 16)} UTC${more}`];
}

const placeOf = ({ cluster, pool }: Pool): string =>
  pool === null ? `nodes of ${cluster} without a pool` : `pool ${pool} of ${cluster}`;

function worseMissed(days: Days): Worse | undefined {
  if (!isComparable(days)) return undefined;
  const { before, today } = days;
  const [was, is] = [sum(before.missed), sum(today.missed)];
  const expected = (was * sum(today.watchedSeconds)) / sum(before.watchedSeconds);
  const wasClean = was === 0 && sum(before.watchedSeconds) >= MOSTLY * sum(before.knownSeconds);
  if (is - expected <= 2 * Math.sqrt(is + expected) && !(wasClean && is > 0)) return undefined;
  const usual = Math.max(...before.missed);
  const hour = today.missed.findIndex((missed) => missed > usual);
  return {
    ...{
      excess: is - expected,
      what: `${count(is)} missed event${is === 1 ? '' : 's'} instead of ${count(was)}`,
    },
    hour: hour === -1 ? today.missed.findIndex((missed) => missed * DAY_HOURS > expected) : hour,
  };
}

function worseFallback(days: Days): Worse | undefined {
  const [was, is] = [days.before.fallen.at(-1) ?? 0, days.today.fallen.at(-1) ?? 0];
  if (!isComparable(days) || is <= was) return undefined;
  return {
    ...{
      excess: is - was,
      what: `${count(is)} kubelet${is === 1 ? '' : 's'} in fallback instead of ${count(was)}`,
    },
    hour: days.today.fallen.findIndex((fallen) => fallen > was),
  };
}

function worseSlow(days: Days): Worse | undefined {
  const [was, is] = [Math.max(...days.before.slow), Math.max(...days.today.slow)];
  if (!isComparable(days) || is <= was) return undefined;
  return {
    ...{
      excess: is - was,
      what: `PLEG slow or hung on up to ${count(is)} node${is === 1 ? '' : 's'} instead of ${count(was)}`,
    },
    hour: days.today.slow.findIndex((slow) => slow > was),
  };
}

function worseUnobserved({ before, today }: Days): Worse | undefined {
  if (sum(before.watchedSeconds) === 0) return undefined;
  const [was, is] = [unobservedShare(before), unobservedShare(today)];
  if (is <= was + SHARE) return undefined;
  const shares = today.knownSeconds.map((known, hour) => unobserved(known, today.watchedSeconds[hour]));
  const usual = Math.max(
    ...before.knownSeconds.map((known, hour) => unobserved(known, before.watchedSeconds[hour])),
  );
  const hour = shares.findIndex((each) => each > usual);
  return {
    excess: (is - was) * sum(today.knownSeconds),
    what: `${percent(is)} of the time not observed instead of ${percent(was)}`,
    hour: hour === -1 ? shares.findIndex((each) => each > was) : hour,
  };
}

const unobserved = (known: number, watched = 0): number => (known === 0 ? 0 : 1 - watched / known);
const unobservedShare = ({ knownSeconds, watchedSeconds }: Figures): number =>
  unobserved(sum(knownSeconds), sum(watchedSeconds));

const nodesInWords = (n: number): string => (n === 1 ? 'one node' : `${count(n)} nodes`);
const count = (n: number): string => n.toLocaleString('en-US');
const percent = (part: number): string => `${Math.round(part * 100)} %`;
const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);
