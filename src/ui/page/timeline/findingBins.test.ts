import { expect, test } from 'vitest';
import { at, NIGHT } from '../../../../test/support/timelineAnswer.ts';
import type { TimelineFinding } from '../../api.ts';
import { TimeScale } from '../drawing/timeScale.ts';
import { binInWords, findingBins, periodOf } from './findingBins.ts';

const finding = (second: number, kind: string, resolved: number | null = null): TimelineFinding => ({
  ...{ id: `${kind}${second}`, kind, eventType: 'STOPPED', cause: null, container: null },
  ...{ at: at(second), from: null, to: null, occurredAt: null, detectedAt: at(second) },
  resolvedAt: resolved === null ? null : at(resolved),
});
/** Ten pixels a second. */
const scale = new TimeScale({ from: NIGHT, to: NIGHT + 60_000 }, 0, 600);
const secondsOf = (findings: readonly TimelineFinding[]) =>
  findingBins(findings, scale).map((bin) => bin.map((each) => (Date.parse(each.at) - NIGHT) / 1000));

test('findings whose marks would cover each other are one mark, and each finding of the period is in exactly one', () => {
  const findings = [9, 1, 5, 4, 30, 61].map((second) => finding(second, 'missed'));
  expect(secondsOf(findings)).toEqual([[1, 4, 5], [9], [30]]);
});

test('a mark of several findings leads to the period in which they can be told apart', () => {
  const [bin] = findingBins([finding(1, 'late'), finding(2, 'late')], scale);
  if (bin === undefined) throw new Error('there is no mark');
  expect(periodOf(bin)).toEqual({ from: NIGHT + 900 - 5_000, to: NIGHT + 2_100 + 5_000 });
});

test('a mark says how many findings of which kind it stands for, and whether they matter', () => {
  const kinds = [
    finding(1, 'short_life'),
    finding(1, 'short_life'),
    finding(2, 'late'),
    finding(2, 'missed', 9),
    finding(2, 'missed'),
  ];
  const [bin] = findingBins(kinds, scale);
  if (bin === undefined) throw new Error('there is no mark');
  expect(binInWords(bin)).toBe(
    '2 short_life (no fault: whoever only lists never saw it run), 1 late (it matters: whoever follows events learned of the change this late), 1 overdue and resolved, 1 missed, from 2026-11-22 03:00:01 to 2026-11-22 03:00:02 UTC; a click zooms in',
  );
  const [single] = findingBins([finding(1, 'out_of_order')], scale);
  expect(single && binInWords(single)).toMatch(/^out_of_order STOPPED at .* \(it matters to whoever/);
});
