import { expect, test } from 'vitest';
import { at, hour, NIGHT, rows, timelineAnswer } from '../../../../test/support/timelineAnswer.ts';
import type { Container, RelistSlice, TimelineFinding } from '../../api.ts';
import { TimeScale } from '../drawing/timeScale.ts';
import { modeBands, readyBands } from './bands.ts';
import { densityOf } from './eventDensity.ts';
import { holeGroups, holeShape, labelPlace, MIN_HOLE_WIDTH } from './holeShape.ts';
import { barPath, durationScale, figureLine, heatPaths } from './latencyHeat.ts';
import { findingsOfContainers, holeOf, markedContainers, nameOf } from './markedContainers.ts';
import { eventInWords, holeInWords, noteInWords } from './markWords.ts';
import { rowLayout } from './rowLayout.ts';

const container = (name: string, more: Partial<Container> = {}): Container => ({
  ...{ id: `id-${name}`, isSandbox: false, podUid: null, podNamespace: 'shop', podName: name, name: 'app' },
  ...more,
});
const missed = (of: number, second: number, more: Partial<TimelineFinding> = {}): TimelineFinding => ({
  ...{ id: `f${second}`, kind: 'missed', eventType: 'STOPPED', cause: 'sequence', container: of },
  ...{ at: at(second), from: at(second), to: at(second + 5), occurredAt: null, detectedAt: at(second + 35) },
  ...{ resolvedAt: null },
  ...more,
});
const event = (of: number, second: number) => ({
  ...{ at: at(second), createdAt: null, type: 'STARTED', container: of, replayed: false, exit: null },
});

test('a state lasts until the next change, the last one until now, and the same state is one period', () => {
  const change = (second: number, toMode: string, reason: string | null = null) => ({
    ...{ at: at(second), notBefore: null, fromMode: 'Unknown', toMode, reason, kubeletVersion: 'v1.30.14' },
  });
  const modes = rows(change(0, 'Evented'), change(5, 'Evented'), change(9, 'Fallback', 'StreamBroke'));
  expect(modeBands(timelineAnswer({ modes }), NIGHT + 20_000)).toEqual([
    { from: NIGHT, to: NIGHT + 9_000, state: 'Evented', tone: 'good', why: '' },
    {
      from: NIGHT + 9_000,
      to: NIGHT + 20_000,
      state: 'Fallback',
      tone: 'bad',
      why: 'StreamBroke, pods stay wrong until it restarts',
    },
  ]);
});

test('a mode of a later version, and a Ready condition that is unknown, have the tone of what nobody observed', () => {
  const newer = { fromMode: 'Generic', toMode: 'Newer', reason: null, kubeletVersion: null };
  const modes = rows({ at: at(0), notBefore: null, ...newer });
  const unready = { at: at(0), status: 'Unknown', reason: 'NodeStatusUnknown', causes: [], message: null };
  const bands = [
    ...modeBands(timelineAnswer({ modes }), NIGHT),
    ...readyBands(timelineAnswer({ conditions: rows(unready) }), NIGHT),
  ];
  expect(bands.map(({ state, tone }) => [state, tone])).toEqual([
    ['Newer', 'none'],
    ['Ready unknown', 'none'],
  ]);
});

test('events are counted by slice, those outside the period not at all', () => {
  const density = densityOf([-1, 0, 1, 99, 100], { from: 0, to: 100 }, 2);
  expect(density).toEqual({ counts: [2, 1], most: 2 });
});

test('a container without anything in the period has no marks', () => {
  const other = timelineAnswer({ containers: [container('a')], events: rows(event(0, 4000)) });
  expect(markedContainers(other, hour, '')).toEqual([]);
});

test('marks are narrowed by pod, container and id', () => {
  const two = timelineAnswer({
    containers: [container('cart'), container('web', { id: 'F00D' })],
    events: rows(event(0, 1), event(1, 2)),
  });
  const found = (only: string) => markedContainers(two, hour, only).map((marked) => marked.container.podName);
  expect([found('SHOP/ca'), found('f00d'), found('app')]).toEqual([['cart'], ['web'], ['cart', 'web']]);
});

