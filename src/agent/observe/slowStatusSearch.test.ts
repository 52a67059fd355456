/*
 * The search for slow statuses, with a clock that the test moves: a runtime of which one status hangs or is slow.
 */
import { Metadata, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type CallBounds, CriError } from '../../cri/client.ts';
import { monoNow } from '../../platform/clock.ts';
import type { ListedItem, Relist, ShownState } from '../../protocol/observation.ts';
import { type MinuteStatuses, parseRecord } from '../../protocol/record.ts';
import { type Mono, millis, shift, since, wall } from '../../protocol/units.ts';
import type { ListHang } from './listHangs.ts';
import { FIRST_MINUTE, RelistMinute } from './relistMinute.ts';
import { type SearchedLists, SlowStatusSearch, type TimedStatus } from './slowStatusSearch.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'hrtime'] }));
afterEach(() => void vi.useRealTimers());

const TICK_MS = 250;

/** How long a runtime takes for the status of an id, in milliseconds: with an error, or for ever. */
type Delays = Readonly<Record<string, number | 'never' | 'unavailable'>>;

class Runtime {
  readonly asked: { readonly id: string; readonly at: Mono }[] = [];
  underWay = 0;
  cancelled = 0;
  /** No status is answered before {@link thaw}. */
  isFrozen = false;
  readonly #delays: Record<string, Delays[string]>;
  readonly #hanging = new Map<string, () => void>();

  constructor(delays: Delays = {}) {
    this.#delays = { ...delays };
  }

  readonly sandboxStatus = (id: string, bounds: CallBounds) => this.#answer(id, bounds);
  readonly containerStatus = (id: string, bounds: CallBounds) => this.#answer(id, bounds);

  /** Answers what hangs: the status of this id, or all of them. */
  thaw(id?: string): void {
    this.isFrozen = false;
    for (const [hanging, answer] of this.#hanging) {
      if (id !== undefined && id !== hanging) continue;
      delete this.#delays[hanging];
      answer();
    }
  }

  times(id: string): number {
    return this.asked.filter((call) => call.id === id).length;
  }

