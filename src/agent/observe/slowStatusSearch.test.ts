/*
 * The search for slow statuses, with a clock that the test moves: a runtime of which one status hangs or is slow.
 */
import { Metadata, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type CallBounds, CriError } from '../../cri/client.ts';
import { monoNow } from '../../platform/clock.ts';
import type { ListedItem, Relist, ShownState } from '../../protocol/observation.ts';
import { parseRecord } from '../../protocol/record.ts';
import { type Mono, millis, shift, wall } from '../../protocol/units.ts';
import { FIRST_MINUTE, RelistMinute } from './relistMinute.ts';
import { SlowStatusSearch, type TimedStatus } from './slowStatusSearch.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'hrtime'] }));
afterEach(() => void vi.useRealTimers());

const TICK_MS = 250;

/** How long a runtime takes for the status of an id, in milliseconds: with an error, or for ever. */
type Delays = Readonly<Record<string, number | 'never' | 'unavailable'>>;

class Runtime {
  readonly asked: { readonly id: string; readonly at: Mono }[] = [];
  underWay = 0;
  cancelled = 0;
  #delays: Delays;

  constructor(delays: Delays = {}) {
    this.#delays = delays;
  }

  readonly sandboxStatus = (id: string, bounds: CallBounds) => this.#answer(id, bounds);
  readonly containerStatus = (id: string, bounds: CallBounds) => this.#answer(id, bounds);

  async #answer(id: string, { signal }: CallBounds): Promise<undefined> {
    this.asked.push({ id, at: monoNow() });
    this.underWay += 1;
    expect(this.underWay).toBe(1);
    const delay = this.#delays[id] ?? 5;
    try {
      await new Promise<void>((resolve, reject) => {
        const fail = (code: status) => reject(new CriError('PodSandboxStatus', serviceError(code)));
        signal?.addEventListener('abort', () => {
          this.cancelled += 1;
          fail(status.CANCELLED);
        });
        if (delay === 'unavailable') setTimeout(() => fail(status.UNAVAILABLE), 3_000);
        else if (delay !== 'never') setTimeout(resolve, delay);
      });
    } finally {
      this.underWay -= 1;
    }
  }
}

const serviceError = (code: status) =>
  Object.assign(new Error(), { code, details: '', metadata: new Metadata() });

const item = (id: string, state: ShownState): [string, ListedItem] => [
  id,
  {
    object: {
      id,
      isSandbox: id.startsWith('s'),
      ...{ sandbox: id, podUid: 'u', namespace: 'shop', pod: `pod-of-${id}`, container: '', attempt: 0 },
    },
    state,
  },
];

/** Ids that begin with s are sandboxes; those in `ended` do not run. */
function listed(ids: readonly string[], ended: readonly string[] = []): Relist {
  const part = (isSandbox: boolean) => {
    const own = ids.filter((id) => id.startsWith('s') === isSandbox);
    const items = new Map(own.map((id) => item(id, ended.includes(id) ? 'exited' : 'running')));
    return { start: monoNow(), end: monoNow(), whole: true, items };
  };
  return { sandboxes: part(true), containers: part(false) };
}

function searchOf(runtime: Runtime, readClock: () => Mono = monoNow) {
  const results: TimedStatus[] = [];
  const start = monoNow();
  const events = { timed: (result: TimedStatus) => void results.push(result), malformed: () => undefined };
  const search = new SlowStatusSearch(runtime, events, readClock);
  /** Ticks as an observer does. */
  const during = async (ms: number, tick: () => void) => {
    for (let passed = 0; passed < ms; passed += TICK_MS) {
      tick();
      await vi.advanceTimersByTimeAsync(TICK_MS);
    }
  };
  const slowFor = (ms: number, relist: Relist | null) => during(ms, () => search.search(relist, monoNow()));
  const quickFor = (ms: number) => during(ms, () => search.rest());
  return { search, results, start, slowFor, quickFor };
}

test('the pod whose status hangs is named, with how long it was waited for', async () => {
  const runtime = new Runtime({ s2: 'never' });
  const { search, results, start, slowFor } = searchOf(runtime);
  await slowFor(10_000, listed(['s1', 's2', 's3', 'c1']));
  expect(runtime.cancelled).toBe(1);
  expect(results).toEqual(['quick', 'timed_out']);
  const { statuses, slowest } = search.takeMinute(start);
  expect(slowest).toMatchObject({ id: 's2', pod: 'pod-of-s2' });
  expect(statuses).toEqual({
    asked: 2,
    slow: 1,
    slowest: { containerId: 's2', isSandbox: true, at: 1_250_000, took: 5_000_000, timedOut: true },
  });
  const counters = { expected: 0, matched: 0, missed: 0, unobservable: 0, covered: 0, untracked: 0 };
  const known = { counters: { ...counters, overdueSuppressed: 0 }, decidedUntil: start };
  const minute = new RelistMinute(start, FIRST_MINUTE, known.counters);
  const record = minute.record(start, { now: monoNow(), wall: wall(0) }, known, {
    ...(statuses === null ? {} : { statuses }),
  });
  expect(parseRecord(record)).toEqual({ ok: true, value: record });
});

test('a status that is answered after a second or more is slow; of several the slowest is named', async () => {
  const runtime = new Runtime({ s1: 1_500, s2: 3_000, s3: 900 });
  const { search, results, start, slowFor } = searchOf(runtime);
  await slowFor(60_000, listed(['s1', 's2', 's3', 's4']));
  expect(results.slice(0, 4)).toEqual(['slow', 'slow', 'quick', 'quick']);
  expect(search.takeMinute(start).statuses?.slowest).toMatchObject({
    containerId: 's2',
    took: 3_000_000,
    timedOut: false,
  });
  // The next minute begins empty.
  expect(search.takeMinute(start)).toEqual({ statuses: null, slowest: null });
});

