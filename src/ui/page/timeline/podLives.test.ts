import { expect, test } from 'vitest';
import { at, hour, NIGHT, rows, timelineAnswer } from '../../../../test/support/timelineAnswer.ts';
import type { ChangeLag, Container, TimelineAnswer, TimelineFinding } from '../../api.ts';
import { type PodLives, podLives } from './podLives.ts';

const ROOM = { mattering: 12, others: 0 };

const container = (pod: string, more: Partial<Container> = {}): Container => ({
  ...{
    id: `id-${pod}-app`,
    isSandbox: false,
    podUid: `uid-${pod}`,
    podNamespace: 'shop',
    podName: pod,
    name: 'app',
  },
  ...more,
});
const event = (of: number, second: number, type = 'STARTED') => ({
  ...{ at: at(second), createdAt: null, type, container: of, replayed: false, exit: null },
});
const change = (of: number, second: number, oldState: string, newState: string) => ({
  ...{ from: at(second), to: at(second + 5), container: of, oldState, newState },
});
const missed = (of: number, second: number, more: Partial<TimelineFinding> = {}): TimelineFinding => ({
  ...{ id: `f${of} ${second}`, kind: 'missed', eventType: 'STOPPED', cause: 'sequence', container: of },
  ...{ at: at(second), from: at(second - 5), to: at(second), occurredAt: null, detectedAt: at(second + 30) },
  ...{ resolvedAt: null },
  ...more,
});
const lag = (of: number, second: number, more: Partial<ChangeLag> = {}): ChangeLag => ({
  ...{ findingId: null, kind: null, eventType: 'STOPPED', container: of, at: at(second) },
  ...{ kubeletKnew: null, kubeletWhy: null, kubeletAtLeastMs: null },
  ...{ kubeletAtMostMs: null, lagMinMs: null, lagMaxMs: null, lagReason: null, isRead: false },
  ...more,
});

const names = (pods: readonly PodLives[]) => pods.map(({ rows: [first] }) => first?.name);
const shownOf = (shown: Partial<TimelineAnswer>, range = hour) =>
  podLives(timelineAnswer(shown), range, '', ROOM);

test('pods with a missed event or a status that was late for long are shown, others are counted', () => {
  const { shown, leftOut } = shownOf({
    containers: ['well', 'lossy', 'slow', 'quick'].map((pod) => container(pod)),
    events: rows(event(0, 10), event(1, 20), event(2, 30), event(2, 40, 'STOPPED'), event(3, 50)),
    findings: rows(missed(1, 60)),
    lags: rows(lag(2, 40, { lagMinMs: 60_000 }), lag(3, 50, { eventType: 'STARTED', lagMinMs: 3_000 })),
  });
  expect(names(shown)).toEqual(['shop/lossy', 'shop/slow']);
  expect(leftOut).toEqual({ mattering: 0, others: 2 });
});

test('a finding that accuses nobody does not make a pod matter', () => {
  const kinds = ['unobservable', 'unannounced', 'short_life', 'duplicate'];
  const { leftOut } = shownOf({
    containers: [container('lossy'), ...kinds.map((kind) => container(kind))],
    events: rows(...kinds.map((_, n) => event(n + 1, n))),
    findings: rows(missed(0, 60), ...kinds.map((kind, n) => missed(n + 1, 60, { kind }))),
  });
  expect(leftOut).toEqual({ mattering: 0, others: kinds.length });
});

test('where nothing is wrong, the latest few pods are shown', () => {
  const pods = Array.from({ length: 9 }, (_, n) => container(`web-${n}`));
  const { shown, leftOut } = shownOf({ containers: pods, events: rows(...pods.map((_, n) => event(n, n))) });
  expect(names(shown)).toEqual([3, 4, 5, 6, 7, 8].map((n) => `shop/web-${n}`));
  expect(leftOut.others).toBe(3);
});

test('a pod that the reader names is shown, whatever else is wrong', () => {
  const pods = { containers: [container('web'), container('web-lossy')], events: rows(event(0, 10)) };
  const both = timelineAnswer({ ...pods, findings: rows(missed(1, 60)) });
  expect(names(podLives(both, hour, 'WEB', ROOM).shown)).toEqual(['shop/web', 'shop/web-lossy']);
  expect(names(podLives(both, hour, '', ROOM).shown)).toEqual(['shop/web-lossy']);
});