  async #answer(id: string, { signal }: CallBounds): Promise<undefined> {
    this.asked.push({ id, at: monoNow() });
    this.underWay += 1;
    const delay = this.isFrozen ? 'never' : (this.#delays[id] ?? 5);
    try {
      await new Promise<void>((resolve, reject) => {
        const fail = (code: status) => reject(new CriError('PodSandboxStatus', serviceError(code)));
        signal?.addEventListener('abort', () => {
          this.cancelled += 1;
          fail(status.CANCELLED);
        });
        if (delay === 'unavailable') setTimeout(() => fail(status.UNAVAILABLE), 3_000);
        else if (delay === 'never') this.#hanging.set(id, resolve);
        else setTimeout(resolve, delay);
      });
    } finally {
      this.underWay -= 1;
      this.#hanging.delete(id);
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
      ...{
        sandbox: id,
        podUid: `uid-of-${id.slice(1)}`,
        namespace: 'shop',
        pod: `pod-of-${id}`,
        container: '',
        attempt: 0,
      },
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

const MINUTE_MS = 60_000;

/** A hang that the test ends. */
const hangOf = (call: ListHang['call']) => ({
  call,
  from: monoNow(),
  to: null as Mono | null,
  waited: 5_000_000,
});

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
  const slowFor = (ms: number, last: Relist | null, more: Partial<SearchedLists> = {}) =>
    during(ms, () => search.search({ last, areRunning: false, hang: null, ...more }));
  const hangFor = (ms: number, last: Relist | null, hang: ListHang) =>
    slowFor(ms, last, { areRunning: true, hang });
  const quickFor = (ms: number) => during(ms, () => search.rest());
  return { search, results, start, slowFor, hangFor, quickFor };
}

/** As many pods as a kubelet allows by default, each of one container. */
const NUMBERS = Array.from({ length: 110 }, (_, i) => i);
const fullNode = () => listed([...NUMBERS.map((i) => `s${i}`), ...NUMBERS.map((i) => `c${i}`)]);

test('the pod whose status hangs is named, with how long it has been waited for', async () => {
  const runtime = new Runtime({ s2: 'never' });
  const { search, results, start, slowFor } = searchOf(runtime);
  await slowFor(5_500, listed(['s1', 's2', 's3', 'c1']));
  expect(results).toEqual(['quick', 'timed_out']);
  const { statuses, slowest } = search.takeMinute(start);
  expect(slowest).toMatchObject({ id: 's2', pod: 'pod-of-s2' });
  expect(statuses).toEqual({
    asked: 2,
    slow: 1,
    slowest: { containerId: 's2', isSandbox: true, at: 55_000, took: expect.any(Number), timedOut: true },
  });
  const record = minuteOf(start, statuses);
  expect(parseRecord(record)).toEqual({ ok: true, value: record });
});

function minuteOf(start: Mono, statuses: MinuteStatuses | null) {
  const counters = { expected: 0, matched: 0, missed: 0, unobservable: 0, covered: 0, untracked: 0 };
  const known = { counters: { ...counters, overdueSuppressed: 0 }, decidedUntil: start };
  return new RelistMinute({ now: start, wall: wall(0) }, FIRST_MINUTE, known.counters).record(
    start,
    { now: monoNow(), wall: wall(0) },
    known,
    { ...(statuses === null ? {} : { statuses }) },
  );
}

test('a status that does not answer is asked for once, and every minute names it until it is answered', async () => {
  const runtime = new Runtime({ s2: 'never' });
  const { search, results, start, slowFor } = searchOf(runtime);
  for (const _ of [1, 2, 3]) {
    await slowFor(MINUTE_MS, listed(['s1', 's2', 's3', 'c1']));
    expect(search.takeMinute(start).statuses?.slowest).toMatchObject({ containerId: 's2', timedOut: true });
  }
  expect(runtime.times('s2')).toBe(1);
  runtime.thaw();
  await slowFor(MINUTE_MS, listed(['s1', 's2', 's3', 'c1']));
  expect(search.takeMinute(start).statuses).toMatchObject({
    slow: 1,
    slowest: { containerId: 's2', at: 55_000, timedOut: true },
  });
  await slowFor(MINUTE_MS, listed(['s1', 's2', 's3', 'c1']));
  expect(search.takeMinute(start).statuses).toMatchObject({ slow: 0, slowest: null });
  expect(results.filter((result) => result === 'timed_out')).toHaveLength(1);
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

test('before the first list, and while one is under way that does not hang, nothing is asked for', async () => {
  const runtime = new Runtime();
  const { slowFor } = searchOf(runtime);
  await slowFor(60_000, null);
  await slowFor(60_000, listed([]));
  await slowFor(60_000, listed(['s1']), { areRunning: true });
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

test('the runtime rests nine times as long as the last call took, and for 50 ms at least; after the first round for a second', async () => {
  const runtime = new Runtime({ s2: 2_000 });
  const { slowFor } = searchOf(runtime);
  await slowFor(90_000, listed(['s1', 's2', 's3']));
  const begun = runtime.asked.map(({ at }) => at);
  const waits = begun.slice(1).map((at, i) => at - (begun[i] ?? 0));
  expect(waits.slice(0, 4)).toEqual([millis(55), millis(20_000), millis(55), millis(1_005)]);
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
  await slowFor(TICK_MS, listed(['s1', 's2', 's3', 's4', 's5', 's6', 's7']));
  expect(runtime.asked.map(({ id }) => id)).toEqual(['s1', 's2', 's3', 's4', 's5']);
  await quickFor(60_000);
  // One has gone, and another is new.
  await slowFor(TICK_MS, listed(['s2', 's3', 's4', 's5', 's6', 's7', 's8']));
  expect(runtime.asked.slice(5, 9).map(({ id }) => id)).toEqual(['s6', 's7', 's8', 's2']);
});

test('after a thousand calls the search ends until relists were quick', async () => {
  const runtime = new Runtime();
  const { slowFor, quickFor } = searchOf(runtime);
  const ids = Array.from({ length: 30 }, (_, i) => `s${i}`);
  await slowFor(1_500_000, listed(ids));
  expect(runtime.asked).toHaveLength(1_000);
  await quickFor(TICK_MS);
  await slowFor(TICK_MS, listed(ids));
  expect(runtime.asked.length).toBeGreaterThan(1_000);
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
  search.search({ last: listed(['s1']), areRunning: false, hang: null });
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
  search.search({ last: listed(['s1', 's2']), areRunning: false, hang: null });
  heldUp = millis(4 * 3_600_000);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(runtime.times('s2')).toBeGreaterThan(0);
});

test('the one container of 110 pods that holds up ListContainers is named in half a minute, whichever it is', async () => {
  for (const culprit of ['c0', 'c54', 'c109']) {
    const runtime = new Runtime({ [culprit]: 'never' });
    const { search, start, hangFor } = searchOf(runtime);
    await hangFor(25_000, fullNode(), hangOf('ListContainers'));
    expect(search.hasNews).toBe(true);
    const { statuses, slowest } = search.takeMinute(start);
    expect(slowest).toMatchObject({ id: culprit, pod: `pod-of-${culprit}` });
    expect(statuses).toMatchObject({
      slowest: { containerId: culprit, isSandbox: false, timedOut: true },
      hang: { call: 'ListContainers', to: null, verdict: 'container', listed: 220, unanswered: 1 },
    });
    const record = minuteOf(start, statuses);
    expect(parseRecord(record)).toEqual({ ok: true, value: record });
    expect(search.hasNews).toBe(false);
    search.stop();
  }
});

test('the sandbox that holds up ListPodSandbox is named as a pod', async () => {
  const runtime = new Runtime({ s70: 'never' });
  const { search, start, hangFor } = searchOf(runtime);
  await hangFor(25_000, fullNode(), hangOf('ListPodSandbox'));
  expect(runtime.asked[0]?.id).toBe('s0');
  expect(search.takeMinute(start).statuses).toMatchObject({
    slowest: { containerId: 's70' },
    hang: { call: 'ListPodSandbox', verdict: 'pod' },
  });
});

test('a container stays named in each minute of a hang, is asked for once, and the search keeps to its load', async () => {
  const runtime = new Runtime({ c3: 'never' });
  const { search, start, hangFor } = searchOf(runtime);
  const hang = hangOf('ListContainers');
  for (const _ of [1, 2, 3, 4]) {
    await hangFor(MINUTE_MS, fullNode(), hang);
    expect(search.takeMinute(start).statuses).toMatchObject({
      slowest: { containerId: 'c3' },
      hang: { verdict: 'container' },
    });
  }
  expect(runtime.times('c3')).toBe(1);
  expect(runtime.asked.length).toBeLessThan(220 + 4 * 60 + 1);
});

test('a runtime that answers no status is named after three, which are not given up and to which none is added', async () => {
  const runtime = new Runtime();
  runtime.isFrozen = true;
  const { search, start, hangFor } = searchOf(runtime);
  const hang = hangOf('ListPodSandbox');
  await hangFor(30_000, fullNode(), hang);
  expect(search.hang).toMatchObject({ verdict: 'runtime', named: null });
  await hangFor(10 * MINUTE_MS, fullNode(), hang);
  expect(runtime.asked.map(({ id }) => id)).toEqual(['s0', 'c1', 's2']);
  expect(runtime.cancelled).toBe(0);
  expect(search.takeMinute(start).statuses?.hang).toMatchObject({
    verdict: 'runtime',
    asked: 3,
    unanswered: 3,
  });
});

test('a runtime that freezes after it answered many statuses is named, and no container', async () => {
  const runtime = new Runtime();
  const { search, hangFor } = searchOf(runtime);
  const hang = hangOf('ListContainers');
  await hangFor(2_000, fullNode(), hang);
  expect(runtime.asked.length).toBeGreaterThan(20);
  runtime.isFrozen = true;
  await hangFor(30_000, fullNode(), hang);
  expect(search.hang).toMatchObject({ verdict: 'runtime', named: null });
});

test('if every status is answered while a list hangs, no container holds it up', async () => {
  const { search, hangFor } = searchOf(new Runtime());
  const hang = hangOf('ListContainers');
  await hangFor(5_000, fullNode(), hang);
  expect(search.hang?.verdict).toBe('unknown');
  await hangFor(15_000, fullNode(), hang);
  expect(search.hang).toMatchObject({ call: 'ListContainers', verdict: 'none', named: null });
});

test('without a list from before the hang nothing is asked for, and nothing is concluded', async () => {
  const runtime = new Runtime();
  const { search, start, hangFor } = searchOf(runtime);
  await hangFor(MINUTE_MS, null, hangOf('ListContainers'));
  expect(runtime.asked).toEqual([]);
  expect(search.takeMinute(start).statuses).toMatchObject({
    asked: 0,
    hang: { verdict: 'unknown', listed: 0 },
  });
});

test('a status that was answered while the list goes on hanging no longer holds it up; another one that hangs does', async () => {
  const runtime = new Runtime({ c3: 'never', c60: 'never' });
  const { search, hangFor } = searchOf(runtime);
  const hang = hangOf('ListContainers');
  await hangFor(30_000, fullNode(), hang);
  expect(search.hang?.named).toMatchObject({ id: 'c3' });
  runtime.thaw('c3');
  await hangFor(3_000, fullNode(), hang);
  expect(search.hang?.named).toMatchObject({ id: 'c60' });
});

test('a hang that ends together with the status of a container says so once, and still names the container', async () => {
  const runtime = new Runtime({ c3: 'never' });
  const { search, start, hangFor, slowFor, quickFor } = searchOf(runtime);
  const hang = hangOf('ListContainers');
  await hangFor(30_000, fullNode(), hang);
  expect(search.takeMinute(start).statuses?.hang).toMatchObject({ to: null, verdict: 'container' });
  runtime.thaw();
  await hangFor(TICK_MS, fullNode(), hang);
  hang.to = monoNow();
  await slowFor(10_000, fullNode());
  expect(search.hang).toBeNull();
  expect(search.hasNews).toBe(true);
  const { statuses } = search.takeMinute(start);
  expect(statuses?.hang).toMatchObject({ to: since(start, hang.to), verdict: 'container', unanswered: 1 });
  expect(statuses?.slowest).toMatchObject({ containerId: 'c3', timedOut: true });
  expect(search.hasNews).toBe(false);
  await quickFor(TICK_MS);
  expect(search.takeMinute(start)).toEqual({ statuses: null, slowest: null });
});

test('a container whose status is still not answered two seconds after the list was does not have held it up', async () => {
  const runtime = new Runtime({ c3: 'never' });
  const { search, start, hangFor, slowFor } = searchOf(runtime);
  const hang = hangOf('ListContainers');
  await hangFor(30_000, fullNode(), hang);
  expect(search.takeMinute(start).statuses?.hang).toMatchObject({ to: null, verdict: 'container' });
  hang.to = monoNow();
  await slowFor(1_000, fullNode());
  expect(search.hasNews).toBe(false);
  await slowFor(1_500, fullNode());
  expect(search.hasNews).toBe(true);
  expect(search.takeMinute(start).statuses?.hang).toMatchObject({
    to: since(start, hang.to),
    verdict: 'unknown',
    unanswered: 0,
  });
  expect(search.hasNews).toBe(false);
});

test('that a hang has ended is said although another one has begun', async () => {
  const { search, start, hangFor } = searchOf(new Runtime());
  const [hang, next] = [hangOf('ListContainers'), hangOf('ListPodSandbox')];
  await hangFor(30_000, fullNode(), hang);
  expect(search.takeMinute(start).statuses?.hang).toMatchObject({ call: 'ListContainers', to: null });
  hang.to = monoNow();
  await hangFor(TICK_MS, fullNode(), next);
  expect(search.hasNews).toBe(true);
  const ended = { call: 'ListContainers', to: since(start, hang.to) };
  expect(search.takeMinute(start).statuses?.hang).toMatchObject(ended);
  await hangFor(TICK_MS, fullNode(), next);
  expect(search.hang).toMatchObject({ call: 'ListPodSandbox' });
});

test('a runtime that goes away during a hang leaves the verdict as it was', async () => {
  const runtime = new Runtime({ c3: 'never' });
  const { search, start, hangFor, quickFor } = searchOf(runtime);
  const hang = hangOf('ListContainers');
  await hangFor(30_000, fullNode(), hang);
  hang.to = monoNow();
  await quickFor(1_000);
  expect(runtime.cancelled).toBe(1);
  expect(search.takeMinute(start)).toMatchObject({
    statuses: { hang: { verdict: 'container' } },
    slowest: { id: 'c3' },
  });
});

test('after one that does not answer, another kind and another pod are asked for', async () => {
  const runtime = new Runtime({ c1: 'never' });
  const { hangFor } = searchOf(runtime);
  await hangFor(10_000, listed(['s1', 's2', 'c1', 'c2']), hangOf('ListContainers'));
  expect(runtime.asked.slice(0, 3).map(({ id }) => id)).toEqual(['c1', 's2', 'c2']);
});

test('while this process is held up no container is accused', async () => {
  const runtime = new Runtime({ c0: 20_000 });
  let heldUp = 0;
  const { search, hangFor } = searchOf(runtime, () => shift(monoNow(), heldUp));
  const hang = hangOf('ListContainers');
  await hangFor(TICK_MS, fullNode(), hang);
  heldUp = millis(60_000);
  await hangFor(2_000, fullNode(), hang);
  expect(search.hang).toMatchObject({ verdict: 'unknown', named: null });
});
