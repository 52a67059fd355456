/*
 * An observer and its reader against a simulated runtime, over real sockets and with a real process.
 */

import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { slowLists } from '../../../devtools/simulator/listFaults.ts';
import type { SimulatedRuntime } from '../../../devtools/simulator/runtime.ts';
import { TestBed } from '../../../devtools/simulator/testBed.ts';
import { until, waitFor } from '../../../test/support/waitFor.ts';
import { CriClient } from '../../cri/client.ts';
import { monoNow } from '../../platform/clock.ts';
import type { EvidenceRecord } from '../../protocol/record.ts';
import { type Micros, millis } from '../../protocol/units.ts';
import { AgentMetrics } from '../metrics.ts';
import { SLOW_LIST } from './listGaps.ts';
import { Observer } from './observer.ts';
import { BURST_EVENTS } from './relister.ts';
import { HEARTBEAT } from './stream/frames.ts';
import { NO_PACE_STORE } from './stream/subscribePolicy.ts';

let bed: TestBed;
let cleanUps: (() => Promise<void> | void)[];

beforeEach(() => {
  bed = new TestBed();
  cleanUps = [() => bed.close()];
});
afterEach(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
});

/** An observer of the runtime, and what it recorded. */
async function observe(
  { socket }: SimulatedRuntime,
  periods: { relistPeriod: Micros; overdueAfter: Micros },
) {
  const client = new CriClient(socket);
  const records: EvidenceRecord[] = [];
  const metrics = new AgentMetrics();
  const observer = new Observer({
    config: {
      criEndpoint: socket,
      subscribe: 'auto',
      missedAfter: millis(30_000),
      lateAfter: millis(1_000),
      intervalModeConfirmed: millis(120_000),
      podsApi: null,
      kubeletLateAfter: millis(10_000),
      ...periods,
    },
    client,
    runtime: await client.version(240_000),
    agentVersion: '0.0.0',
    sink: {
      start: monoNow(),
      lastObserved: null,
      setContext: () => undefined,
      setKnown: () => undefined,
      append: (record) => void records.push(record),
    },
    metrics,
    log: pino({ level: 'silent' }),
    kubelet: null,
    paceStore: NO_PACE_STORE,
  });
  cleanUps.push(() => client.close());
  cleanUps.push(() => observer.stop());
  return { observer, records, metrics };
}

test('with --overdue-after below the heartbeat a heartbeat on time is no stall', async () => {
  const runtime = await bed.start({ profile: 'containerd-2.1' });
  const { records } = await observe(runtime, { relistPeriod: millis(200), overdueAfter: millis(100) });
  await until(() => runtime.subscribers === 1);
  runtime.runPod({ name: 'web', containers: ['app'] });
  await until(() => records.some((record) => record.type === 'stream_session' && record.armed !== null));
  await until(() => records.some(({ type }) => type === 'relist_minute'));
  const stalls = records.filter((record) => record.type === 'gap' && record.cause === 'agent_stalled');
  // A busy machine may stall the process; a stall is longer than a heartbeat and its slack.
  for (const stall of stalls) {
    if (stall.type !== 'gap') throw new Error('not a gap');
    expect((stall.to ?? 0) - stall.from).toBeGreaterThan(HEARTBEAT + millis(250));
  }
});

test('a stream is Arming until its first event, and its reason is that nothing proves it yet', async () => {
  const runtime = await bed.start({ profile: 'containerd-2.1' });
  const { records } = await observe(runtime, { relistPeriod: millis(200), overdueAfter: millis(2_000) });
  const states = () => records.flatMap((record) => (record.type === 'node_state' ? [record.stream] : []));
  await until(() => states().some(({ state }) => state === 'Arming'));
  expect(states().at(-1)?.reason).toMatch(/nothing proves yet that events arrive$/);
  runtime.runPod({ name: 'first' });
  await until(() => states().some(({ state }) => state === 'Active'));
  expect(states().at(-1)?.reason).toBe('');
});

test('a burst of events brings a relist forward', async () => {
  const runtime = await bed.start({ profile: 'containerd-2.1' });
  const { observer, records } = await observe(runtime, {
    relistPeriod: millis(3_600_000),
    overdueAfter: millis(2_000),
  });
  await until(() => runtime.subscribers === 1 && observer.relistError === null);
  for (let n = 0; n < BURST_EVENTS / 2; n += 1) runtime.runPod({ name: `pod-${n}`, containers: ['app'] });
  await until(() => records.some(({ type }) => type === 'relist_change'));
});

test('while relists are quick the agent searches for no slow status', async () => {
  const runtime = await bed.start({ profile: 'containerd-2.1' });
  const { records } = await observe(runtime, { relistPeriod: millis(200), overdueAfter: millis(2_000) });
  runtime.runPod({ name: 'web', containers: ['app'] });
  const minute = await waitFor('a minute', () => records.find((record) => record.type === 'relist_minute'));
  // A busy machine may make relists slow.
  if (minute.max <= SLOW_LIST && minute.errors === 0) expect(minute.statuses).toBeUndefined();
});

test('after a slow relist of its own the agent asks for statuses', async () => {
  const runtime = await bed.start({ profile: 'containerd-2.1' });
  runtime.runPod({ name: 'web', containers: ['app'] });
  runtime.setListFaults([slowLists({ seed: 1 }, SLOW_LIST / 1000)]);
  const { metrics } = await observe(runtime, { relistPeriod: millis(200), overdueAfter: millis(2_000) });
  await waitFor('a status is timed', async () => {
    const { values } = await metrics.timedStatuses.get();
    return values.some(({ value }) => value > 0);
  });
});

test('an event that a runtime never announces is reported once, however many sessions there are', async () => {
  const runtime = await bed.start({ profile: 'crio-1.36' });
  const { records } = await observe(runtime, { relistPeriod: millis(200), overdueAfter: millis(2_000) });
  const armed = (session: number) =>
    records.some(
      (each) => each.type === 'stream_session' && each.sessionNo === session && each.armed !== null,
    );
  const isShown = (id: string, newState: string) =>
    records.some(
      (each) => each.type === 'relist_change' && each.containerId === id && each.newState === newState,
    );
  for (const session of [1, 2]) {
    await until(() => runtime.subscribers === 1);
    runtime.runPod({ name: 'proves-the-stream' });
    await until(() => armed(session));
    const { id } = runtime.runPod({ name: 'is-removed' }).sandbox;
    await until(() => isShown(id, 'running'));
    runtime.removePod(id);
    await until(() => isShown(id, 'non-existent'));
    runtime.breakStreams();
    await until(() => runtime.subscribers === 0);
  }
  const ofRemovals = records.filter(
    (each) => each.type === 'finding' && each.cause === 'never_sent' && each.eventType === 'DELETED',
  );
  expect(ofRemovals).toHaveLength(1);
});
