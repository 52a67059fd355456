/*
 * The pods watch and its queries against a scripted PodsAPI over a real socket.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  message,
  POD_EVENT,
  podAnswer,
  podBytes,
  podEvent,
  SYNCED,
} from '../../../../devtools/simulator/podsApiMessages.ts';
import { FakePodsApi } from '../../../../test/support/podsApi.ts';
import { until } from '../../../../test/support/waitFor.ts';
import { monoNow } from '../../../platform/clock.ts';
import type { KubeletPodAnswer, KubeletSight } from '../../../protocol/observation.ts';
import type { RecordOf } from '../../../protocol/record.ts';
import { type Mono, millis, shift } from '../../../protocol/units.ts';
import { AgentMetrics } from '../../metrics.ts';
import { Gaps } from '../gaps.ts';
import { PodsWatch } from './podsWatch.ts';

/** Nobody is held up for this long. */
const NO_STALL = millis(3_600_000);

let folder: string;
let kubelet: FakePodsApi;
let metrics: AgentMetrics;
let sights: KubeletSight[];
let answers: KubeletPodAnswer[];
let gaps: RecordOf<'gap'>[];
let states: string[];
let scraped: Mono | null;
let cleanUps: (() => void)[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pods-'));
  kubelet = new FakePodsApi(join(folder, 'pods-api.sock'));
  metrics = new AgentMetrics();
  [sights, answers, gaps, states, cleanUps] = [[], [], [], [], []];
  scraped = null;
});
afterEach(async () => {
  for (const cleanUp of cleanUps) cleanUp();
  await kubelet.stop();
  rmSync(folder, { recursive: true });
});

/** A watch that nothing ticks yet. */
function watchPods(maxSilence = NO_STALL): PodsWatch {
  const ids = Array.from({ length: 100 }, (_, i) => `gap ${i + 1}`);
  const start = monoNow();
  const watch = new PodsWatch(
    {
      socket: kubelet.socket,
      maxSilence,
      comparison: {
        kubeletShowed: (sight) => sights.push(sight),
        kubeletAnswered: (answer) => answers.push(answer),
      },
      gaps: new Gaps(
        start,
        () => ids.shift() ?? '',
        (gap) => gaps.push(gap),
      ),
      metrics,
      nodeState: { setPodsApi: ({ state, reason }) => states.push(`${state} ${reason}`.trim()) },
      log: pino({ level: 'silent' }),
      kubeletAnswered: () => scraped,
    },
    start,
  );
  cleanUps.push(() => watch.stop());
  return watch;
}

/** Ticks it, more often than an observer does, until the returned function is called. */
function ticking(watch: PodsWatch): () => void {
  const timer = setInterval(() => watch.tick(monoNow()), 20);
  const stop = () => clearInterval(timer);
  cleanUps.push(stop);
  return stop;
}

const kinds = () => sights.map(({ is }) => is);
const count = (name: string, labels = '') =>
  metrics.registry.metrics().then((text) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`plegwatch_${name}${labels} `))
        ?.split(' ')[1],
    ),
  );

async function watching(maxSilence = NO_STALL): Promise<PodsWatch> {
  await kubelet.start();
  const watch = watchPods(maxSilence);
  ticking(watch);
  await until(() => states.at(-1) === 'Watching');
  return watch;
}

test('pods that exist are shown before the watch is synced, and changes after that, in the order in which they came', async () => {
  const running = { containers: [{ id: 'containerd://a', state: 'running' }] } as const;
  kubelet.initial = [podEvent(POD_EVENT.added, podBytes(running)), SYNCED];
  const before = monoNow();
  await watching();
  kubelet.send(
    podEvent(POD_EVENT.modified, podBytes({ ...running, isTerminating: true })),
    podEvent(POD_EVENT.deleted, podBytes()),
  );
  await until(() => sights.length === 5);
  expect(kinds()).toEqual(['opened', 'pod', 'synced', 'pod', 'removed']);
  expect(sights[1]).toMatchObject({ pod: { podUid: 'u1', containers: [{ id: 'a', state: 'running' }] } });
  expect(sights[3]).toMatchObject({ pod: { isTerminating: true } });
  const times = sights.map(({ at }) => at);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(times[0]).toBeGreaterThan(before);
  expect(states).toEqual(['Absent not_looked_for', 'Syncing', 'Watching']);
  expect(gaps).toEqual([]);
  expect(await count('pods_api_messages_total')).toBe(4);
  expect(await count('pods_api_state', '{state="Watching"}')).toBe(1);
});

test('a kubelet without a PodsAPI is absent and leaves no gap, and is watched once it has one', async () => {
  const watch = watchPods();
  watch.tick(monoNow());
  await until(() => states.at(-1) === 'Absent no_socket');
  await kubelet.start();
  // Its socket is looked for every five seconds.
  watch.tick(shift(monoNow(), millis(1_000)));
  expect(kubelet.asked).toBe(0);
  watch.tick(shift(monoNow(), millis(6_000)));
  await until(() => states.at(-1) === 'Watching');
  expect(gaps).toEqual([]);
});

