import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { EVENT_TYPES } from '../../src/protocol/record.ts';
import { manualClock } from './clock.ts';
import { EventChannel } from './eventChannel.ts';
import { delay, drop, duplicate, type EventFault, reorder } from './eventFaults.ts';
import { createGroundTruth, type EventFact } from './groundTruth.ts';
import { perform } from './podActions.ts';
import { type PodScriptOptions, podScriptOf } from './podScript.ts';
import { SimulatedPods } from './pods.ts';
import { PROFILE_NAMES, PROFILES, type ProfileName } from './profiles.ts';

const anyPod: fc.Arbitrary<PodScriptOptions> = fc.record({
  seed: fc.nat(),
  slot: fc.nat({ max: 200 }),
  number: fc.nat({ max: 1000 }),
  meanMs: fc.integer({ min: 500, max: 60_000 }),
  restarts: fc.double({ min: 0, max: 5, noNaN: true }),
});

/** Plays a pod without real time, with one subscriber from the start. */
function play(pod: PodScriptOptions, profile: ProfileName, faults: readonly EventFault[] = []) {
  const { clock, advance } = manualClock();
  const truth = createGroundTruth(clock, { keep: true });
  const shared = { profile: PROFILES[profile], clock, truth };
  const late: { readonly at: number; readonly run: () => void }[] = [];
  const start = clock().mono;
  const now = () => (clock().mono - start) / 1000;
  const channel = new EventChannel({
    ...shared,
    faults: () => faults,
    later: (ms, run) => late.push({ at: now() + ms, run }),
  });
  channel.subscribe({ number: 1, send: () => {} });
  const createdNs = () => BigInt(clock().wall) * 1000n;
  const pods = new SimulatedPods({
    ...shared,
    seed: pod.seed,
    announce: ({ listed: _, ...subject }) =>
      channel.publish({ ...subject, createdNs: createdNs(), message: new Uint8Array() }),
    isDown: () => false,
  });
  for (const { at, act } of podScriptOf(pod)) {
    advance((at - now()) * 1000);
    perform(pods, act);
  }
  for (const { run } of late) run();
  const events = truth.entries.flatMap((entry) => (entry.what === 'event' ? [entry] : []));
  const transitions = truth.entries.flatMap((entry) => (entry.what === 'transition' ? [entry] : []));
  return { pods, events, transitions };
}

const pod = { seed: 5, slot: 0, number: 0, meanMs: 5000, restarts: 0 };

const typesById = (events: readonly EventFact[]): string[][] =>
  [
    ...Map.groupBy(
      events.filter(({ delivered }) => delivered),
      ({ id }) => id,
    ).values(),
  ].map((group) => group.map(({ type }) => type));

test('every pod script runs to its end on every runtime and leaves nothing behind', () => {
  fc.assert(
    fc.property(anyPod, fc.constantFrom(...PROFILE_NAMES), (pod, profile) => {
      const { pods, transitions } = play(pod, profile);
      expect(pods.sandboxes.size + pods.containers.size).toBe(0);
      for (const [, group] of Map.groupBy(transitions, ({ id }) => id)) {
        expect(group.map(({ transition }) => transition)).toEqual([
          'created',
          'started',
          'stopped',
          'deleted',
        ]);
      }
    }),
  );
});

test('without faults every announced transition is delivered once, in order', () => {
  fc.assert(
    fc.property(anyPod, (pod) => {
      const { events } = play(pod, 'containerd-2.1');
      for (const types of typesById(events)) expect(types).toEqual(EVENT_TYPES);
      expect(events.every(({ delivered }) => delivered)).toBe(true);
    }),
  );
});

test('two attempts of one container never run at the same time', () => {
  fc.assert(
    fc.property(anyPod, (pod) => {
      const running = new Set<string>();
      for (const { isSandbox, container, transition } of play(pod, 'containerd-2.1').transitions) {
        if (isSandbox) continue;
        if (transition === 'started') expect(running.has(container)).toBe(false);
        if (transition === 'started') running.add(container);
        if (transition === 'stopped') running.delete(container);
      }
    }),
  );
});

const certainly = { seed: 1, probability: 1 };

test('a dropped event is built and delivered to no subscriber', () => {
  const { events } = play(pod, 'containerd-2.1', [drop({ ...certainly, types: ['STOPPED'] })]);
  expect(events.filter(({ delivered }) => !delivered).map(({ type }) => type)).toEqual(
    events.filter(({ type }) => type === 'STOPPED').map(({ type }) => type),
  );
});

test('a duplicated event has two entries with one number, and a delayed event is delivered once, after the others', () => {
  const twice = play(pod, 'containerd-2.1', [duplicate({ ...certainly, types: ['STARTED'] })]).events;
  for (const types of typesById(twice))
    expect(types).toEqual(['CREATED', 'STARTED', 'STARTED', 'STOPPED', 'DELETED']);
  const late = play(pod, 'containerd-2.1', [delay({ ...certainly, types: ['STARTED'] }, 90_000)]).events;
  for (const types of typesById(late)) expect(types).toEqual(['CREATED', 'STOPPED', 'DELETED', 'STARTED']);
});

test('a reordered event is delivered right after the next event of its id', () => {
  const { events } = play(pod, 'containerd-2.1', [reorder({ ...certainly, types: ['STARTED'] })]);
  for (const types of typesById(events)) expect(types).toEqual(['CREATED', 'STOPPED', 'STARTED', 'DELETED']);
});
