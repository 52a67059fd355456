/*
 * What is known of each runtime and version: which events it announces, and what it does to those who subscribe.
 *
 * The policy for streams (policy.ts) comes from how a runtime treats several subscribers: containerd 2 gives every
 * subscriber every event; containerd 1.7 gives each event to one of them, so that we would take events away from the
 * kubelet (containerd pkg/cri/server, one shared channel); CRI-O before 1.33 may crash when a subscriber leaves
 * (cri-o issue 9004). What is not known is not subscribed to.
 */

import type { PlegProfile } from '../protocol/eventProfile.ts';
import type { ReceivedEvent } from '../protocol/observation.ts';
import { EVENT_TYPES, type EventType } from '../protocol/record.ts';
import { millis } from '../protocol/units.ts';

/** What Version said. */
export interface RuntimeVersion {
  readonly name: string;
  readonly version: string;
}

export interface RuntimeProfile extends PlegProfile {
  readonly name: string;
  /**
   * `safe`: subscribing harms nobody. `steals`: each event goes to one subscriber only. `crashes`: a subscriber that leaves may
   * bring the runtime down. `impossible`: there are no events to subscribe to. `unknown`: nobody knows.
   */
  readonly subscription: 'safe' | 'steals' | 'crashes' | 'impossible' | 'unknown';
  /** Why, in words for the report. */
  readonly why: string;
  /** The events of a sandbox that have no sandbox status in them although all is well. */
  readonly sandboxEventsWithoutStatus: readonly EventType[];
  /** Whether the streaming lists of CRI 1.36 are offered. */
  readonly streamingLists: boolean;
  /** Habits of this version that explain what a reader of the evidence may wonder about. */
  readonly notes: readonly string[];
}

const ALL: readonly EventType[] = ['CREATED', 'STARTED', 'STOPPED', 'DELETED'];

interface Rule {
  readonly runtime: RegExp;
  /** The lowest version that the rule is for. Rules of one runtime stand in falling order. */
  readonly from: readonly [major: number, minor: number, patch: number];
  readonly profile: RuntimeProfile;
}

const UNKNOWN: RuntimeProfile = {
  name: 'unknown',
  sandboxEvents: [],
  containerEvents: [],
  announcesRemovedWithSandbox: false,
  lead: millis(0),
  subscription: 'unknown',
  why: 'nothing is known of how this runtime treats subscribers',
  sandboxEventsWithoutStatus: [],
  stoppedMayComeFirst: false,
  failedStartsUnannounced: false,
  streamingLists: false,
  notes: [],
};

const CONTAINERD: RuntimeProfile = {
  ...UNKNOWN,
  name: 'containerd-2',
  sandboxEvents: ALL,
  containerEvents: ALL,
  announcesRemovedWithSandbox: true,
  // A sandbox's DELETED is announced seconds before the sandbox leaves the list.
  lead: millis(10_000),
  subscription: 'safe',
  why: 'containerd 2 gives every subscriber every event',
  stoppedMayComeFirst: true,
  failedStartsUnannounced: true,
};

const CRIO: RuntimeProfile = {
  ...UNKNOWN,
  name: 'crio-1.33',
  // A sandbox's CREATED and DELETED are made while its status cannot be had, and are skipped.
  sandboxEvents: ['STARTED', 'STOPPED'],
  containerEvents: ALL,
  // Only RemoveContainer announces; what RemovePodSandbox takes along goes without a word.
  announcesRemovedWithSandbox: false,
  subscription: 'safe',
  why: 'CRI-O 1.33 and later give every subscriber every event',
  stoppedMayComeFirst: true,
};

const CRIO_STEALS: RuntimeProfile = {
  ...CRIO,
  subscription: 'steals',
  why: 'CRI-O before 1.28 gives each event to one subscriber only: we would take events from the kubelet',
};

