import { describe, expect, test } from 'vitest';
import { PROFILES } from '../../devtools/simulator/profiles.ts';
import { CONTAINERD, CRIO, ISULAD } from '../../test/engine/timeline.ts';
import { lacksStatus, profileOf, verificationOf } from './profiles.ts';
import { RUNTIME_RUNS } from './runtimeRuns.ts';

const named = (name: string, version: string) => profileOf({ name, version }).name;

test.each([
  ['containerd', '2.4.0', 'containerd-2.4'],
  ['containerd', 'v2.4.0-beta.0', 'containerd-2.4'],
  ['containerd', '10.0.0', 'containerd-2.5'],
  ['containerd', '2.5.0', 'containerd-2.5'],
  ['containerd', '2.3.1', 'containerd-2.3'],
  ['containerd', '2.2.9', 'containerd-2'],
  ['containerd', '2.1.9+unknown', 'containerd-2'],
  ['containerd', '2.0.3', 'containerd-2'],
  ['containerd', '2.0.2', 'containerd-2.0.0'],
  ['containerd', 'v2.0.0-rc.1', 'containerd-2.0.0'],
  ['containerd', '2', 'unknown'],
  ['containerd', '1.7.24~ds1', 'containerd-1.7'],
  ['containerd', '1.7.0', 'containerd-1.7'],
  ['containerd', 'v1.7', 'containerd-1.7'],
  ['containerd', '1.6.20~ds1', 'containerd-1.6'],
  ['containerd', '1.5.1', 'containerd-1.6'],
  ['containerd', '0.9.9', 'containerd-1.6'],
  ['cri-o', '1.37.0', 'crio-1.37'],
  ['cri-o', '1.36.2', 'crio-1.36'],
  ['cri-o', '1.35.0', 'crio-1.33'],
  ['cri-o', '1.33.0', 'crio-1.33'],
  ['cri-o', '1.32.13', 'crio-1.28'],
  ['cri-o', '1.28.0', 'crio-1.28'],
  ['cri-o', '1.27.1', 'crio-1.27'],
  ['cri-o', '1.26.0', 'crio-1.26'],
  ['cri-o', '1.25.4', 'crio-1.25'],
  ['iSulad', '2.1.6', 'isulad-2.1.6'],
  ['isulad', '2.2.0', 'isulad-2.1.6'],
  ['iSulad', '2.1.5', 'isulad-2.1.5'],
  ['iSulad', '2.1.4', 'isulad-2.1.4'],
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
])('%s %s has the profile %s', (name, version, profile) => {
  expect(named(name, version)).toBe(profile);
});

test.each([
  ['containerd', '2.4.0', 'safe'],
  ['containerd', '2.0.1', 'safe'],
  ['containerd', '1.7.24', 'steals'],
  ['containerd', '1.6.39', 'impossible'],
  ['cri-o', '1.36.0', 'safe'],
  ['cri-o', '1.33.1', 'safe'],
  ['cri-o', '1.30.0', 'crashes'],
  ['cri-o', '1.27.0', 'steals'],
  ['cri-o', '1.26.0', 'steals'],
  ['cri-o', '1.25.0', 'impossible'],
  ['iSulad', '2.1.6', 'crashes'],
  ['iSulad', '2.1.5', 'crashes'],
  ['iSulad', '2.1.4', 'impossible'],
  ['docker', '28.0.0', 'impossible'],
  ['somethingd', '1.0.0', 'unknown'],
] as const)('subscribing to %s %s is %s, with a reason', (name, version, subscription) => {
  const profile = profileOf({ name, version });
  expect(profile.subscription).toBe(subscription);
  expect(profile.why).not.toBe('');
});

test('no event is expected from a runtime without a stream', () => {
  for (const version of ['1.6.20', '1.5.0']) {
    expect(profileOf({ name: 'containerd', version })).toMatchObject({
      sandboxEvents: [],
      containerEvents: [],
    });
  }
});

describe('the table of profiles', () => {
  const subscriptions = {
    broadcast: ['safe', 'crashes'],
    steal: ['steals'],
    unimplemented: ['impossible'],
    disabled: ['impossible'],
  };
  const simulatedProfiles = Object.entries(PROFILES).filter(
    ([name]) => name !== 'unknown' && !name.endsWith('-disabled'),
  );

  test.each(simulatedProfiles)('the profile of %s matches the simulator', (_name, simulated) => {
    const profile = profileOf({ name: simulated.runtimeName, version: simulated.runtimeVersion });
    expect(subscriptions[simulated.stream]).toContain(profile.subscription);
    expect(profile.subscription === 'crashes').toBe(simulated.crashesOnDisconnect !== null);
    expect(profile.streamingLists).toBe(simulated.listBatch !== null);
    if (profile.subscription === 'impossible') return;
    expect(profile.sandboxEvents).toEqual(simulated.sandboxEvents);
    expect(profile.containerEvents).toEqual(simulated.containerEvents);
    expect(profile.announcesSandboxRemoval).toBe(simulated.announcesSandboxRemoval);
    expect(profile.restores).toBe(simulated.restores);
    expect(profile.failedStartsMayBeUnknown).toBe(simulated.failedStartsMayBeUnknown);
    expect(profile.failedStartsUnannounced).toBe(simulated.failedStart !== 'cri-o');
    expect(profile.failedStartsEndLater).toBe(simulated.failedStart === 'cri-o');
    expect(profile.exitsDatedWhenNoticed).toBe(simulated.exitsDatedWhenNoticed);
    expect(profile.sandboxesListedBeforeStart).toBe(simulated.sandboxesListedBeforeStart);
    const bare = simulated.sandboxEvents.includes('DELETED') && !simulated.sandboxDeletedWhileListed;
    expect(profile.sandboxEventsWithoutStatus).toEqual(bare ? ['DELETED'] : []);
  });
});