test('only a missed event is a hole; other findings are notes that say whether they matter', () => {
  const kinds = ['late', 'out_of_order', 'short_life'];
  const findings = rows(...kinds.map((kind, n) => missed(0, 10 + n, { kind })));
  const shown = markedContainers(timelineAnswer({ containers: [container('a')], findings }), hour, '');
  expect(shown.map(({ holes, notes }) => [holes.length, notes.length])).toEqual([[0, 3]]);
  expect(shown[0]?.notes.map(({ finding }) => noteInWords(finding))).toEqual([
    expect.stringMatching(/^late STOPPED at 2026-11-22 03:00:10 UTC \(sequence; it matters: /),
    expect.stringMatching(/^out_of_order STOPPED at .*; it matters to whoever /),
    expect.stringMatching(/^short_life STOPPED at .*; no fault: /),
  ]);
});

test('the filter of containers narrows findings too, and leaves out those of the stream as a whole', () => {
  const containers = [container('cart'), container('web')];
  const findings = rows(missed(0, 1), missed(1, 2), missed(0, 3, { container: null }));
  const narrowed = (only: string) => findingsOfContainers({ containers, findings }, only).map(({ id }) => id);
  expect([narrowed(''), narrowed(' CART')]).toEqual([['f1', 'f2', 'f3'], ['f1']]);
});

test('a change that a wrong clock dates after it was found stands where it was found', () => {
  const hole = holeOf(missed(0, 1, { at: at(36), detectedAt: at(36), occurredAt: at(3000) }));
  expect(hole.at).toBe(NIGHT + 36_000);
});

test('the mode lasts no longer than anything is known of its agent, and an unknown one until now', () => {
  const change = (toMode: string) =>
    rows({ at: at(0), notBefore: null, fromMode: 'Unknown', toMode, reason: null, kubeletVersion: null });
  const end = (toMode: string) =>
    modeBands(timelineAnswer({ modes: change(toMode), lastSeen: at(60) }), NIGHT + 600_000).at(-1)?.to;
  expect([end('Evented'), end('Unknown')]).toEqual([NIGHT + 60_000, NIGHT + 600_000]);
});

test('a hole is as long as the window, and its event stands at the time of the runtime where that is known', () => {
  const scale = new TimeScale({ from: NIGHT, to: NIGHT + 10_000 }, 0, 1000);
  const shape = holeShape(holeOf(missed(0, 2, { occurredAt: at(3) })), scale);
  expect(shape).toEqual({ x: 200, width: 500, at: 300 });
  expect(holeShape(holeOf(missed(0, 2)), scale)).toMatchObject({ at: 450 });
});

test('a hole stays visible around its window however far one zooms out', () => {
  const shape = holeShape(holeOf(missed(0, 1800)), new TimeScale(hour, 0, 300));
  expect(shape).toEqual({ x: 150.5 - MIN_HOLE_WIDTH / 2, width: MIN_HOLE_WIDTH, at: 150.5 });
  expect(holeShape(holeOf(missed(0, 9999)), new TimeScale(hour, 0, 300))).toBeUndefined();
});

test('the words beside a hole cover no event of the row, and stay within the drawing', () => {
  const shape = { x: 100, width: 16, at: 108 };
  expect(labelPlace(shape, [50, 400], 90, 600)).toEqual({ x: 122, anchor: 'start' });
  expect(labelPlace(shape, [150, 130], 90, 600)).toEqual({ x: 164, anchor: 'start' });
  expect(labelPlace(shape, [150], 90, 200)).toEqual({ x: 94, anchor: 'end' });
  expect(labelPlace(shape, [80, 150], 90, 200)).toEqual({ x: 66, anchor: 'end' });
});

test('holes whose words would overlap share them, and others keep their own', () => {
  const wide = new TimeScale(hour, 0, 3600);
  const textsAt = (...seconds: number[]) =>
    holeGroups(
      seconds.map((second) => holeOf(missed(0, second))),
      [],
      wide,
      3600,
    ).map(({ text }) => text);
  expect(textsAt(100, 1000)).toEqual(['STOPPED missed', 'STOPPED missed']);
  expect(textsAt(1000, 100, 150)).toEqual(['2 missed', 'STOPPED missed']);
  // The words of the second stand left of it, where the first one is.
  expect(textsAt(3450, 3590)).toEqual(['2 missed']);
  const resolved = holeOf(missed(0, 100, { resolvedAt: at(200) }));
  expect(holeGroups([resolved], [], new TimeScale(hour, 0, 1000), 1000).map(({ text }) => text)).toEqual([
    'STOPPED overdue',
  ]);
  expect(textsAt(9999)).toEqual([]);
});

test('a finding without a window is a hole where it was found', () => {
  const hole = holeOf(missed(0, 7, { from: null, to: null }));
  expect([hole.from, hole.to, hole.at]).toEqual(Array(3).fill(NIGHT + 7000));
});

test('a container without a name is called by its id, a sandbox a sandbox', () => {
  expect(nameOf(container('a', { podNamespace: null, podName: null }))).toBe('id-a');
  expect(nameOf(container('a', { isSandbox: true, name: null }))).toBe('shop/a sandbox');
});

const slice = (second: number, more: Partial<RelistSlice> = {}): RelistSlice => ({
  ...{ at: at(second), seconds: 60, relists: 12, errors: 0, p50Ms: 3, p99Ms: 10, maxMs: 12 },
  ...{ hist: [0, 0, 9, 0, 0, 3], kubeletRelists: null, kubeletP99Ms: null },
  ...{ cpuSome: null, ioSome: null, ioFull: null, memorySome: null, memoryFull: null },
  ...more,
});

test('each class of duration that occurred is a cell, the more frequent the darker', () => {
  const slices = [slice(0), slice(60, { hist: [] })];
  const paths = heatPaths(
    slices,
    [1, 2, 4, 8, 16, 32],
    new TimeScale(hour, 0, 360),
    durationScale(slices),
    100,
  );
  expect(paths.map(({ path }) => (path.match(/M/g) ?? []).length)).toEqual([0, 0, 1, 1]);
});

test('a bar is as tall as the share of its minute, and there is none where it is unknown or nothing', () => {
  const slices = [slice(0, { ioFull: 0.5 }), slice(60), slice(120, { ioFull: 0 }), slice(180, { ioFull: 1 })];
  const path = barPath(slices, new TimeScale(hour, 0, 3_600), 20, ({ ioFull }) => ioFull);
  expect(path).toBe('M0 20v-10h60v10zM180 20v-20h60v20z');
});

test('the scale of durations reaches the longest relist', () => {
  expect(durationScale([slice(0, { maxMs: 12_000 })]).ticks.at(-1)).toBe(100_000);
  expect(durationScale([]).ticks.at(-1)).toBe(100);
});

test('the words of an event say how its container ended, if the event does', () => {
  const stopped = { at: NIGHT, type: 'STOPPED', replayed: false };
  expect(eventInWords({ ...stopped, exit: 'exit 137 OOMKilled' })).toBe(
    'STOPPED (exit 137 OOMKilled) received at 03:00:00.000 UTC',
  );
  expect(eventInWords({ ...stopped, exit: null })).toBe('STOPPED received at 03:00:00.000 UTC');
});

test('a line is broken where nothing was measured', () => {
  const slices = [slice(0), slice(60), slice(120, { p99Ms: null }), slice(180)];
  const line = figureLine(
    slices,
    new TimeScale(hour, 0, 360),
    durationScale(slices),
    100,
    (each) => each.p99Ms,
  );
  expect(line.replaceAll(/[^ML]/g, '')).toBe('MLM');
});

test('rows do not overlap, and on a narrow page their names have a line of their own', () => {
  const sizes = [
    { key: 'mode', height: 20 },
    { key: 'ready', height: 20 },
  ];
  for (const width of [360, 1200]) {
    const { rows: places, height } = rowLayout(width, sizes);
    const [mode, ready] = ['mode', 'ready'].map((key) => places.get(key));
    expect((mode?.top ?? 0) + 20).toBeLessThan((ready?.top ?? 0) - (width < 720 ? 16 : 0));
    expect(height).toBeGreaterThan((ready?.top ?? 0) + 20);
  }
  expect([rowLayout(360, sizes).left, rowLayout(1200, sizes).left > 0]).toEqual([0, true]);
});

test('a change that the status of the kubelet showed late is a hole of its own, and never called a missed event', () => {
  const late = missed(0, 60, { kind: 'kubelet_late', cause: 'not_shown' });
  const shown = markedContainers(
    timelineAnswer({ containers: [container('a')], findings: rows(late) }),
    hour,
    '',
  );
  const holes = shown.flatMap((marked) => marked.holes);
  const words = (all: typeof holes) =>
    holeGroups(all, [], new TimeScale(hour, 0, 1000), 1000).map(({ text }) => text);
  expect(words(holes)).toEqual(['STOPPED late in the kubelet']);
  expect(words([...holes, holeOf(missed(0, 61))])).toEqual(['2 missed or late in the kubelet']);
  expect(holeInWords(late)).toBe(
    "STOPPED between 2026-11-22 03:01:00 and 03:01:05 UTC, shown late by the kubelet's own status, and not resolved",
  );
});
