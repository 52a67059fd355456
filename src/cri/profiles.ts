/*
 * The known facts of each runtime and version: which events it announces, and how it treats subscribers.
 *
 * The subscribe policy follows from how a runtime treats several subscribers: containerd 2 gives every subscriber every event;
 * containerd 1.7 gives each event to one of them, so an agent would take events from the kubelet (containerd pkg/cri/server, one shared
 * channel); CRI-O before 1.33 may crash when a subscriber leaves (cri-o issue 9004), and so may iSulad when that subscriber has unread
 * events (iSulad blocking_queue_clear). Agents do not subscribe to unknown runtimes.
 */

import type { PlegProfile } from '../protocol/eventProfile.ts';
import type { ReceivedEvent } from '../protocol/observation.ts';
import { EVENT_TYPES, type EventType } from '../protocol/record.ts';
import { millis } from '../protocol/units.ts';
import { BY_HAND, RUNTIME_RUNS, type RuntimeRun } from './runtimeRuns.ts';

/**
 * How several subscribers are served. `own_queues`: a queue for each. `shared_queue`: one queue, of which each subscriber is sent every
 * event. `one_subscriber`: one queue, of which each event goes to one subscriber.
 */
export type FanOut = 'own_queues' | 'shared_queue' | 'one_subscriber' | 'unknown';

export interface RuntimeVersion {
  readonly name: string;
  readonly version: string;
}

export interface RuntimeProfile extends PlegProfile {
  readonly name: string;
  /**
   * `safe`: subscribing does no harm. `steals`: each event goes to one subscriber only. `crashes`: the runtime may crash when a
   * subscriber leaves. `impossible`: there are no events to subscribe to. `unknown`: not known.
   */
  readonly subscription: 'safe' | 'steals' | 'crashes' | 'impossible' | 'unknown';
  /** Why, for the report. */
  readonly why: string;
  readonly fanOut: FanOut;
  /** The sandbox events that normally have no sandbox status. */
  readonly sandboxEventsWithoutStatus: readonly EventType[];
  /** Whether it offers the streaming lists of CRI 1.36. */
  readonly streamingLists: boolean;
  /** Peculiarities of this version that explain unexpected evidence. */
  readonly notes: readonly string[];
  /** The real runtimes that were run to check these rules. */
  readonly runs: readonly RuntimeRun[];
}

const ALL: readonly EventType[] = ['CREATED', 'STARTED', 'STOPPED', 'DELETED'];

interface ProfileRule {
  readonly runtime: RegExp;
  /** The lowest version that the rule is for. Rules of one runtime are in falling order. */
  readonly from: readonly [major: number, minor: number, patch: number];
  readonly profile: KnownRules;
}

type KnownRules = Omit<RuntimeProfile, 'runs'>;

const UNKNOWN: KnownRules = {
  name: 'unknown',
  sandboxEvents: [],
  containerEvents: [],
  announcesSandboxRemoval: false,
  restores: 'all',
  lead: millis(0),
  subscription: 'unknown',
  why: 'nothing is known of how this runtime treats subscribers',
  fanOut: 'unknown',
  sandboxEventsWithoutStatus: [],
  stoppedMayComeFirst: false,
  failedStartsUnannounced: false,
  failedStartsMayBeUnknown: false,
  failedStartsEndLater: false,
  exitsDatedWhenNoticed: false,
  sandboxesListedBeforeStart: false,
  streamingLists: false,
  notes: [],
};

const CONTAINERD: KnownRules = {
  ...UNKNOWN,
  name: 'containerd-2',
  sandboxEvents: ALL,
  containerEvents: ALL,
  announcesSandboxRemoval: true,
  // A sandbox's DELETED is announced seconds before the sandbox leaves the list.
  lead: millis(10_000),
  subscription: 'safe',
  why: 'containerd 2 gives every subscriber every event',
  fanOut: 'own_queues',
  stoppedMayComeFirst: true,
  failedStartsUnannounced: true,
};

/** Since then OOM events are looked at before the STOPPED of an exit is built (containerd internal/cri/server, handleContainerExit). */
const CONTAINERD_2_3: KnownRules = { ...CONTAINERD, name: 'containerd-2.3' };

/** Since then a failed start whose clean-up fails is UNKNOWN (containerd internal/cri/server, StartContainer). */
const CONTAINERD_2_4: KnownRules = {
  ...CONTAINERD,
  name: 'containerd-2.4',
  failedStartsMayBeUnknown: true,
  streamingLists: true,
};

