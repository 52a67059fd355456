/*
 * The strips of each pool, over one axis of time: in which slices events were missed, kubelets were in fallback, PLEG was slow or hung, and time was not
 * observed; each in three strengths, by the share of the pool's nodes.
 */
import type { HoursAnswer, PoolSlices, VersionChange } from '../../api.ts';
import { count, counted, moment, msOf, share, visible } from '../text.ts';

export const STRIPS = ['missed', 'fallen', 'slow', 'unobserved'] as const;
export type Strip = (typeof STRIPS)[number];

export const STRIP_NAMES: Readonly<Record<Strip, string>> = {
  missed: 'missed events',
  fallen: 'in fallback',
  slow: 'PLEG slow or hung',
  unobserved: 'not observed',
};

/** From which share of the nodes on, and of the time, a slice is drawn this strong: a node is seen however large its pool is. */
const STRENGTHS = [0, 0.1, 0.5] as const;
/** Less is the minute that an agent needs to start or to send. */
const UNOBSERVED = 0.01;
export const MOSTLY = 0.5;

/** Runs of slices of one strength, `to` not included. */
export interface Run {
  readonly from: number;
  readonly to: number;
  /** 1 to 3. */
  readonly strength: number;
}

export function shareOf(pool: PoolSlices, strip: Strip, slice: number): number {
  if (strip !== 'unobserved') return (pool[strip][slice] ?? 0) / Math.max(1, pool.nodes);
  const known = pool.knownSeconds[slice] ?? 0;
  const part = known === 0 ? 0 : 1 - (pool.watchedSeconds[slice] ?? 0) / known;
  return part < UNOBSERVED ? 0 : part;
}

export function runsOf(pool: PoolSlices, strip: Strip): Run[] {
  const runs: Run[] = [];
  for (let slice = 0; slice < pool.missed.length; slice += 1) {
    const part = shareOf(pool, strip, slice);
    const strength = part === 0 ? 0 : STRENGTHS.filter((least) => part >= least).length;
    const last = runs.at(-1);
    if (strength === 0) continue;
    if (last?.to === slice && last.strength === strength) runs[runs.length - 1] = { ...last, to: slice + 1 };
    else runs.push({ from: slice, to: slice + 1, strength });
  }
  return runs;
}

/** A line through the strips of a pool: all versions that changed in a slice. */
interface VersionLine {
  readonly slice: number;
  readonly label: string;
  readonly title: string;
}

export interface PoolStrips {
  readonly pool: PoolSlices;
  readonly lines: readonly VersionLine[];
  /** The first slice in which a node of it was known. */
  readonly first: number;
}

export interface Story {
  /** The worst first. */
  readonly shown: readonly PoolStrips[];
  /** Pools that were observed, in which nothing went wrong and no version changed. */
  readonly quiet: readonly PoolSlices[];
}

export function storyOf(answer: HoursAnswer): Story {
  const strips = answer.pools.map((pool) => ({
    pool,
    lines: linesOf(answer, pool),
    first: pool.knownSeconds.findIndex((known) => known > 0),
  }));
  const isQuiet = ({ pool, lines }: PoolStrips) => lines.length === 0 && badness(pool) === 0;
  return {
    shown: strips.filter((each) => !isQuiet(each)).toSorted((a, b) => badness(b.pool) - badness(a.pool)),
    quiet: strips.filter(isQuiet).map(({ pool }) => pool),
  };
}

/** How many nodes something was wrong with, slice by slice. */
const badness = (pool: PoolSlices): number =>
  STRIPS.reduce(
    (sum, strip) =>
      sum +
      pool.missed.reduce((all, _, slice) => all + pool.nodes * Math.min(1, shareOf(pool, strip, slice)), 0),
    0,
  );

function linesOf({ versions, from, seconds }: HoursAnswer, { cluster, pool }: PoolSlices): VersionLine[] {
  const bySlice = new Map<number, VersionChange[]>();
  for (const change of versions) {
    if (change.cluster !== cluster || change.pool !== pool) continue;
    const slice = Math.round((msOf(change.at) - msOf(from)) / 1000 / seconds);
    bySlice.set(slice, [...(bySlice.get(slice) ?? []), change]);
  }
  return [...bySlice].map(([slice, changes]) => ({
    slice,
    label: [...new Set(changes.map(({ after }) => visible(after)))].join(', '),
    title: `${moment(msOf(from) + slice * seconds * 1000)} UTC: ${changes.map(changeInWords).join('; ')}`,
  }));
}

const changeInWords = ({ what, before, after, nodes }: VersionChange): string =>
  `${what} ${visible(before)} to ${visible(after)} on ${counted(nodes, 'node')}`;

export const nameOf = ({ cluster, pool }: PoolSlices): string =>
  pool === null ? `${visible(cluster)}, nodes without a pool` : `${visible(cluster)} / ${visible(pool)}`;

/** The facts of a slice of a pool, for the line above the drawing. */
export function sliceInWords(
  { from, seconds }: HoursAnswer,
  { pool, lines }: PoolStrips,
  slice: number,
): string {
  const begin = msOf(from) + slice * seconds * 1000;
  const period = `${moment(begin).slice(0, 16)} – ${moment(begin + seconds * 1000).slice(11, 16)} UTC`;
  const known = pool.knownSeconds[slice] ?? 0;
  if (known === 0) return `${nameOf(pool)}, ${period}: no node of it was known`;
  const watched = pool.watchedSeconds[slice] ?? 0;
  // Where nobody watched, zero says nothing.
  const figureOf = (n = 0, text: (n: number) => string) => (n > 0 || watched > 0 ? [text(n)] : []);
  const facts = [
    ...figureOf(pool.missed[slice], (n) => counted(n, 'missed event')),
    ...figureOf(pool.fallen[slice], (n) => `${count(n)} in fallback`),
    ...figureOf(pool.slow[slice], (n) => `PLEG slow or hung on ${count(n)}`),
    `${share(watched / known)} observed`,
    ...lines.filter((line) => line.slice === slice).map(({ title }) => title.replace(/^.* UTC: /, '')),
  ];
  return `${nameOf(pool)}, ${period}, ${counted(pool.nodes, 'node')}: ${facts.join(', ')}`;
}
