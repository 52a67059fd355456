import { expect, test } from 'vitest';
import { type FaultKind, type ScheduleOptions, scheduleOf } from './schedule.ts';

const options = (seed: number, without: readonly FaultKind[] = []): ScheduleOptions => ({
  seed,
  faults: 24,
  nodes: 3,
  controllers: 2,
  without: new Set(without),
  everyMs: 1_000,
});
const seeds = Array.from({ length: 200 }, (_, i) => i + 1);

test('the same seed gives the same schedule, and another seed another one', () => {
  expect(scheduleOf(options(7))).toEqual(scheduleOf(options(7)));
  expect(scheduleOf(options(7))).not.toEqual(scheduleOf(options(8)));
});

test('a schedule has the requested number of faults, a new password of each user, a flipped bit, a misread block, a swizzle, a slow disk, a full Redis and each fault of a kubelet, ordered by time', () => {
  for (const seed of seeds) {
    const events = scheduleOf(options(seed));
    expect(events).toHaveLength(35);
    const users = events.flatMap(({ fault }) => (fault.kind === 'new password' ? [fault.user] : []));
    expect(users.sort()).toEqual(['agent', 'controller']);
    expect(events.map(({ atMs }) => atMs)).toEqual(events.map(({ atMs }) => atMs).sort((a, b) => a - b));
  }
});

test('no restore comes before a copy', () => {
  for (const seed of seeds) {
    const copied = new Set<string>();
    for (const { fault } of scheduleOf(options(seed))) {
      if (fault.kind === 'copy') copied.add(fault.of);
      if (fault.kind === 'restore') expect(copied).toContain(fault.of);
    }
  }
});

test('a fault that the machine cannot inject is in no schedule', () => {
  for (const seed of seeds) {
    expect(scheduleOf(options(seed, ['full disk'])).map(({ fault }) => fault.kind)).not.toContain(
      'full disk',
    );
  }
});

test('every kind of fault, every part and every route occurs in some schedule', () => {
  const faults = seeds.flatMap((seed) => scheduleOf(options(seed)).map(({ fault }) => fault));
  expect(new Set(faults.map(({ kind }) => kind)).size).toBe(26);
  const parts = faults.flatMap((fault) => (fault.kind === 'kill' ? [fault.part] : []));
  expect(new Set(parts).size).toBe(3 + 2 + 2);
  const routes = faults.flatMap((fault) => (fault.kind === 'cut' ? [fault.route] : []));
  expect(new Set(routes).size).toBe(3 + 2 + 2);
});

test('a swizzle cuts every route once and heals every route once, in orders of their own', () => {
  const swizzles = seeds.flatMap((seed) =>
    scheduleOf(options(seed)).flatMap(({ fault }) => (fault.kind === 'swizzle' ? [fault] : [])),
  );
  expect(swizzles).toHaveLength(seeds.length);
  const [first] = swizzles;
  for (const { cut, heal } of swizzles) {
    expect(new Set(cut).size).toBe(3 + 2 + 2);
    expect(cut.toSorted()).toEqual(first?.cut.toSorted());
    expect(heal.toSorted()).toEqual(first?.cut.toSorted());
  }
  expect(swizzles.filter(({ cut, heal }) => cut.join() === heal.join()).length).toBeLessThan(3);
  expect(new Set(swizzles.map(({ cut }) => cut.join())).size).toBeGreaterThan(100);
});
