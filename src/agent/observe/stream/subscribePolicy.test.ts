import { describe, expect, test } from 'vitest';
import { profileOf } from '../../../cri/profiles.ts';
import { millis, mono, shift, wall } from '../../../protocol/units.ts';
import { parse } from '../../../protocol/validation.ts';
import type { GateStatus } from '../kubelet/gate.ts';
import {
  decide,
  kubeletSubscribed,
  mustWaitForKubelet,
  NO_PACE_STORE,
  type SavedPace,
  SavedPaceSchema,
  SubscriptionPace,
} from './subscribePolicy.ts';

const OFF: GateStatus = { is: 'off', readAt: mono(0) };
const ON: GateStatus = { is: 'on', readAt: mono(0) };
const UNKNOWN: GateStatus = { is: 'unknown', why: 'the kubelet is away', before: null };
const GATES = { off: OFF, on: ON, unknown: UNKNOWN };

const VERSIONS = {
  safe: { name: 'containerd', version: '2.1.9' },
  steals: { name: 'containerd', version: '1.7.24' },
  crashes: { name: 'cri-o', version: '1.30.0' },
  impossible: { name: 'containerd', version: '1.6.20' },
  unknown: { name: 'somethingd', version: '1.0.0' },
};

const decision = (
  setting: Parameters<typeof decide>[0]['setting'],
  runtime: keyof typeof VERSIONS,
  gate: keyof typeof GATES,
  sinceSubscribed = null as Parameters<typeof decide>[0]['sinceSubscribed'],
) => decide({ setting, profile: profileOf(VERSIONS[runtime]), gate: GATES[gate], sinceSubscribed });

describe('whether to subscribe', () => {
  test.each([
    ['never', 'safe', 'off', 'Off'],
    ['never', 'unknown', 'off', 'Off'],
    ['auto', 'safe', 'unknown', 'subscribe'],
    ['auto', 'safe', 'on', 'subscribe'],
    ['auto', 'steals', 'off', 'Unsafe'],
    ['auto', 'crashes', 'off', 'Unsafe'],
    ['auto', 'unknown', 'off', 'Unsafe'],
    ['auto', 'impossible', 'off', 'Unsupported'],
    ['always', 'impossible', 'off', 'Unsupported'],
    ['always', 'safe', 'on', 'subscribe'],
    ['always', 'safe', 'unknown', 'subscribe'],
    ['always', 'steals', 'off', 'watched'],
    ['always', 'steals', 'on', 'Unsafe'],
    ['always', 'steals', 'unknown', 'Unsafe'],
    ['always', 'unknown', 'off', 'watched'],
    ['always', 'unknown', 'on', 'Unsafe'],
    ['always', 'unknown', 'unknown', 'Unsafe'],
    ['always', 'crashes', 'off', 'watched'],
    ['always', 'crashes', 'on', 'Unsafe'],
    ['always', 'crashes', 'unknown', 'Unsafe'],
  ] as const)('--subscribe %s, a runtime that is %s, the gate %s: %s', (setting, runtime, gate, expected) => {
    const decided = decision(setting, runtime, gate);
    if (!decided.subscribe) expect(decided.state).toBe(expected);
    else expect(decided.whileGateOff ? 'watched' : 'subscribe').toBe(expected);
  });

  test('a refusal has the reason', () => {
    expect(decision('always', 'steals', 'unknown').why).toContain('the kubelet is away');
    expect(decision('always', 'steals', 'on').why).toContain('EventedPLEG is on');
    expect(decision('auto', 'steals', 'off').why).toContain('one subscriber only');
  });

  test('iSulad is not subscribed to on its own, and the reason says that leaving may crash it', () => {
    for (const version of ['2.1.5', '2.1.6']) {
      const profile = profileOf({ name: 'iSulad', version });
      const decided = decide({ setting: 'auto', profile, gate: OFF, sinceSubscribed: null });
      expect(decided).toMatchObject({ subscribe: false, state: 'Unsafe' });
      expect(decided.why).toMatch(/may crash when a subscriber leaves.*leaks memory/);
      expect(decide({ setting: 'always', profile, gate: OFF, sinceSubscribed: null }).subscribe).toBe(true);
    }
  });

  test('a runtime that may crash is subscribed to at most every ten minutes, and the report says why', () => {
    expect(decision('always', 'crashes', 'off').why).toContain('may crash when a subscriber leaves');
    expect(decision('always', 'crashes', 'off', millis(599_000))).toMatchObject({ state: 'Interrupted' });
    expect(decision('always', 'crashes', 'off', millis(600_000)).subscribe).toBe(true);
    expect(decision('always', 'steals', 'off', millis(0)).subscribe).toBe(true);
  });
});