test.each([
  ['closed_by_kubelet', status.RESOURCE_EXHAUSTED],
  ['kubelet_unavailable', status.UNAVAILABLE],
  ['ended', status.OK],
  ['ended', status.INTERNAL],
])(
  'a watch that ends is broken, and a gap (%s) lasts from before its end until it is synced again',
  async (cause, code) => {
    await watching();
    const synced = sights.at(-1)?.at;
    const ending = monoNow();
    kubelet.end(code);
    await until(() => gaps.length === 2);
    expect(kinds()).toEqual(['opened', 'synced', 'broken', 'opened', 'synced']);
    expect(states.slice(-3)).toEqual([`Broken ${cause}`, 'Syncing', 'Watching']);
    const [opened, closed] = gaps;
    expect(opened).toMatchObject({ scope: 'kubelet_status', cause, to: null, gapId: 'gap 1' });
    expect(closed).toMatchObject({ scope: 'kubelet_status', cause, from: opened?.from, gapId: 'gap 1' });
    const [, , broken, , again] = sights;
    expect(broken?.at).toBeLessThanOrEqual(Number(monoNow()));
    expect(broken?.at).toBeGreaterThanOrEqual(Number(synced));
    expect(Number(again?.at) - Number(broken?.at)).toBe(Number(closed?.to) - Number(closed?.from));
    expect(again?.at).toBeGreaterThan(ending);
    expect(await count('pods_api_ends_total', `{cause="${cause}"}`)).toBe(1);
  },
);

test('a kubelet that initialises is asked again, and has no gap before its first watch', async () => {
  kubelet.refusal = status.FAILED_PRECONDITION;
  await kubelet.start();
  ticking(watchPods());
  await until(() => kubelet.asked >= 2);
  expect(states).toEqual(['Absent not_looked_for', 'Broken kubelet_initializing']);
  kubelet.refusal = null;
  await until(() => states.at(-1) === 'Watching');
  expect(gaps).toEqual([]);
  expect(kinds()).toEqual(['opened', 'synced']);
});

test('a server without the PodsAPI is absent, and another one at its socket is tried at once', async () => {
  await kubelet.start({ implementsPods: false });
  ticking(watchPods());
  await until(() => states.at(-1) === 'Absent unimplemented');
  await kubelet.stop();
  await kubelet.start();
  await until(() => states.at(-1) === 'Watching');
  expect(sights).toHaveLength(2);
  expect(gaps).toEqual([]);
});

test('the gap of a kubelet whose socket vanished lasts, and ends when the kubelet answers scrapes a minute later without one', async () => {
  await watching();
  await kubelet.stop();
  await until(() => states.at(-1) === 'Broken no_socket');
  scraped = shift(monoNow(), millis(30_000));
  kubelet.refusal = status.FAILED_PRECONDITION;
  await kubelet.start();
  await until(() => states.at(-1) === 'Broken kubelet_initializing');
  await kubelet.stop();
  await until(() => states.at(-1) === 'Broken no_socket');
  expect(gaps).toHaveLength(1);
  scraped = shift(monoNow(), millis(61_000));
  await until(() => states.at(-1) === 'Absent no_socket');
  expect(gaps).toMatchObject([{ to: null }, { gapId: 'gap 1', to: expect.any(Number) }]);
});

test('after this process was held up, what it has not read proves nothing: the watch begins anew after a gap', async () => {
  await kubelet.start();
  const watch = watchPods(millis(5_000));
  const stop = ticking(watch);
  await until(() => states.at(-1) === 'Watching');
  stop();
  const lastTick = monoNow();
  kubelet.send(podEvent(POD_EVENT.modified, podBytes()));
  await until(() => kinds().at(-1) === 'pod');
  watch.tick(shift(lastTick, millis(6_000)));
  expect(kinds()).toEqual(['opened', 'synced', 'pod', 'broken']);
  expect(gaps).toMatchObject([{ cause: 'agent_stalled', to: null }]);
  expect(sights.at(-1)?.at).toBeLessThanOrEqual(lastTick);
});

test('a message that comes before the first tick after a stall is not taken', async () => {
  await kubelet.start();
  const watch = watchPods(millis(500));
  const stop = ticking(watch);
  await until(() => states.at(-1) === 'Watching');
  stop();
  const lastTick = monoNow();
  await until(() => monoNow() > shift(lastTick, millis(600)));
  kubelet.send(podEvent(POD_EVENT.modified, podBytes()));
  await until(() => gaps.length > 0);
  expect(gaps[0]).toMatchObject({ cause: 'agent_stalled' });
  expect(kinds()).not.toContain('pod');
});

