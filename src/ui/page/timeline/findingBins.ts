/*
 * Findings that lie so close on the drawing that their marks would cover each other: one mark with their number.
 */
import { MATTERS } from '../../../analysis/words.ts';
import type { TimelineFinding } from '../../api.ts';
import { type Range, type TimeScale, widened } from '../drawing/timeScale.ts';
import { count, moment, msOf, visible } from '../text.ts';
import { holeInWords, noteInWords } from './markWords.ts';

/** In order of time; never empty. */
export type FindingBin = readonly [TimelineFinding, ...TimelineFinding[]];

/** As wide as a mark and a number of four digits. */
const WIDTH = 44;
const MIN_PAD_MS = 5_000;

/** The bins within the drawing. */
export function findingBins(findings: readonly TimelineFinding[], scale: TimeScale): FindingBin[] {
  const { from, to } = scale.range;
  const bins: [TimelineFinding, ...TimelineFinding[]][] = [];
  for (const finding of findings.toSorted((a, b) => msOf(a.at) - msOf(b.at))) {
    const at = msOf(finding.at);
    if (at < from || at > to) continue;
    const bin = bins.at(-1);
    if (bin !== undefined && scale.x(at) - scale.x(msOf(bin[0].at)) < WIDTH) bin.push(finding);
    else bins.push([finding]);
  }
  return bins;
}

/** The period in which its findings can be told apart. */
export function periodOf(bin: FindingBin): Range {
  const times = bin.map(({ at }) => msOf(at));
  const period = widened({ from: Math.min(...times), to: Math.max(...times) }, 0.1);
  return { from: Math.floor(period.from) - MIN_PAD_MS, to: Math.ceil(period.to) + MIN_PAD_MS };
}

/** Their kind, and whether they matter. */
export function binInWords(bin: FindingBin): string {
  const [first] = bin;
  if (bin.length === 1) return first.kind === 'missed' ? holeInWords(first) : noteInWords(first);
  const counts = new Map<string, number>();
  for (const { kind, resolvedAt } of bin) {
    const name = kind === 'missed' && resolvedAt !== null ? 'overdue and resolved' : kind;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const kinds = [...counts].map(([name, n]) => {
    const matters = MATTERS[name];
    return `${count(n)} ${visible(name)}${matters === undefined ? '' : ` (${matters})`}`;
  });
  const until = bin.at(-1) ?? first;
  return `${kinds.join(', ')}, from ${moment(msOf(first.at))} to ${moment(msOf(until.at))} UTC; a click zooms in`;
}
