import { status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { PROFILE_NAMES, PROFILES, type ProfileName } from './profiles.ts';
import { eventFacts, faultFacts, playPod, shape, subscribeVirtual, transitionFacts } from './testBed.ts';
import { VirtualRuntime } from './virtualRuntime.ts';

const with_ = (profile: ProfileName) => new VirtualRuntime({ profile, crashProbability: 1 });
const whose = (test: (name: ProfileName) => boolean) => PROFILE_NAMES.filter(test);
const streams = (name: ProfileName) => ['broadcast', 'steal'].includes(PROFILES[name].stream);
const isCrio = (name: ProfileName) => name.startsWith('crio');
const isIsulad = (name: ProfileName) => name.startsWith('isulad');

const EVERYTHING = [
  'sandbox CREATED',
  'sandbox STARTED',
  'container CREATED',
  'container STARTED',
  'container STOPPED',
  'sandbox STOPPED',
  'container DELETED',
  'sandbox DELETED',
];

const heardOfOneLife = (profile: ProfileName, explicitRemoval = true): string[] => {
  const runtime = with_(profile);
  const { events } = subscribeVirtual(runtime);
  const id = playPod(runtime.core, explicitRemoval);
  return events.map((event) => shape(event, id));
};

test.each(whose((name) => streams(name) && !isCrio(name) && !isIsulad(name)))(
  '%s announces every transition of a pod',
  (name) => {
    expect(heardOfOneLife(name)).toEqual(EVERYTHING);
  },
);

test.each(whose((name) => streams(name) && isCrio(name)))(
  '%s never announces CREATED and DELETED of a sandbox',
  (name) => {
    const silent = ['sandbox CREATED', 'sandbox DELETED'];
    expect(heardOfOneLife(name)).toEqual(EVERYTHING.filter((each) => !silent.includes(each)));
  },
);

test.each(whose(streams))(
  '%s announces containers that are removed with their sandbox unless it is a CRI-O',
  (name) => {
    expect(heardOfOneLife(name, false).includes('container DELETED')).toBe(!isCrio(name));
  },
);

test('containers that CRI-O removes with their sandbox are in the ground truth as never announced', () => {
  const runtime = with_('crio-1.33');
  playPod(runtime.core, false);
  const removed = transitionFacts(runtime.core.truth).filter(({ transition }) => transition === 'deleted');
  expect(removed.map(({ silent }) => silent)).toEqual(['profile', 'profile']);
});

test.each(whose((name) => PROFILES[name].stream === 'unimplemented'))(
  '%s answers the event stream with UNIMPLEMENTED',
  (name) => {
    const runtime = with_(name);
    const { codes } = subscribeVirtual(runtime);
    runtime.advance(1);
    expect(codes).toEqual([status.UNIMPLEMENTED]);
  },
);

test.each(whose((name) => PROFILES[name].stream === 'disabled'))(
  '%s ends the stream at once with OK',
  (name) => {
    const runtime = with_(name);
    const { codes, events } = subscribeVirtual(runtime);
    runtime.advance(1);
    expect([codes, events]).toEqual([[status.OK], []]);
  },
);

test('containerd 1.7 sends the DELETED of a sandbox without its status', () => {
  const runtime = with_('containerd-1.7');
  const { events } = subscribeVirtual(runtime);
  playPod(runtime.core);
  const without = events.map(({ podSandboxStatus }) => podSandboxStatus === undefined);
  expect(without).toEqual([...Array<boolean>(7).fill(false), true]);
});

const silentlyFailing = (name: ProfileName) => streams(name) && !isCrio(name);

test.each(whose(silentlyFailing))('%s never announces a failed start, but announces its removal', (name) => {
  const runtime = with_(name);
  const { events } = subscribeVirtual(runtime);
  const { pods, truth } = runtime.core;
  const { id } = pods.runPod({ name: 'web' });
  const container = pods.createContainer(id, { name: 'app' }).id;
  pods.exitContainer(container);
  pods.removeContainer(container);
  const own = events.filter(({ containerId }) => containerId === container);
  expect(own.map((event) => shape(event, id))).toEqual(['container CREATED', 'container DELETED']);
  expect(faultFacts(truth, 'start_failed')).toMatchObject([{ id: container }]);
});

test.each(whose((name) => streams(name) && isCrio(name)))(
  '%s announces the end of a failed start with an end later than its creation, and removes the container silently',
  (name) => {
    const runtime = with_(name);
    const { events } = subscribeVirtual(runtime);
    const { pods, truth } = runtime.core;
    const { id } = pods.runPod({ name: 'web' });
    const container = pods.createContainer(id, { name: 'app' }).id;
    runtime.advance(800);
    pods.exitContainer(container);
    const own = events.filter(({ containerId }) => containerId === container);
    expect(own.map((event) => shape(event, id))).toEqual(['container CREATED', 'container STOPPED']);
    const [status] = own.at(-1)?.containersStatuses ?? [];
    expect(status?.startedAt).toBe(status?.createdAt);
    expect(status?.finishedAt).toBe((status?.createdAt ?? 0n) + 800_000_000n);
    expect([pods.containers.size, pods.sandbox(id).ready]).toEqual([0, true]);
    expect(transitionFacts(truth).at(-1)).toMatchObject({ transition: 'deleted', silent: 'profile' });
  },
);

test.each(whose(streams))(
  '%s announces the STOPPED of a running sandbox that is removed unless it is a CRI-O',
  (name) => {
    const runtime = with_(name);
    const { events } = subscribeVirtual(runtime);
    const { pods } = runtime.core;
    const { id } = pods.runPod({ name: 'web' });
    pods.beginRemoval(id);
    pods.finishRemoval(id);
    expect(events.map((event) => shape(event, id)).includes('sandbox STOPPED')).toBe(!isCrio(name));
  },
);

test.each(whose((name) => streams(name) && isCrio(name)))(
  '%s announces the STOPPED of a running sandbox that is removed if its containers share a PID namespace',
  (name) => {
    const runtime = with_(name);
    const { events } = subscribeVirtual(runtime);
    const { pods } = runtime.core;
    const { id } = pods.runPod({ name: 'web', sharedPid: true });
    expect(events[0]?.podSandboxStatus?.linux?.namespaces?.options?.pid).toBe(0);
    pods.beginRemoval(id);
    pods.finishRemoval(id);
    expect(events.map((event) => shape(event, id))).toEqual(['sandbox STARTED', 'sandbox STOPPED']);
  },
);

test.each(whose(streams))(
  '%s announces the end of a container that never ran only if it is a CRI-O',
  (name) => {
    const runtime = with_(name);
    const { events } = subscribeVirtual(runtime);
    const { pods } = runtime.core;
    const { id } = pods.runPod({ name: 'web' });
    const [stopped = '', removed = ''] = ['app', 'sidecar'].map(
      (container) => pods.createContainer(id, { name: container }).id,
    );
    pods.stopContainer(stopped);
    pods.removeContainer(removed);
    const ends = events
      .filter(({ containerEventType: type }) => type === 2)
      .map((event) => event.containerId);
    expect(ends).toEqual(isCrio(name) ? [stopped, removed] : []);
    expect(pods.container(stopped).state).toBe(isCrio(name) ? 'exited' : 'created');
  },
);

test.each(whose(streams))(
  '%s announces of a restored container what its kind does, and names its log',
  (name) => {
    const runtime = with_(name);
    const { events } = subscribeVirtual(runtime);
    const { pods } = runtime.core;
    const { id } = pods.runPod({ name: 'web' });
    const container = pods.createContainer(id, { name: 'app', restored: true }).id;
    pods.startContainer(container);
    pods.exitContainer(container);
    const own = events.filter(({ containerId }) => containerId === container);
    const all = ['container CREATED', 'container STARTED', 'container STOPPED'];
    const silent = { all: 0, unknown: 1, end_only: 2 }[PROFILES[name].restores];
    expect(own.map((event) => shape(event, id))).toEqual(all.slice(silent));
    if (isCrio(name)) expect(own[0]?.containersStatuses[0]?.logPath).toBe(`/var/log/pods/${container}.log`);
  },
);

test('a failed start of containerd 2.4 may be UNKNOWN, and its end is announced when it is removed', () => {
  const typesOf = (profile: ProfileName) => {
    const runtime = with_(profile);
    const { events } = subscribeVirtual(runtime);
    const { pods } = runtime.core;
    const { id } = pods.runPod({ name: 'web' });
    const container = pods.createContainer(id, { name: 'app' }).id;
    pods.exitContainer(container, { unknownStart: true });
    const { shown } = pods.container(container);
    pods.removeContainer(container);
    const own = events.filter(({ containerId }) => containerId === container);
    return [shown, ...own.map((event) => shape(event, id))];
  };
  expect(typesOf('containerd-2.4')).toEqual([
    'unknown',
    'container CREATED',
    'container STOPPED',
    'container DELETED',
  ]);
  expect(typesOf('containerd-2.3')).toEqual([null, 'container CREATED', 'container DELETED']);
});

test('the STOPPED of a container that was killed for want of memory says so from containerd 2.3 on', () => {
  const reasonOf = (profile: ProfileName) => {
    const runtime = with_(profile);
    const { events } = subscribeVirtual(runtime);
    const { pods } = runtime.core;
    const { id } = pods.runPod({ name: 'web' });
    const container = pods.createContainer(id, { name: 'app' }).id;
    pods.startContainer(container);
    pods.exitContainer(container, { exitCode: 137, oomKilled: true });
    return events.at(-1)?.containersStatuses[0]?.reason;
  };
  expect([reasonOf('containerd-2.1'), reasonOf('containerd-2.3'), reasonOf('containerd-2.4')]).toEqual([
    'Error',
    'OOMKilled',
    'OOMKilled',
  ]);
});

test('CRI-O 1.26.0 announces a DELETED when a container is stopped', () => {
  const runtime = with_('crio-1.26');
  const { events } = subscribeVirtual(runtime);
  const { pods, truth } = runtime.core;
  const { id } = pods.runPod({ name: 'web' });
  const container = pods.createContainer(id, { name: 'app' }).id;
  pods.startContainer(container);
  pods.stopContainer(container);
  expect(events.slice(-2).map((event) => shape(event, id))).toEqual([
    'container STOPPED',
    'container DELETED',
  ]);
  expect(pods.container(container).state).toBe('exited');
  expect(eventFacts(truth).at(-1)).toMatchObject({ type: 'DELETED', spurious: true });
});

test.each(whose((name) => PROFILES[name].stream === 'steal'))(
  '%s sends each event to one subscriber',
  (name) => {
    const runtime = with_(name);
    const [first, second] = [subscribeVirtual(runtime), subscribeVirtual(runtime)];
    playPod(runtime.core);
    expect(Math.abs(first.events.length - second.events.length)).toBeLessThanOrEqual(1);
    expect(first.events.length + second.events.length).toBe(eventFacts(runtime.core.truth).length);
  },
);

test.each(whose((name) => PROFILES[name].crashesOnDisconnect === 'next-event'))(
  '%s crashes at an event for a subscriber that has left, and restarts',
  (name) => {
    const runtime = with_(name);
    const { codes } = subscribeVirtual(runtime);
    subscribeVirtual(runtime).leave();
    const { pods, truth } = runtime.core;
    pods.runPod({ name: 'web' });
    runtime.advance(10);
    expect(runtime.core.isDown).toBe(true);
    expect(codes).toEqual([status.UNAVAILABLE]);
    runtime.advance(1000);
    expect(runtime.core.isDown).toBe(false);
    const faults = faultFacts(truth).map(({ fault }) => fault);
    expect(faults).toEqual(['crash', 'down', 'up']);
    const again = subscribeVirtual(runtime);
    pods.runPod({ name: 'next' });
    runtime.advance(10);
    expect(again.events).toHaveLength(1);
  },
);

test('CRI-O 1.33 survives a disconnect', () => {
  const runtime = with_('crio-1.33');
  subscribeVirtual(runtime).leave();
  runtime.core.pods.runPod({ name: 'web' });
  runtime.advance(10);
  expect(runtime.core.isDown).toBe(false);
});

test('a stopped CRI-O ends its streams with OK; a killed one and containerd do not', () => {
  const codesOf = (profile: ProfileName, how: 'killed' | 'stopped') => {
    const runtime = with_(profile);
    const { codes } = subscribeVirtual(runtime);
    runtime.restart({ downMs: 100, how });
    return codes;
  };
  expect(codesOf('crio-1.33', 'stopped')).toEqual([status.OK]);
  expect(codesOf('crio-1.33', 'killed')).toEqual([status.UNAVAILABLE]);
  expect(codesOf('containerd-2.1', 'stopped')).toEqual([status.UNAVAILABLE]);
});

test('CRI-O keeps a backlog only until the first subscription', () => {
  const runtime = with_('crio-1.33');
  playPod(runtime.core);
  const first = subscribeVirtual(runtime);
  expect(first.events).toHaveLength(6);
  first.leave();
  playPod(runtime.core);
  expect(subscribeVirtual(runtime).events).toEqual([]);
});

test('containerd 2 discards backlog events after five minutes', () => {
  const runtime = with_('containerd-2.1');
  playPod(runtime.core);
  runtime.advance(301_000);
  expect(subscribeVirtual(runtime).events).toEqual([]);
  expect(faultFacts(runtime.core.truth, 'backlog_discarded')).toHaveLength(8);
});