test('a pod that cannot be decoded is unknown and the others are watched, and a message about nobody ends the watch', async () => {
  await watching();
  const broken = message([
    [1, message([[5, 'u3']])],
    [3, message([[8, Buffer.from([0x0f])]])],
  ]);
  kubelet.send(podEvent(POD_EVENT.modified, broken), podEvent(99), podEvent(POD_EVENT.added, podBytes()));
  await until(() => kinds().at(-1) === 'pod');
  expect(sights.slice(2)).toMatchObject([{ is: 'unknown', podUid: 'u3' }, { is: 'pod' }]);
  expect(gaps).toEqual([]);
  expect(await count('pods_api_malformed_messages_total')).toBe(2);
  kubelet.send(podEvent(POD_EVENT.added));
  await until(() => gaps.length > 0);
  expect(gaps[0]).toMatchObject({ cause: 'malformed' });
});

test('a message over 4 MiB ends the watch, and one just below is read', async () => {
  await watching();
  const padding = 2 * 1024 ** 2 - 4_000;
  kubelet.send(podEvent(POD_EVENT.modified, podBytes({ padding })));
  await until(() => kinds().at(-1) === 'pod');
  kubelet.send(podEvent(POD_EVENT.modified, podBytes({ padding: padding + 4_000 })));
  await until(() => gaps.length > 0);
  expect(gaps[0]).toMatchObject({ cause: 'message_too_large' });
});

test('a kubelet that shows more than 2,000 pods at a time is not watched', async () => {
  await watching();
  const pods = (from: number, to: number, event: number) =>
    Array.from({ length: to - from }, (_, i) => podEvent(event, podBytes({ uid: `u${from + i}` })));
  kubelet.send(...pods(0, 2_000, POD_EVENT.added), ...pods(0, 500, POD_EVENT.deleted));
  kubelet.send(
    ...pods(2_000, 2_500, POD_EVENT.added),
    podEvent(POD_EVENT.deleted, podBytes({ uid: 'last' })),
  );
  await until(() => sights.length === 2 + 3_001);
  expect(gaps).toEqual([]);
  kubelet.send(...pods(2_500, 2_501, POD_EVENT.added));
  await until(() => gaps.length > 0);
  expect(gaps[0]).toMatchObject({ cause: 'too_many_pods' });
});

test('a query has the answer of the kubelet and when it was asked, or why there is none', async () => {
  const watch = watchPods();
  watch.ask('early');
  await until(() => answers.length === 1);
  expect(answers[0]).toMatchObject({ podUid: 'early', found: false, reason: 'NOT_WATCHING' });

  await kubelet.start();
  ticking(watch);
  await until(() => states.at(-1) === 'Watching');
  const pods: Readonly<Record<string, Buffer | status | null>> = {
    u1: podAnswer(podBytes({ uid: 'u1', containers: [{ id: 'containerd://a', state: 'terminated' }] })),
    other: podAnswer(podBytes({ uid: 'u1' })),
    torn: podAnswer(podBytes()).subarray(0, 40),
    gone: status.NOT_FOUND,
    busy: status.RESOURCE_EXHAUSTED,
    silent: null,
  };
  kubelet.answer = (podUid) => pods[podUid] ?? null;
  const asking = monoNow();
  for (const podUid of Object.keys(pods)) watch.ask(podUid);
  await until(() => answers.length === 7);
  expect(answers.slice(1)).toMatchObject([
    { podUid: 'u1', found: true, pod: { containers: [{ id: 'a', state: 'terminated' }] } },
    { podUid: 'other', found: false, reason: 'OTHER_POD' },
    { podUid: 'torn', found: false, reason: 'MALFORMED' },
    { podUid: 'gone', found: false, reason: 'NOT_FOUND' },
    { podUid: 'busy', found: false, reason: 'RESOURCE_EXHAUSTED' },
    { podUid: 'silent', found: false, reason: 'DEADLINE_EXCEEDED' },
  ]);
  for (const [i, { asked, at }] of answers.slice(1).entries()) {
    expect(asked).toBeGreaterThan(i === 0 ? asking : Number(answers[i]?.at));
    expect(at).toBeGreaterThan(asked);
  }
  expect(kubelet.queried).toEqual(Object.keys(pods));
  for (const [result, n] of Object.entries({ found: 1, not_found: 1, failed: 4, not_asked: 1 }))
    expect(await count('pod_queries_total', `{result="${result}"}`)).toBe(n);
});

test('each pod waits once for its query, and the thousand-and-first is answered as not asked', async () => {
  const watch = watchPods();
  for (let n = 0; n < 1_000; n += 1) watch.ask(`u${n}`);
  watch.ask('one-too-many');
  expect(answers).toMatchObject([{ podUid: 'one-too-many', found: false, reason: 'TOO_MANY' }]);
});
