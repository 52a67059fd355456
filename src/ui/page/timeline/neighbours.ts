/*
 * A node beside the others of its pool: which of its figures differ from what is usual there.
 *
 * A word differs if fewer than half of the others, of which it is known, have the same. A number differs from the median of the others: a duration by half
 * of it or more, a share by a hundredth, a count by one and to twice as much. A fact that is known of the others and not of this node differs too.
 */
import { duration } from '../../../analysis/words.ts';
import type { Neighbour } from '../../api.ts';
import { countsOf } from '../pool/poolWords.ts';
import { count, share, visible } from '../text.ts';

export interface Comparison {
  readonly name: string;
  readonly own: string;
  readonly others: string;
  /** unknown: of the others nothing is known that it could be compared with. */
  readonly is: 'different' | 'equal' | 'unknown';
}

const WORDS: readonly (readonly [name: string, value: (node: Neighbour) => string | null])[] = [
  ['PLEG mode', ({ mode }) => (mode === 'Unknown' ? null : mode)],
  ['Event stream now', ({ agent, streamState }) => (agent === 'Reporting' ? streamState : null)],
  ['Kubelet', ({ kubeletVersion }) => kubeletVersion],
  [
    'Runtime',
    ({ runtimeName, runtimeVersion }) => [runtimeName, runtimeVersion].filter(Boolean).join(' ') || null,
  ],
  ['Operating system', ({ osImage }) => osImage],
  ['Kernel', ({ kernelVersion }) => kernelVersion],
  ['Agent of plegwatch', ({ agentVersion }) => agentVersion],
];

interface NumberOf {
  readonly name: string;
  readonly value: (node: Neighbour) => number | null;
  readonly text: (value: number) => string;
  readonly differs: (own: number, usual: number) => boolean;
}

const byCount = (own: number, usual: number) =>
  Math.abs(own - usual) >= 1 && Math.max(own, usual) >= 2 * Math.min(own, usual);
const byHalf = (own: number, usual: number) => Math.max(own, usual) >= 1.5 * Math.min(own, usual);

/** Counts say nothing of a node that nobody watched. */
const NUMBERS: readonly NumberOf[] = [
  { name: 'Missed events', value: ({ missed }) => missed, text: count, differs: byCount },
  {
    name: 'Fallbacks',
    value: ({ fallbacks, mode }) => (mode === 'Unknown' && fallbacks === 0 ? null : fallbacks),
    text: count,
    differs: byCount,
  },
  {
    name: 'Watched',
    value: ({ watched }) => watched,
    text: share,
    differs: (own, usual) => Math.abs(own - usual) >= 0.01,
  },
  { name: 'Relists, 99th percentile', value: ({ p99Ms }) => p99Ms, text: duration, differs: byHalf },
  { name: 'Longest relist', value: ({ maxMs }) => maxMs, text: duration, differs: byHalf },
];

/** Those that differ first. */
export function comparisons(own: Neighbour, others: readonly Neighbour[]): Comparison[] {
  const all = [
    ...WORDS.map(([name, value]) => compareWords(name, value(own), others.map(value))),
    ...NUMBERS.map((number) => compareNumbers(number, own, others)),
  ];
  const rank = ['different', 'equal', 'unknown'];
  return all.sort((a, b) => rank.indexOf(a.is) - rank.indexOf(b.is));
}

const UNKNOWN = 'not observed';
const MOST_SHOWN = 3;

function compareWords(name: string, own: string | null, others: readonly (string | null)[]): Comparison {
  const known = others.filter((value) => value !== null);
  const counts = countsOf(known);
  const same = known.filter((value) => value === own).length;
  const rest = counts.slice(MOST_SHOWN).reduce((sum, [, n]) => sum + n, 0);
  const texts = [
    ...counts.slice(0, MOST_SHOWN).map(([value, n]) => `${visible(value)}: ${count(n)}`),
    ...(rest === 0 ? [] : [`others: ${count(rest)}`]),
    ...unknownOf(others.length - known.length),
  ];
  return {
    ...{ name, own: own === null ? UNKNOWN : visible(own), others: texts.join(', ') },
    is: known.length === 0 ? 'unknown' : 2 * same < known.length ? 'different' : 'equal',
  };
}

function compareNumbers(
  { name, value, text, differs }: NumberOf,
  node: Neighbour,
  others: readonly Neighbour[],
): Comparison {
  const own = value(node);
  const known = others.map(value).filter((each) => each !== null);
  const [least, usual, most] = [Math.min(...known), median(known), Math.max(...known)];
  const texts = [
    ...(known.length === 0
      ? []
      : [least === most ? text(usual) : `${text(usual)} (${text(least)} to ${text(most)})`]),
    ...unknownOf(others.length - known.length),
  ];
  return {
    ...{ name, own: own === null ? UNKNOWN : text(own), others: texts.join(', ') },
    is: known.length === 0 ? 'unknown' : own === null || differs(own, usual) ? 'different' : 'equal',
  };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [low = 0, high = 0] = [sorted[(sorted.length - 1) >> 1], sorted[middle]];
  return (low + high) / 2;
}

const unknownOf = (n: number): string[] => (n === 0 ? [] : [`${UNKNOWN}: ${count(n)}`]);
