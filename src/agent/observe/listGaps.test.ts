import { expect, test } from 'vitest';
import type { RecordOf } from '../../protocol/record.ts';
import { mono } from '../../protocol/units.ts';
import { Gaps } from './gaps.ts';
import { ListGaps } from './listGaps.ts';

const START = mono(1_000_000);
const at = (seconds: number) => mono(START + seconds * 1e6);

/** List gaps, and what is recorded of them so far: cause, start and end in seconds. */
function listGaps() {
  const records = new Map<string, RecordOf<'gap'>>();
  let minted = 0;
  const gaps = new Gaps(
    START,
    () => `gap-${++minted}`,
    (record) => records.set(record.gapId, record),
  );
  const recorded = () =>
    [...records.values()].map(({ cause, from, to }) => [cause, from / 1e6, to === null ? null : to / 1e6]);
  return { lists: new ListGaps(gaps), recorded };
}

test('a slow list is a gap while it lasts, from its request to its answer', () => {
  const { lists, recorded } = listGaps();
  lists.checkRunning(at(10), at(12));
  expect(recorded()).toEqual([]);
  lists.checkRunning(at(10), at(15.5));
  lists.checkRunning(at(10), at(16));
  expect(recorded()).toEqual([['slow', 10, null]]);
  lists.answered(at(10), at(40));
  expect(recorded()).toEqual([['slow', 10, 40]]);
});

test('a list hangs after half a minute', () => {
  const { lists } = listGaps();
  expect(lists.checkRunning(null, at(100))).toBe(false);
  expect(lists.checkRunning(at(10), at(39))).toBe(false);
  expect(lists.checkRunning(at(10), at(41))).toBe(true);
});

test('a slow list is a gap even if it was not checked while it ran', () => {
  const { lists, recorded } = listGaps();
  lists.answered(at(1), at(2));
  lists.answered(at(10), at(16));
  expect(recorded()).toEqual([['slow', 10, 16]]);
});

test('a list that hangs and then fails is slow until it fails, and failing until the next answer', () => {
  const { lists, recorded } = listGaps();
  lists.checkRunning(at(0), at(6));
  expect(lists.failed({ from: at(0), at: at(120), code: 'DEADLINE_EXCEEDED' })).toBe(true);
  expect(lists.failed({ from: at(180), at: at(300), code: 'DEADLINE_EXCEEDED' })).toBe(false);
  lists.answered(at(360), at(361));
  expect(recorded()).toEqual([
    ['slow', 0, 120],
    ['deadline_exceeded', 120, 360],
  ]);
});

test('a slow answer after failures ends them at its request', () => {
  const { lists, recorded } = listGaps();
  lists.failed({ from: at(0), at: at(1), code: 'UNAVAILABLE' });
  lists.checkRunning(at(5), at(20));
  lists.answered(at(5), at(30));
  lists.answered(at(35), at(36));
  expect(recorded()).toEqual([
    ['unavailable', 0, 5],
    ['slow', 5, 30],
  ]);
});

test('another reason is another gap, and the hang before it is slow', () => {
  const { lists, recorded } = listGaps();
  lists.failed({ from: at(0), at: at(1), code: 'UNAVAILABLE' });
  lists.failed({ from: at(5), at: at(6), code: 'MALFORMED' });
  lists.failed({ from: at(10), at: at(130), code: 'DEADLINE_EXCEEDED' });
  lists.answered(at(140), at(141));
  expect(recorded()).toEqual([
    ['unavailable', 0, 5],
    ['malformed', 5, 10],
    ['slow', 10, 130],
    ['deadline_exceeded', 130, 140],
  ]);
});