test('beyond the room, pods that matter are counted apart from others, and the latest are shown', () => {
  const pods = Array.from({ length: 15 }, (_, n) => container(`job-${n}`));
  const { shown, leftOut } = shownOf({
    containers: pods,
    findings: rows(...pods.map((_, n) => missed(n, 60 + n))),
  });
  expect([names(shown)[0], shown.length, leftOut]).toEqual(['shop/job-3', 12, { mattering: 3, others: 0 }]);
});

test('a pod has a row for its sandbox and one for each name of a container, in which runs follow each other', () => {
  const containers = [
    container('cart', { id: 'box', isSandbox: true, name: null }),
    container('cart', { id: 'a' }),
    container('cart', { id: 'b' }),
    container('cart', { id: 'c', name: 'proxy' }),
  ];
  const events = rows(event(0, 9), event(1, 10), event(1, 20, 'STOPPED'), event(2, 30), event(3, 11));
  const changes = rows(...[0, 1, 3].map((of) => change(of, 8, 'non-existent', 'running')));
  const { shown } = shownOf({ containers, events, changes, findings: rows(missed(3, 60)) });
  expect(shown[0]?.rows.map(({ name, isPod }) => [name, isPod])).toEqual([
    ['shop/cart', true],
    ['app', false],
    ['proxy', false],
  ]);
  const app = shown[0]?.rows[1];
  expect(
    app?.parts.filter(({ state }) => state === 'running').map(({ from, to }) => [from - NIGHT, to - NIGHT]),
  ).toEqual([[10_000, 20_000]]);
});

test('two runs of one name at once have a row each', () => {
  const containers = [container('twin', { id: 'a' }), container('twin', { id: 'b' })];
  const changes = rows(change(0, 10, 'non-existent', 'running'), change(1, 20, 'non-existent', 'running'));
  const { shown } = shownOf({
    containers,
    changes,
    findings: rows(missed(0, 60, { kind: 'duplicate_container' })),
  });
  expect(shown[0]?.rows.map(({ name }) => name)).toEqual(['shop/twin', 'app', 'app']);
});

test('an event that was received of a run after the next one had begun is kept apart', () => {
  const containers = [container('cart', { id: 'a' }), container('cart', { id: 'b' })];
  const events = rows(event(0, 10), event(0, 20, 'STOPPED'), event(1, 30), event(0, 40, 'DELETED'));
  const app = shownOf({ containers, events }).shown[0]?.rows[1];
  expect(app?.past.map(({ type }) => type)).toEqual(['DELETED']);
  expect(app?.marked.events).toHaveLength(3);
});

test('a pod that was made again under its name has rows of its own', () => {
  const containers = [container('db-0'), container('db-0', { id: 'b', podUid: 'uid-2' })];
  const { shown } = shownOf({ containers, events: rows(event(0, 10), event(1, 900)) });
  expect(names(shown)).toEqual(['shop/db-0', 'shop/db-0']);
});

test('a ghost is shown in a period after the end of its container, and not of a change that nothing proves', () => {
  const ghost = { containers: [container('cart')], lags: rows(lag(0, 60, { lagMinMs: 300_000 })) };
  const later = { from: NIGHT + 100_000, to: NIGHT + 200_000 };
  const ended = { ...ghost, events: rows(event(0, 10), event(0, 60, 'STOPPED')) };
  expect(shownOf(ended, later).shown[0]?.rows[1]?.ghosts).toHaveLength(1);
  expect(shownOf({ ...ghost, events: rows(event(0, 10)) }, later).shown).toEqual([]);
});

test('an event that lists contradict ends no run', () => {
  const { shown } = shownOf({
    containers: [container('cart')],
    events: rows(event(0, 10), event(0, 20, 'STOPPED')),
    changes: rows(change(0, 8, 'non-existent', 'running')),
    findings: rows(missed(0, 20, { kind: 'spurious' })),
  });
  expect(shown[0]?.rows[1]?.parts.at(-1)).toMatchObject({ state: 'running', to: NIGHT + 3_600_000 });
});

test('a pod that began before the period is whole if its start is stored', () => {
  const { shown } = shownOf({
    containers: [container('cart')],
    earlier: { events: [event(0, -900)], changes: [change(0, -902, 'non-existent', 'running')] },
    changes: rows(change(0, 60, 'running', 'exited')),
    findings: rows(missed(0, 65)),
  });
  const running = shown[0]?.rows[1]?.parts.find(({ state }) => state === 'running');
  expect(running).toEqual({ state: 'running', from: NIGHT - 900_000, to: NIGHT + 60_000 });
});