const ISULAD: RuntimeProfile = {
  ...UNKNOWN,
  name: 'isulad-2.1.6',
  sandboxEvents: ALL,
  containerEvents: ALL,
  announcesRemovedWithSandbox: true,
  subscription: 'safe',
  why: 'iSulad keeps a queue for each subscriber',
  // It is made when the sandbox is gone already.
  sandboxEventsWithoutStatus: ['DELETED'],
  notes: ['without a subscriber no event is made at all'],
};

const NO_EVENTS = { sandboxEvents: [], containerEvents: [], subscription: 'impossible' } as const;

const rule = (runtime: RegExp, from: Rule['from'], profile: RuntimeProfile): Rule => ({
  runtime,
  from,
  profile,
});

const RULES: readonly Rule[] = [
  rule(/^containerd$/, [2, 4, 0], { ...CONTAINERD, name: 'containerd-2.4', streamingLists: true }),
  rule(/^containerd$/, [2, 0, 3], CONTAINERD),
  rule(/^containerd$/, [2, 0, 0], {
    ...CONTAINERD,
    name: 'containerd-2.0.0',
    notes: [
      'PodSandboxStatus has a timestamp without the statuses that it vouches for: a kubelet with EventedPLEG on sees no containers',
    ],
  }),
  rule(/^containerd$/, [1, 7, 0], {
    ...CONTAINERD,
    name: 'containerd-1.7',
    subscription: 'steals',
    why: 'containerd 1.7 gives each event to one subscriber only: we would take events from the kubelet',
    // It is made when the sandbox is gone already.
    sandboxEventsWithoutStatus: ['DELETED'],
    notes: [
      'a subscriber that leaves takes one more event with it',
      'while nobody listens the oldest 1000 events are kept, whatever their age, and the newer ones dropped',
    ],
  }),
  rule(/^containerd$/, [0, 0, 0], {
    ...CONTAINERD,
    ...NO_EVENTS,
    name: 'containerd-1.6',
    why: 'containerd before 1.7 has no event stream',
  }),
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
    notes: ['early patches announce a DELETED too when a container is stopped'],
  }),
  rule(/^cri-o$/, [0, 0, 0], {
    ...CRIO,
    ...NO_EVENTS,
    name: 'crio-1.25',
    why: 'CRI-O before 1.26 has no events',
  }),
  rule(/^iSulad$/i, [2, 1, 6], ISULAD),
  rule(/^iSulad$/i, [0, 0, 0], {
    ...ISULAD,
    ...NO_EVENTS,
    name: 'isulad-2.1.5',
    why: 'iSulad before 2.1.6 has no event stream',
  }),
  rule(/^docker$/, [0, 0, 0], {
    ...UNKNOWN,
    ...NO_EVENTS,
    name: 'cri-dockerd',
    why: 'cri-dockerd has no event stream',
  }),
];

/** Whether an event lacks a status that this runtime puts into it when all is well. */
export function lacksStatus(
  { containerEvents, sandboxEventsWithoutStatus }: RuntimeProfile,
  { type, hasSandboxStatus }: Pick<ReceivedEvent, 'type' | 'hasSandboxStatus'>,
): boolean {
  const name = EVENT_TYPES[type];
  if (hasSandboxStatus || name === undefined || !containerEvents.includes(name)) return false;
  return !sandboxEventsWithoutStatus.includes(name);
}

/** The profile of a runtime; the profile `unknown` where no rule fits. */
export function profileOf(runtime: RuntimeVersion): RuntimeProfile {
  const version = parseVersion(runtime.version);
  if (version === null) return UNKNOWN;
  const found = RULES.find((each) => each.runtime.test(runtime.name) && atLeast(version, each.from));
  return found?.profile ?? UNKNOWN;
}

function parseVersion(text: string): readonly [number, number, number] | null {
  const match = /^v?(\d{1,5})\.(\d{1,5})(?:\.(\d{1,5}))?/.exec(text);
  return match === null ? null : [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
}

function atLeast(version: Rule['from'], bound: Rule['from']): boolean {
  const differing = version.findIndex((part, i) => part !== bound[i]);
  return differing === -1 || (version[differing] ?? 0) > (bound[differing] ?? 0);
}
