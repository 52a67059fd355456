import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runsOf } from '../../test/support/runs.ts';
import { drop, reorder } from './eventFaults.ts';
import { ODDITY_NAMES } from './oddities.ts';
import type { OddityProbabilities } from './podScript.ts';
import { PROFILE_NAMES, type ProfileName } from './profiles.ts';
import { eventFacts, faultFacts, subscribeVirtual, transitionFacts } from './testBed.ts';
import { VirtualRuntime } from './virtualRuntime.ts';

const MINUTE = 60_000;
const EVERY_ODDITY: OddityProbabilities = Object.fromEntries(
  ODDITY_NAMES.map((name) => [name, 0.8 / ODDITY_NAMES.length]),
);

const churn = { pods: 4, meanMs: 2000, restarts: 1, odds: EVERY_ODDITY, oddForMs: 500, leadMs: 5000 };

/** Creates pods for half a minute, then runs one more minute so that all end, with a restart in the middle. */
function play(seed: number, profile: ProfileName, restart = true): VirtualRuntime {
  const faults = [drop({ seed, probability: 0.1 })];
  const runtime = new VirtualRuntime({ seed, profile, faults, crashProbability: 0 });
  subscribeVirtual(runtime);
  runtime.play(churn, MINUTE / 2);
  if (restart) {
    runtime.later(10_000, () => runtime.restart({ downMs: 2000, exits: 0.5 }));
    runtime.later(13_000, () => subscribeVirtual(runtime));
  }
  runtime.advance(2 * MINUTE);
  return runtime;
}

const anySeed = fc.nat();
const anyProfile = fc.constantFrom(...PROFILE_NAMES);

test('every pod ends and leaves nothing behind, whatever the oddities and restarts', () => {
  fc.assert(
    fc.property(anySeed, anyProfile, (seed, profile) => {
      const { pods } = play(seed, profile).core;
      expect(pods.sandboxes.size + pods.containers.size).toBe(0);
    }),
    { numRuns: runsOf(40) },
  );
});

test('the same seed gives the same ground truth, to the microsecond', () => {
  fc.assert(
    fc.property(anySeed, anyProfile, (seed, profile) => {
      expect(play(seed, profile).core.truth.entries).toEqual(play(seed, profile).core.truth.entries);
    }),
    { numRuns: runsOf(5) },
  );
});

test('every transition that is not silent has an event in the ground truth, or a fault that explains its absence', () => {
  fc.assert(
    fc.property(anySeed, anyProfile, (seed, profile) => {
      const { truth } = play(seed, profile).core;
      const key = (id: string, type: string | null) => `${id} ${type}`;
      const built = new Set(eventFacts(truth).map(({ id, type }) => key(id, type)));
      const never = new Set(faultFacts(truth, 'never_built').map(({ id, type }) => key(id ?? '', type)));
      const TYPES = { created: 'CREATED', started: 'STARTED', stopped: 'STOPPED', deleted: 'DELETED' };
      for (const { id, transition, silent } of transitionFacts(truth)) {
        const own = key(id, TYPES[transition]);
        if (silent === null) expect(built.has(own) || never.has(own)).toBe(true);
      }
    }),
    { numRuns: runsOf(40) },
  );
});

test('no event is lost without a fault while a subscriber is present', () => {
  fc.assert(
    fc.property(anySeed, (seed) => {
      const { truth } = play(seed, 'containerd-2.1').core;
      const explained = new Set(faultFacts(truth).map(({ event }) => event));
      for (const [event, entries] of Map.groupBy(eventFacts(truth), (fact) => fact.event)) {
        const arrived = entries.some(({ delivered }) => delivered);
        const waited = entries.some(({ queued }) => queued);
        expect(arrived || waited || explained.has(event)).toBe(true);
      }
    }),
    { numRuns: runsOf(40) },
  );
});