const BEFORE_2_3 =
  'the STOPPED of a container that was killed for want of memory may give the reason Error instead of OOMKilled';

const CRIO: KnownRules = {
  ...UNKNOWN,
  name: 'crio-1.33',
  // A sandbox's CREATED and DELETED are built while its status is unavailable, and are skipped.
  sandboxEvents: ['STARTED', 'STOPPED'],
  containerEvents: ALL,
  // Only RemoveContainer and StopPodSandbox announce; RemovePodSandbox does not, except by the process of a sandbox.
  announcesSandboxRemoval: false,
  restores: 'end_only',
  subscription: 'safe',
  why: 'CRI-O 1.33 and later give every subscriber every event',
  fanOut: 'shared_queue',
  stoppedMayComeFirst: true,
  // The end of a failed start is announced; then CRI-O removes the container without a DELETED.
  failedStartsEndLater: true,
};

const CRIO_STEALS: KnownRules = {
  ...CRIO,
  subscription: 'steals',
  why: 'CRI-O before 1.28 gives each event to one subscriber only: we would take events from the kubelet',
  fanOut: 'one_subscriber',
};

const ISULAD: KnownRules = {
  ...UNKNOWN,
  name: 'isulad-2.1.6',
  // The STARTED of a sandbox is not sent.
  sandboxEvents: ['CREATED', 'STOPPED', 'DELETED'],
  containerEvents: ALL,
  announcesSandboxRemoval: true,
  subscription: 'crashes',
  why: 'iSulad may crash when a subscriber leaves, and leaks memory with every event while anybody is subscribed',
  fanOut: 'own_queues',
  // It is built when the sandbox is gone already.
  sandboxEventsWithoutStatus: ['DELETED'],
  failedStartsUnannounced: true,
  exitsDatedWhenNoticed: true,
  sandboxesListedBeforeStart: true,
  notes: [
    'no event is built while nobody is subscribed',
    'finished_at is when iSulad noticed the exit: the lateness of a STOPPED is a lower bound',
  ],
};

const NO_EVENTS = { sandboxEvents: [], containerEvents: [], subscription: 'impossible' } as const;

const rule = (runtime: RegExp, from: ProfileRule['from'], profile: KnownRules): ProfileRule => ({
  runtime,
  from,
  profile,
});

const RULES: readonly ProfileRule[] = [
  // RestorePod of the CRI 0.37 is not in any version that was read: whoever has it may announce nothing of what it restores.
  rule(/^containerd$/, [2, 5, 0], { ...CONTAINERD_2_4, name: 'containerd-2.5', restores: 'unknown' }),
  rule(/^containerd$/, [2, 4, 0], CONTAINERD_2_4),
  rule(/^containerd$/, [2, 3, 0], CONTAINERD_2_3),
  rule(/^containerd$/, [2, 0, 3], { ...CONTAINERD, notes: [BEFORE_2_3] }),
  rule(/^containerd$/, [2, 0, 0], {
    ...CONTAINERD,
    name: 'containerd-2.0.0',
    notes: [
      'PodSandboxStatus has a timestamp without the container statuses that belong to it: a kubelet with EventedPLEG on sees no containers',
      BEFORE_2_3,
    ],
  }),
  rule(/^containerd$/, [1, 7, 0], {
    ...CONTAINERD,
    name: 'containerd-1.7',
    subscription: 'steals',
    why: 'containerd 1.7 gives each event to one subscriber only: we would take events from the kubelet',
    fanOut: 'one_subscriber',
    // It is built when the sandbox is gone already.
    sandboxEventsWithoutStatus: ['DELETED'],
    notes: [
      'a subscriber that leaves takes one more event with it',
      'while nobody is subscribed the oldest 1000 events are kept, whatever their age, and newer ones are dropped',
      BEFORE_2_3,
    ],
  }),
  rule(/^containerd$/, [0, 0, 0], {
    ...CONTAINERD,
    ...NO_EVENTS,
    name: 'containerd-1.6',
    why: 'containerd before 1.7 has no event stream',
  }),
  rule(/^cri-o$/, [1, 37, 0], { ...CRIO, name: 'crio-1.37', restores: 'unknown', streamingLists: true }),
  rule(/^cri-o$/, [1, 36, 0], { ...CRIO, name: 'crio-1.36', streamingLists: true }),
  rule(/^cri-o$/, [1, 33, 0], CRIO),
  rule(/^cri-o$/, [1, 28, 0], {
    ...CRIO,
    name: 'crio-1.28',
    subscription: 'crashes',
    why: 'CRI-O 1.28 to 1.32 may crash when a subscriber leaves',
  }),
  rule(/^cri-o$/, [1, 27, 0], { ...CRIO_STEALS, name: 'crio-1.27' }),
  rule(/^cri-o$/, [1, 26, 0], {
    ...CRIO_STEALS,
    name: 'crio-1.26',
    notes: ['early patches also announce a DELETED when a container is stopped'],
  }),
  rule(/^cri-o$/, [0, 0, 0], {
    ...CRIO,
    ...NO_EVENTS,
    name: 'crio-1.25',
    why: 'CRI-O before 1.26 has no events',
  }),
  rule(/^iSulad$/i, [2, 1, 6], ISULAD),
  // Builds from April 2024 to November 2025 call themselves 2.1.5 and may have a stream.
  rule(/^iSulad$/i, [2, 1, 5], {
    ...ISULAD,
    name: 'isulad-2.1.5',
    notes: [...ISULAD.notes, 'builds before February 2025 also send the STARTED of a sandbox'],
  }),
  rule(/^iSulad$/i, [0, 0, 0], {
    ...ISULAD,
    ...NO_EVENTS,
    name: 'isulad-2.1.4',
    why: 'iSulad before 2.1.5 has no event stream',
  }),
  rule(/^docker$/, [0, 0, 0], {
    ...UNKNOWN,
    ...NO_EVENTS,
    name: 'cri-dockerd',
    why: 'cri-dockerd has no event stream',
  }),
];