test('while relists are quick nothing is asked for, and nothing is said', async () => {
  const runtime = new Runtime();
  const { search, start, quickFor } = searchOf(runtime);
  await quickFor(600_000);
  expect(runtime.asked).toEqual([]);
  expect(search.takeMinute(start)).toEqual({ statuses: null, slowest: null });
  expect(vi.getTimerCount()).toBe(0);
});

test('before the first list and while one is under way nothing is asked for', async () => {
  const runtime = new Runtime();
  const { slowFor } = searchOf(runtime);
  await slowFor(60_000, null);
  await slowFor(60_000, listed([]));
  expect(runtime.asked).toEqual([]);
});

test('the search ends as soon as relists are quick again', async () => {
  const runtime = new Runtime({ s1: 'never' });
  const { slowFor, quickFor } = searchOf(runtime);
  await slowFor(TICK_MS, listed(['s1', 's2']));
  await quickFor(600_000);
  expect(runtime.asked.map(({ id }) => id)).toEqual(['s1']);
  expect(runtime.underWay).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});

test('the runtime rests for a second at least, and nine times as long as the last call took', async () => {
  const runtime = new Runtime({ s2: 2_000, s3: 'never' });
  const { slowFor } = searchOf(runtime);
  await slowFor(90_000, listed(['s1', 's2', 's3', 's4']));
  const begun = runtime.asked.slice(0, 5).map(({ at }) => at);
  const waits = begun.slice(1).map((at, i) => at - (begun[i] ?? 0));
  expect(waits[0]).toBeGreaterThanOrEqual(millis(1_000));
  expect(waits[1]).toBeGreaterThanOrEqual(millis(20_000));
  expect(waits[2]).toBeGreaterThanOrEqual(millis(50_000));
});

test('sandboxes come first, then running containers, then what has ended; then all again', async () => {
  const runtime = new Runtime();
  const { slowFor } = searchOf(runtime);
  await slowFor(30_000, listed(['c1', 's1', 'c2', 's2'], ['s1', 'c1']));
  expect(runtime.asked.slice(0, 6).map(({ id }) => id)).toEqual(['s2', 'c2', 's1', 'c1', 's2', 'c2']);
});

test('the next search goes on where the last one ended', async () => {
  const runtime = new Runtime();
  const { slowFor, quickFor } = searchOf(runtime);
  await slowFor(2_000, listed(['s1', 's2', 's3', 's4']));
  await quickFor(60_000);
  // One has gone, and another is new.
  await slowFor(10_000, listed(['s2', 's3', 's4', 's5']));
  expect(runtime.asked.slice(0, 6).map(({ id }) => id)).toEqual(['s1', 's2', 's3', 's4', 's5', 's2']);
});

test('after a thousand calls the search ends until relists were quick', async () => {
  const runtime = new Runtime();
  const { slowFor, quickFor } = searchOf(runtime);
  const ids = Array.from({ length: 30 }, (_, i) => `s${i}`);
  await slowFor(1_500_000, listed(ids));
  expect(runtime.asked).toHaveLength(1_000);
  await quickFor(TICK_MS);
  await slowFor(TICK_MS, listed(ids));
  expect(runtime.asked).toHaveLength(1_001);
});

test('a stopped search cancels its call, says nothing of it and asks no more', async () => {
  const runtime = new Runtime({ s1: 'never' });
  const { search, results, start, slowFor } = searchOf(runtime);
  await slowFor(2_000, listed(['s1', 's2']));
  search.stop();
  await slowFor(600_000, listed(['s1', 's2']));
  expect(runtime.cancelled).toBe(1);
  expect(runtime.asked).toHaveLength(1);
  expect(results).toEqual([]);
  expect(search.takeMinute(start).statuses).toBeNull();
  expect(vi.getTimerCount()).toBe(0);
});

test('a runtime that goes away says nothing about the pod', async () => {
  const runtime = new Runtime({ s1: 'unavailable' });
  const { search, results, start, slowFor } = searchOf(runtime);
  await slowFor(30_000, listed(['s1']));
  expect(results).toEqual([]);
  expect(search.takeMinute(start).statuses).toBeNull();
});

test('while this process is held up no time passes for a status', async () => {
  const runtime = new Runtime({ s1: 400 });
  let heldUp = 0;
  const { search, results, start, slowFor } = searchOf(runtime, () => shift(monoNow(), heldUp));
  search.search(listed(['s1']), monoNow());
  await vi.advanceTimersByTimeAsync(150);
  heldUp = millis(8_000);
  await slowFor(1_000, null);
  expect(results).toEqual(['quick']);
  expect(search.takeMinute(start).statuses).toMatchObject({ slow: 0, slowest: null });
});

test('after this process was held up for hours the search goes on within minutes', async () => {
  const runtime = new Runtime({ s1: 400 });
  let heldUp = 0;
  const readClock = () => shift(monoNow(), heldUp);
  const { search } = searchOf(runtime, readClock);
  search.search(listed(['s1', 's2']), readClock());
  heldUp = millis(4 * 3_600_000);
  await vi.advanceTimersByTimeAsync(600_000);
  search.search(listed(['s1', 's2']), readClock());
  expect(runtime.asked.map(({ id }) => id)).toEqual(['s1', 's2']);
});