test('only exits happen while the runtime is down', () => {
  const meanwhile = Array.from({ length: 10 }, (_, seed) => play(seed, 'containerd-2.1').core.truth).flatMap(
    (truth) => {
      const [down = 0, up = 0] = ['down', 'up'].map(
        (name) => truth.entries.find((entry) => entry.what === 'fault' && entry.fault === name)?.n,
      );
      return truth.entries.flatMap((entry) =>
        entry.n > down && entry.n < up && entry.what === 'transition' ? [entry] : [],
      );
    },
  );
  expect(meanwhile.length).toBeGreaterThan(0);
  expect(meanwhile.every(({ transition, silent }) => transition === 'stopped' && silent !== null)).toBe(true);
});

test('a runtime can come back as another version with its behavior', () => {
  const runtime = new VirtualRuntime({ profile: 'containerd-1.7' });
  runtime.restart({ downMs: 100, as: 'containerd-2.1' });
  runtime.advance(200);
  const [first, second] = [subscribeVirtual(runtime), subscribeVirtual(runtime)];
  runtime.core.pods.runPod({ name: 'web' });
  expect([first.events.length, second.events.length]).toEqual([2, 2]);
  expect(faultFacts(runtime.core.truth, 'up')[0]?.detail).toBe('containerd 2.1.9+unknown');
});

test('an exit not yet noticed when the runtime goes down is shown after the restart without an event', () => {
  const runtime = new VirtualRuntime();
  const { pods, truth } = runtime.core;
  const { id } = pods.runPod({ name: 'web' });
  const container = pods.createContainer(id, { name: 'app' });
  pods.startContainer(container.id);
  runtime.core.exitUnnoticed(container.id, 10_000);
  expect(container.shown).toBe('running');
  runtime.restart({ downMs: 100 });
  runtime.advance(20_000);
  expect(container.shown).toBe(null);
  expect(faultFacts(truth, 'never_built')).toMatchObject([{ id: container.id, type: 'STOPPED' }]);
  expect(eventFacts(truth).some(({ type }) => type === 'STOPPED')).toBe(false);
});

test('the timestamps of the runtime jump with its wall clock, and those of the ground truth do not', () => {
  const runtime = new VirtualRuntime();
  const { events } = subscribeVirtual(runtime);
  const before = runtime.core.pods.runPod({ name: 'before' }).createdNs;
  runtime.core.stepWallClock(-3_600_000);
  const after = runtime.core.pods.runPod({ name: 'after' }).createdNs;
  expect(after - before).toBe(-3_600_000_000_000n);
  expect(events.at(-1)?.createdAt).toBe(after);
  expect(new Set(runtime.core.truth.entries.map(({ at }) => at)).size).toBe(1);
  expect(faultFacts(runtime.core.truth, 'wall_step')).toMatchObject([{ detail: '-3600000 ms' }]);
});

test('an event that is delayed when the runtime goes down is lost, and the ground truth records it', () => {
  const faults = [{ name: 'delay', decide: () => [1000] }];
  const runtime = new VirtualRuntime({ faults });
  subscribeVirtual(runtime);
  runtime.core.pods.runPod({ name: 'web' });
  runtime.restart({ downMs: 100 });
  runtime.advance(200);
  const { events } = subscribeVirtual(runtime);
  runtime.advance(2000);
  expect(events).toEqual([]);
  expect(faultFacts(runtime.core.truth, 'lost_in_delay')).toHaveLength(2);
});

test('an event held for reordering is in the ground truth as queued, and as lost when the runtime goes down', () => {
  const faults = [reorder({ seed: 1, probability: 1, types: ['STOPPED'] })];
  const runtime = new VirtualRuntime({ profile: 'crio-1.33', faults });
  subscribeVirtual(runtime);
  const { pods, truth } = runtime.core;
  const { id } = pods.runPod({ name: 'web' });
  pods.stopPod(id);
  expect(eventFacts(truth).at(-1)).toMatchObject({ type: 'STOPPED', delivered: false, queued: true });
  runtime.restart({ downMs: 100 });
  expect(faultFacts(truth, 'lost_in_delay')).toHaveLength(1);
});
