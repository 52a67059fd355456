import { status } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import { EVENT_TYPES } from '../../src/protocol/record.ts';
import { backlogHoles } from './eventFaults.ts';
import { eventFacts, faultFacts, playPod, subscribeVirtual } from './testBed.ts';
import { VirtualRuntime } from './virtualRuntime.ts';

/** Somebody who can be made to stop reading. */
function reader(runtime: VirtualRuntime) {
  let reads = true;
  const subscriber = subscribeVirtual(runtime, () => reads);
  const read = (does: boolean): void => {
    reads = does;
    if (does) runtime.resume();
  };
  return { ...subscriber, read };
}

test('a subscriber that does not read is cut off by containerd 2 without freeze, and the others receive everything', () => {
  const runtime = new VirtualRuntime();
  const slow = reader(runtime);
  const { events } = subscribeVirtual(runtime);
  slow.read(false);
  playPod(runtime.core);
  expect(slow.codes).toEqual([status.RESOURCE_EXHAUSTED]);
  expect(events).toHaveLength(8);
  expect(faultFacts(runtime.core.truth, 'slow_subscriber')).toHaveLength(1);
});

test('a subscriber that does not read freezes containerd 2 with freeze until it reads', () => {
  const runtime = new VirtualRuntime({ freeze: true });
  const slow = reader(runtime);
  const other = subscribeVirtual(runtime);
  slow.read(false);
  runtime.core.pods.runPod({ name: 'web' });
  expect(runtime.core.channel.frozen).toBe(true);
  expect(other.events).toEqual([]);
  const late = subscribeVirtual(runtime);
  let resolved = false;
  runtime.core.channel.whenFlowing(() => {
    resolved = true;
  });
  expect(resolved).toBe(false);
  slow.read(true);
  expect([resolved, other.events.length, slow.events.length]).toEqual([true, 2, 2]);
  runtime.core.pods.runPod({ name: 'next' });
  expect(late.events).toHaveLength(2);
  expect(faultFacts(runtime.core.truth, 'held_up')).toHaveLength(1);
});

test('a subscriber that does not read unfreezes containerd when it leaves', () => {
  const runtime = new VirtualRuntime({ freeze: true });
  const slow = reader(runtime);
  const other = subscribeVirtual(runtime);
  slow.read(false);
  runtime.core.pods.runPod({ name: 'web' });
  slow.leave();
  expect([runtime.core.channel.frozen, other.events.length]).toEqual([false, 2]);
});

test('a subscriber that does not read blocks the pod starts of churn while containerd is frozen', () => {
  const runtime = new VirtualRuntime({ freeze: true });
  const slow = reader(runtime);
  slow.read(false);
  runtime.play({ pods: 5, meanMs: 1000, restarts: 0 }, 10_000);
  runtime.advance(10_000);
  expect(runtime.core.pods.sandboxes.size).toBe(1);
  slow.read(true);
  runtime.advance(5000);
  expect(slow.events.length).toBeGreaterThan(30);
});

test('a subscriber that does not read delays the others on CRI-O, and after 1000 events the newest are lost', () => {
  const runtime = new VirtualRuntime({ profile: 'crio-1.33' });
  const slow = reader(runtime);
  const other = subscribeVirtual(runtime);
  slow.read(false);
  for (let n = 0; n < 1001; n += 1) runtime.core.pods.runPod({ name: `pod-${n}` });
  expect(other.events).toEqual([]);
  expect(faultFacts(runtime.core.truth, 'queue_full')).toHaveLength(1);
  slow.read(true);
  expect(other.events).toHaveLength(1000);
});

test('a subscriber that does not read takes no event from a shared queue, so that another subscriber receives it', () => {
  const runtime = new VirtualRuntime({ profile: 'containerd-1.7' });
  const slow = reader(runtime);
  const other = subscribeVirtual(runtime);
  slow.read(false);
  playPod(runtime.core);
  expect([slow.events.length, other.events.length]).toEqual([0, 8]);
});

test('a subscriber that does not read affects no other subscriber on iSulad', () => {
  const runtime = new VirtualRuntime({ profile: 'isulad-2.1.6' });
  reader(runtime).read(false);
  const other = subscribeVirtual(runtime);
  playPod(runtime.core);
  expect(other.events).toHaveLength(7);
});