/** Whether an event lacks a status that this runtime normally includes. */
export function lacksStatus(
  { containerEvents, sandboxEventsWithoutStatus }: RuntimeProfile,
  { type, hasSandboxStatus }: Pick<ReceivedEvent, 'type' | 'hasSandboxStatus'>,
): boolean {
  const name = EVENT_TYPES[type];
  if (hasSandboxStatus || name === undefined || !containerEvents.includes(name)) return false;
  return !sandboxEventsWithoutStatus.includes(name);
}

/** The profile of a runtime; `unknown` if no rule fits. */
export function profileOf(runtime: RuntimeVersion): RuntimeProfile {
  const profile = rulesOf(runtime);
  return { ...profile, runs: RUNTIME_RUNS.filter((run) => rulesOf(run) === profile) };
}

function rulesOf(runtime: RuntimeVersion): KnownRules {
  const version = parseVersion(runtime.version);
  if (version === null) return UNKNOWN;
  const found = RULES.find((each) => each.runtime.test(runtime.name) && atLeast(version, each.from));
  return found?.profile ?? UNKNOWN;
}

/** With which real runtimes the rules for this one were checked, in a sentence. */
export function verificationOf(runtime: RuntimeVersion): string {
  const named = `${runtime.name} ${runtime.version}`;
  const { name, runs } = profileOf(runtime);
  if (name === UNKNOWN.name) return `Nothing is known of ${named}, and no event of it is expected.`;
  const tested = runs.filter(({ ranIn }) => ranIn !== BY_HAND);
  const release = releaseIn(runtime.version);
  const same = tested.find(({ version }) => version === release);
  if (same !== undefined) return `A real ${named} runs in ${same.ranIn}.`;
  const others = tested.map(({ version, ranIn }) => `a real ${version} runs in ${ranIn}`);
  if (others.length > 0)
    return `No test ran ${named}: of the versions with the same rules, ${others.join(', ')}.`;
  const watched = runs.map(({ version }) => version);
  const seen =
    watched.length === 0 ? 'Nobody ran one' : `A real ${watched.join(' and ')} was watched by hand`;
  return `No test ran ${named}: the tests have only a simulator with its rules. ${seen}.`;
}

/** A release, as builds without Git and packages of Debian mark it too. Other marks may mean patches, and a pre-release is no release. */
const releaseIn = (version: string): string | undefined =>
  /^v?(\d+\.\d+\.\d+)(?:\+unknown|~ds\d+)?$/.exec(version)?.[1];

function parseVersion(text: string): readonly [number, number, number] | null {
  const match = /^v?(\d{1,5})\.(\d{1,5})(?:\.(\d{1,5}))?/.exec(text);
  return match === null ? null : [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
}

function atLeast(version: ProfileRule['from'], bound: ProfileRule['from']): boolean {
  const differing = version.findIndex((part, i) => part !== bound[i]);
  return differing === -1 || (version[differing] ?? 0) > (bound[differing] ?? 0);
}