test('no event is expected from an unknown runtime, so none can be missed', () => {
  expect(profileOf({ name: 'somethingd', version: '1.0' })).toMatchObject({
    sandboxEvents: [],
    containerEvents: [],
  });
});

test('CRI-O announces neither the creation nor the removal of a sandbox, nor what the removal ends', () => {
  expect(profileOf({ name: 'cri-o', version: '1.33.0' })).toMatchObject({
    sandboxEvents: ['STARTED', 'STOPPED'],
    announcesSandboxRemoval: false,
  });
});

test('iSulad never announces the STARTED of a sandbox, and everything that a removal ends', () => {
  expect(profileOf({ name: 'iSulad', version: '2.1.6' })).toMatchObject({
    sandboxEvents: ['CREATED', 'STOPPED', 'DELETED'],
    announcesSandboxRemoval: true,
    failedStartsUnannounced: true,
  });
});

test('containerd announces the removal of a sandbox up to ten seconds before lists show it', () => {
  expect(profileOf({ name: 'containerd', version: '2.1.0' }).lead).toBe(10_000_000);
});

test('an event may lack a sandbox status only if the runtime removes the sandbox before announcing it', () => {
  const without = (name: string, version: string) => profileOf({ name, version }).sandboxEventsWithoutStatus;
  expect(without('containerd', '1.7.24')).toEqual(['DELETED']);
  expect(without('iSulad', '2.1.6')).toEqual(['DELETED']);
  expect(without('containerd', '2.1.9')).toEqual([]);
  expect(without('cri-o', '1.26.0')).toEqual([]);
});

test.each([
  ['containerd', '2.1.9', 3, true],
  ['containerd', '1.7.24', 3, false],
  ['containerd', '1.7.24', 1, true],
  ['somethingd', '1.0', 1, false],
  ['containerd', '2.1.9', 9, false],
])(
  'for %s %s an event of type %i without a status counts as incomplete: %s',
  (name, version, type, lacks) => {
    const profile = profileOf({ name, version });
    expect(lacksStatus(profile, { type, hasSandboxStatus: false })).toBe(lacks);
    expect(lacksStatus(profile, { type, hasSandboxStatus: true })).toBe(false);
  },
);

test('containerd never announces a failed start; CRI-O announces its end, which is later than its creation', () => {
  expect(profileOf({ name: 'containerd', version: '2.1.0' })).toMatchObject({
    failedStartsUnannounced: true,
    failedStartsEndLater: false,
  });
  expect(profileOf({ name: 'cri-o', version: '1.33.0' })).toMatchObject({
    failedStartsUnannounced: false,
    failedStartsEndLater: true,
  });
});

test('the profiles of the engine tests are those of real runtimes', () => {
  expect(profileOf({ name: 'containerd', version: '2.1.9' })).toMatchObject(CONTAINERD);
  expect(profileOf({ name: 'cri-o', version: '1.36.3' })).toMatchObject(CRIO);
  expect(profileOf({ name: 'iSulad', version: '2.1.6' })).toMatchObject(ISULAD);
});

test.each([
  ['containerd', '2.1.9+unknown', 'A real containerd 2.1.9+unknown runs in `make versions`.'],
  [
    'containerd',
    '2.1.4',
    expect.stringMatching(
      /^No test ran containerd 2\.1\.4: of the versions with the same rules, a real 2\.1\.\d+ runs in `make versions`[,.]/,
    ),
  ],
  [
    'containerd',
    '2.5.0',
    'No test ran containerd 2.5.0: the tests have only a simulator with its rules. Nobody ran one.',
  ],
  [
    'cri-o',
    '1.36.3',
    'No test ran cri-o 1.36.3: the tests have only a simulator with its rules. A real 1.36.3 was watched by hand.',
  ],
  [
    'cri-o',
    '1.30.1',
    'No test ran cri-o 1.30.1: the tests have only a simulator with its rules. Nobody ran one.',
  ],
  ['somethingd', '1.0', 'Nothing is known of somethingd 1.0, and no event of it is expected.'],
])('the verification of %s %s says which real runtimes were run', (name, version, says) => {
  expect(verificationOf({ name, version })).toEqual(says);
});

test.each(['1.7.24', 'v1.7.24', '1.7.24~ds1', '1.7.24+unknown'])(
  'containerd %s is the release that the tests run',
  (version) => {
    expect(verificationOf({ name: 'containerd', version })).toBe(
      `A real containerd ${version} runs in \`make versions\`.`,
    );
  },
);

test.each(['1.7.24-gke.1', '1.7.24-k3s1', '1.7.24-rc.0', '1.7.24+k3s1', '1.7.24~rc1', '1.7', '1.7.24.1'])(
  'no test ran containerd %s, which a distribution may have changed, or which is no release',
  (version) => {
    expect(verificationOf({ name: 'containerd', version })).toBe(
      `No test ran containerd ${version}: of the versions with the same rules, a real 1.7.24 runs in \`make versions\`.`,
    );
  },
);

test('every real runtime that was run has a profile', () => {
  for (const run of RUNTIME_RUNS) expect(profileOf(run).runs).toContain(run);
});

test('the notes name the defects of a version', () => {
  expect(profileOf({ name: 'containerd', version: '2.0.2' }).notes.join()).toContain('timestamp');
  expect(profileOf({ name: 'containerd', version: '2.2.9' }).notes.join()).toContain('OOMKilled');
  expect(profileOf({ name: 'containerd', version: '2.3.0' }).notes).toEqual([]);
  expect(profileOf({ name: 'cri-o', version: '1.26.0' }).notes.join()).toContain('DELETED');
});