describe('a neighbour that freezes', () => {
  const runPods = ({ core }: VirtualRuntime, count: number) => {
    for (let n = 0; n < count; n += 1) core.pods.runPod({ name: `pod-${n}` });
  };

  test('a neighbour that freezes starves the others on CRI-O after 102 events, and they receive what was held back once it reads', () => {
    const runtime = new VirtualRuntime({ profile: 'crio-1.36' });
    const other = subscribeVirtual(runtime);
    runtime.core.freezeNeighbour();
    runPods(runtime, 300);
    expect(other.events).toHaveLength(102);
    runtime.core.thawNeighbour();
    expect(other.events).toHaveLength(300);
  });

  test('a neighbour that freezes makes CRI-O drop the newest events when 1000 wait', () => {
    const runtime = new VirtualRuntime({ profile: 'crio-1.36' });
    const other = subscribeVirtual(runtime);
    runtime.core.freezeNeighbour();
    runPods(runtime, 102 + 1000 + 192);
    expect(faultFacts(runtime.core.truth, 'queue_full')).toHaveLength(192);
    runtime.core.thawNeighbour();
    expect(other.events).toHaveLength(1102);
  });

  test('a neighbour that freezes does not stop pod starts on CRI-O', () => {
    const runtime = new VirtualRuntime({ profile: 'crio-1.36' });
    runtime.core.freezeNeighbour();
    runPods(runtime, 300);
    let resolved = false;
    runtime.core.channel.whenFlowing(() => {
      resolved = true;
    });
    expect(resolved).toBe(true);
  });

  test('a frozen neighbour freezes containerd 2, pod starts included, once it holds 360 events', () => {
    const runtime = new VirtualRuntime();
    const other = subscribeVirtual(runtime);
    runtime.core.freezeNeighbour();
    runPods(runtime, 180);
    expect(runtime.core.channel.frozen).toBe(false);
    runPods(runtime, 1);
    expect(runtime.core.channel.frozen).toBe(true);
    expect(other.events).toHaveLength(360);
    runtime.core.thawNeighbour();
    expect(runtime.core.channel.frozen).toBe(false);
    expect(other.events).toHaveLength(362);
  });

  test.each(['isulad-2.1.6', 'containerd-1.7'] as const)(
    'a neighbour that freezes affects nobody on %s',
    (profile) => {
      const runtime = new VirtualRuntime({ profile });
      const other = subscribeVirtual(runtime);
      runtime.core.freezeNeighbour();
      runPods(runtime, 500);
      expect(other.events.length).toBeGreaterThanOrEqual(500);
    },
  );

  test('a neighbour that freezes is gone when the runtime restarts', () => {
    const runtime = new VirtualRuntime({ profile: 'crio-1.36' });
    runtime.core.freezeNeighbour();
    runtime.restart({ downMs: 100 });
    runtime.advance(200);
    const other = subscribeVirtual(runtime);
    runPods(runtime, 300);
    expect(other.events).toHaveLength(300);
  });

  test('a neighbour freezes again and again with the neighbourFreezes option', () => {
    const runtime = new VirtualRuntime({
      profile: 'crio-1.36',
      neighbourFreezes: { everyMs: 100, forMs: 50 },
    });
    const other = subscribeVirtual(runtime);
    const received = () => {
      runPods(runtime, 150);
      return other.events.splice(0).length;
    };
    expect(received()).toBe(150);
    runtime.advance(110);
    expect(received()).toBe(102);
    runtime.advance(50);
    expect(other.events.splice(0)).toHaveLength(48);
    expect(received()).toBe(150);
    runtime.advance(100);
    expect(received()).toBe(102);
  });
});

test('events from before a subscription have holes with the backlogHoles fault, and the ground truth records them', () => {
  const faults = [backlogHoles({ seed: 1, probability: 1, types: ['STARTED'] })];
  const runtime = new VirtualRuntime({ faults });
  playPod(runtime.core);
  const { events } = subscribeVirtual(runtime);
  expect(events).toHaveLength(6);
  expect(faultFacts(runtime.core.truth, 'backlog_hole').map(({ type }) => type)).toEqual([
    'STARTED',
    'STARTED',
  ]);
});

test('events from before a subscription are sent again to each subscriber with replay, even if another received them', () => {
  const runtime = new VirtualRuntime({ replay: 3 });
  subscribeVirtual(runtime);
  playPod(runtime.core);
  const { events } = subscribeVirtual(runtime);
  expect(events.map(({ containerEventType }) => EVENT_TYPES[containerEventType])).toEqual([
    'STOPPED',
    'DELETED',
    'DELETED',
  ]);
  expect(eventFacts(runtime.core.truth).filter(({ replayed }) => replayed)).toHaveLength(3);
  expect(faultFacts(runtime.core.truth, 'replay')).toHaveLength(3);
});

test.each([status.OK, status.UNAVAILABLE, status.INTERNAL, status.RESOURCE_EXHAUSTED])(
  'a broken stream ends with the configured status %i',
  (code) => {
    const runtime = new VirtualRuntime({ breakStreamAfterMs: 100, breakStreamWith: code });
    const first = subscribeVirtual(runtime);
    runtime.advance(50);
    const second = subscribeVirtual(runtime);
    runtime.advance(60);
    expect([first.codes, second.codes]).toEqual([[code], []]);
    expect(faultFacts(runtime.core.truth, 'break_stream')).toHaveLength(1);
    runtime.core.breakStreams(code);
    expect(second.codes).toEqual([code]);
  },
);

test('each broken stream ends with the next of several break statuses in turn', () => {
  const codes = [status.INTERNAL, status.CANCELLED];
  const runtime = new VirtualRuntime({ breakStreamAfterMs: 100, breakStreamWith: codes });
  const streams = [subscribeVirtual(runtime), subscribeVirtual(runtime), subscribeVirtual(runtime)];
  runtime.advance(110);
  expect(streams.map((stream) => stream.codes)).toEqual([
    [status.INTERNAL],
    [status.CANCELLED],
    [status.INTERNAL],
  ]);
});
