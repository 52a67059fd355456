import { expect, test } from 'vitest';
import { type LifeEvidence, type Listed, lifeOf } from './lives.ts';

const NIGHT = Date.parse('2026-11-22T03:00:00Z');
const at = (second: number) => new Date(NIGHT + second * 1000).toISOString();
const listed = (more: Partial<Listed> = {}): Listed => ({
  ...{ from: NIGHT, to: NIGHT + 600_000, until: NIGHT + 600_000, breaks: [] },
  ...more,
});
const event = (second: number, type: string) => ({ at: at(second), createdAt: at(second), type });
const change = (second: number, oldState: string, newState: string) => ({
  ...{ from: at(second), to: at(second + 5), oldState, newState },
});
const missed = (eventType: string, from: number, to: number, occurred: number | null = null) => ({
  ...{ eventType, from: at(from), at: at(occurred ?? to) },
  occurredAt: occurred === null ? null : at(occurred),
});
const evidence = (more: Partial<LifeEvidence>): LifeEvidence => ({
  ...{ events: [], changes: [], findings: [] },
  ...more,
});
/** `running 60-120`, in seconds. */
const drawn = (more: Partial<LifeEvidence>, lists = listed()) =>
  lifeOf(evidence(more), lists)?.parts.map(
    ({ state, from, to }) => `${state} ${(from - NIGHT) / 1000}-${(to - NIGHT) / 1000}`,
  );

test('events say when each stage was reached, and lists agree', () => {
  const life = {
    events: [event(9, 'CREATED'), event(10, 'STARTED'), event(60, 'STOPPED'), event(80, 'DELETED')],
    changes: [
      change(8, 'non-existent', 'running'),
      change(58, 'running', 'exited'),
      change(78, 'exited', 'non-existent'),
    ],
  };
  expect(drawn(life)).toEqual(['created 9-10', 'running 10-60', 'exited 60-80']);
});

test('without an event, a start or end lies somewhere between two lists', () => {
  const changes = [change(10, 'non-existent', 'running'), change(60, 'running', 'exited')];
  expect(drawn({ changes })).toEqual(['turning 10-15', 'running 15-60', 'turning 60-65', 'exited 65-600']);
});

test("a missed end happened at the runtime's own time, else within the window of the finding", () => {
  const started = { events: [event(10, 'STARTED')] };
  expect(drawn({ ...started, findings: [missed('STOPPED', 60, 65, 61)] })).toEqual([
    'running 10-61',
    'unobserved 61-600',
  ]);
  expect(drawn({ ...started, findings: [missed('STOPPED', 60, 65)] })).toEqual([
    'running 10-60',
    'turning 60-65',
    'unobserved 65-600',
  ]);
});

test('a missed end proves a run of which nobody saw the start', () => {
  const life = lifeOf(evidence({ findings: [missed('STOPPED', 60, 65)] }), listed());
  expect(life).toMatchObject({ isOpenStart: true, isOpenEnd: true });
  expect(life?.parts.map(({ state }) => state)).toEqual(['turning', 'unobserved']);
});

test('a container was as lists had shown it since they went on, before its first change too', () => {
  const ended = { changes: [change(60, 'running', 'exited')] };
  expect(drawn(ended)).toEqual(['running 0-60', 'turning 60-65', 'exited 65-600']);
  expect(lifeOf(evidence(ended), listed())?.isOpenStart).toBe(true);
  const broken = listed({ breaks: [{ from: NIGHT + 20_000, to: NIGHT + 30_000 }] });
  expect(drawn(ended, broken)?.[0]).toBe('running 30-60');
});

test('a state lasts while lists go on, and then nobody looked', () => {
  const running = {
    events: [event(8, 'CREATED'), event(10, 'STARTED')],
    changes: [change(8, 'non-existent', 'running')],
  };
  const broken = listed({ breaks: [{ from: NIGHT + 300_000, to: Number.POSITIVE_INFINITY }] });
  expect(drawn(running, broken)).toEqual(['created 8-10', 'running 10-300', 'unobserved 300-600']);
  expect(drawn(running, listed({ to: NIGHT + 400_000 }))).toEqual([
    'created 8-10',
    'running 10-400',
    'unobserved 400-600',
  ]);
  // No list has confirmed the event yet.
  expect(drawn({ events: running.events })).toEqual(['created 8-10', 'unobserved 10-600']);
});

test('a container that ran before a time that nobody observed and after it ran meanwhile', () => {
  const gap = listed({ breaks: [{ from: NIGHT + 100_000, to: NIGHT + 200_000 }] });
  const events = [event(10, 'STARTED')];
  const changes = [change(8, 'non-existent', 'running'), change(300, 'running', 'exited')];
  expect(drawn({ events, changes }, gap)?.[1]).toBe('running 10-300');
});

test('where an event contradicts lists, the lists are believed', () => {
  const changes = [change(8, 'non-existent', 'running'), change(300, 'running', 'exited')];
  const parts = drawn({ events: [event(10, 'STARTED'), event(20, 'STOPPED')], changes });
  expect(parts?.slice(1)).toEqual(['running 10-300', 'exited 300-600']);
});

test('a container that nothing proves to have run is not drawn running', () => {
  const changes = [change(10, 'non-existent', 'unknown'), change(60, 'unknown', 'exited')];
  expect(drawn({ changes })).toEqual(['changing 10-15', 'created 15-60', 'turning 60-65', 'exited 65-600']);
});

test('a list that takes back an end begins another run', () => {
  const changes = [
    change(10, 'non-existent', 'running'),
    change(60, 'running', 'exited'),
    change(90, 'exited', 'running'),
  ];
  expect(drawn({ changes })).toEqual([
    'turning 10-15',
    'running 15-60',
    'turning 60-65',
    'exited 65-90',
    'turning 90-95',
    'running 95-600',
  ]);
});

test('a removal between two lists is no run', () => {
  const changes = [change(60, 'exited', 'non-existent')];
  expect(drawn({ changes })).toEqual(['exited 0-60', 'changing 60-65']);
});

test('a container of which nothing is known is not drawn', () => {
  expect(drawn({})).toBeUndefined();
  expect(drawn({ events: [event(1, 'RESTORED')] })).toBeUndefined();
});