describe('after a lost stream the kubelet subscribes first', () => {
  test('the kubelet subscribes first if its gate is on, or was when last known', () => {
    expect(mustWaitForKubelet(true, ON, false)).toBe(true);
    expect(mustWaitForKubelet(true, { ...UNKNOWN, before: 'on' }, false)).toBe(true);
    expect(mustWaitForKubelet(true, { ...UNKNOWN, before: 'off' }, false)).toBe(false);
    expect(mustWaitForKubelet(true, UNKNOWN, false)).toBe(false);
    expect(mustWaitForKubelet(true, OFF, false)).toBe(false);
    expect(mustWaitForKubelet(false, ON, false)).toBe(false);
    expect(mustWaitForKubelet(true, ON, true)).toBe(false);
  });

  test('the kubelet has subscribed if its counter rose, or was reset and is not 0', () => {
    expect(kubeletSubscribed(3, 3)).toBe(false);
    expect(kubeletSubscribed(3, 4)).toBe(true);
    expect(kubeletSubscribed(3, 0)).toBe(false);
    expect(kubeletSubscribed(3, 1)).toBe(true);
    expect(kubeletSubscribed(undefined, 0)).toBe(false);
    expect(kubeletSubscribed(undefined, 1)).toBe(true);
    expect(kubeletSubscribed(3, undefined)).toBe(false);
  });
});

describe('the pace of subscribing', () => {
  const at = wall(1_700_000_000_000_000);
  /** The longest waits, and what is kept. */
  function pace(kept: unknown = null, random = 1) {
    const saved: SavedPace[] = [];
    const memory = {
      ...NO_PACE_STORE,
      load: async () => {
        const read = parse(SavedPaceSchema, kept);
        return read.ok ? read.value : null;
      },
      save: (what: SavedPace) => void saved.push(what),
    };
    return { pace: new SubscriptionPace(memory, () => random), saved };
  }

  test('the wait grows with each failure, from 1 s to a minute', () => {
    const longest = pace().pace;
    const waits = Array.from({ length: 8 }, () => longest.failed() / 1e6);
    expect(waits).toEqual([2, 4, 8, 16, 32, 60, 60, 60]);
    const shortest = pace(null, 0).pace;
    expect([shortest.failed(), shortest.failed()]).toEqual([1_000_000, 1_000_000]);
  });

  test('a subscription that lasted resets the wait', () => {
    const { pace: it, saved } = pace();
    it.failed();
    it.failed();
    it.subscribing(at);
    it.lasted();
    expect(saved).toEqual([
      { attempts: 3, subscribed: at },
      { attempts: 0, subscribed: at },
    ]);
    expect(it.failed()).toBe(2_000_000);
  });

  test('there is no wait at the first start, nor after a subscription that lasted', async () => {
    expect(await pace().pace.load(at)).toBe(0);
    expect(await pace({ attempts: 0, subscribed: at }).pace.load(shift(at, 1))).toBe(0);
    expect(await new SubscriptionPace(NO_PACE_STORE).load(at)).toBe(0);
  });

  test('the count of attempts survives the process', async () => {
    const { pace: it } = pace({ attempts: 5, subscribed: at });
    expect(await it.load(shift(at, millis(2_000)))).toBe(millis(30_000));
    expect(it.sinceSubscribed(shift(at, millis(2_000)))).toBe(millis(2_000));
    expect(it.failed()).toBe(millis(60_000));
    expect(await pace({ attempts: 5, subscribed: at }).pace.load(shift(at, millis(3_600_000)))).toBe(0);
  });

  test('the wait is at most a minute, whatever the clock or the file contains', async () => {
    const before = shift(at, -millis(86_400_000));
    expect(await pace({ attempts: 1e9, subscribed: at }).pace.load(before)).toBe(millis(60_000));
    for (const kept of ['', 7, [], { attempts: -1, subscribed: at }, { attempts: 'x' }, { attempts: 3 }]) {
      expect(await pace(kept).pace.load(at)).toBe(0);
    }
  });
});
