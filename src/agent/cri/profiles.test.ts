import { describe, expect, test } from 'vitest';
import { decide, profileOf, type StreamSetting } from './profiles.ts';

const named = (name: string, version: string) => profileOf({ name, version }).name;

describe('a runtime is known by its name and version', () => {
  test.each([
    ['containerd', '2.1.9+unknown', 'containerd-2'],
    ['containerd', '2.0.0', 'containerd-2'],
    ['containerd', 'v2.0.0-rc.1', 'containerd-2'],
    ['containerd', '2', 'unknown'],
    ['containerd', '10.0.0', 'containerd-2'],
    ['containerd', '1.7.24~ds1', 'containerd-1.7'],
    ['containerd', '1.7.0', 'containerd-1.7'],
    ['containerd', 'v1.7', 'containerd-1.7'],
    ['containerd', '1.6.20~ds1', 'containerd-1.6'],
    ['containerd', '1.5.1', 'containerd-1.6'],
    ['containerd', '0.9.9', 'containerd-1.6'],
    ['cri-o', '1.33.0', 'crio-1.33'],
    ['cri-o', '1.36.2', 'crio-1.33'],
    ['cri-o', '1.32.13', 'crio-1.28'],
    ['cri-o', '1.28.0', 'crio-1.28'],
    ['cri-o', '1.27.1', 'crio-1.26'],
    ['iSulad', '2.1.6', 'isulad-2.1.6'],
    ['isulad', '2.2.0', 'isulad-2.1.6'],
    ['iSulad', '2.1.5', 'unknown'],
    ['docker', '28.3.3', 'cri-dockerd'],
    ['somethingd', '1.0.0', 'unknown'],
    ['containerd', '', 'unknown'],
    ['containerd', 'latest', 'unknown'],
    ['containerd', '2147483648.0.0', 'unknown'],
    ['containerd', '-2.0.0', 'unknown'],
    ['containerd', '１.7.0', 'unknown'],
    ['', '2.1.0', 'unknown'],
    ['Xcontainerd', '2.1.0', 'unknown'],
    ['containerd\n', '2.1.0', 'unknown'],
  ])('%s %s is %s', (name, version, profile) => {
    expect(named(name, version)).toBe(profile);
  });
});

describe('whether to subscribe', () => {
  const decision = (setting: StreamSetting, name: string, version: string) => {
    const decided = decide(setting, profileOf({ name, version }));
    return decided.subscribe ? 'subscribe' : decided.state;
  };

  test.each([
    ['auto', 'containerd', '2.1.9', 'subscribe'],
    ['auto', 'containerd', '1.7.24', 'Unsafe'],
    ['always', 'containerd', '1.7.24', 'Unsafe'],
    ['auto', 'containerd', '1.6.20', 'Unsupported'],
    ['always', 'containerd', '1.6.20', 'Unsupported'],
    ['auto', 'cri-o', '1.33.1', 'subscribe'],
    ['always', 'cri-o', '1.30.0', 'Unsafe'],
    ['auto', 'cri-o', '1.26.0', 'Unsafe'],
    ['auto', 'docker', '28.0.0', 'Unsupported'],
    ['auto', 'somethingd', '1.0.0', 'Unsafe'],
    ['always', 'somethingd', '1.0.0', 'subscribe'],
    ['never', 'containerd', '2.1.9', 'Off'],
    ['never', 'somethingd', '1.0.0', 'Off'],
  ] as const)('with %s, on %s %s: %s', (setting, name, version, expected) => {
    expect(decision(setting, name, version)).toBe(expected);
  });
});

describe('what is known of events', () => {
  test('of an unknown runtime none is due, so that nothing can be missed there', () => {
    expect(profileOf({ name: 'somethingd', version: '1.0' })).toMatchObject({
      sandboxEvents: [],
      containerEvents: [],
    });
  });

  test('CRI-O announces neither the creation nor the removal of a sandbox, nor what goes with it', () => {
    expect(profileOf({ name: 'cri-o', version: '1.33.0' })).toMatchObject({
      sandboxEvents: ['STARTED', 'STOPPED'],
      announcesRemovedWithSandbox: false,
    });
  });

  test('containerd announces the removal of a sandbox up to ten seconds before it shows', () => {
    expect(profileOf({ name: 'containerd', version: '2.1.0' }).lead).toBe(10_000_000);
  });
});
