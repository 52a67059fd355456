/*
 * What is known of each runtime and version: which events it announces, and what it does to those who subscribe.
 *
 * The policy for streams (`auto`) comes from how a runtime treats several subscribers: containerd 2 gives every
 * subscriber every event; containerd 1.7 gives each event to one of them, so that we would take events away from the
 * kubelet (containerd pkg/cri/server, one shared channel); CRI-O before 1.33 may crash when a subscriber leaves
 * (cri-o issue 9004). What is not known is not subscribed to.
 */
import type { EventType } from '../../evidence/record.ts';
import { millis } from '../../evidence/units.ts';
import type { PlegProfile } from '../pleg/profile.ts';

/** What Version said. */
export interface RuntimeVersion {
  readonly name: string;
  readonly version: string;
}

export interface RuntimeProfile extends PlegProfile {
  readonly name: string;
  /**
   * `safe`: subscribing harms nobody. `unsafe`: it takes events from the kubelet or may crash the runtime. `impossible`:
   * the runtime does not implement the stream. `unknown`: nobody knows.
   */
  readonly subscription: 'safe' | 'unsafe' | 'impossible' | 'unknown';
  /** Why, in words for the report. */
  readonly why: string;
}

const ALL: readonly EventType[] = ['CREATED', 'STARTED', 'STOPPED', 'DELETED'];
const NO_LEAD = millis(0);
/** containerd announces a sandbox's DELETED seconds before the sandbox leaves the list. */
const CONTAINERD_LEAD = millis(10_000);

interface Rule {
  readonly runtime: RegExp;
  /** The lowest version that the rule is for. Rules of one runtime stand in falling order. */
  readonly from: readonly [major: number, minor: number, patch: number];
  readonly profile: RuntimeProfile;
}

function containerd(
  name: string,
  from: Rule['from'],
  subscription: RuntimeProfile['subscription'],
  why: string,
): Rule {
  const events = subscription === 'impossible' ? [] : ALL;
  return {
    runtime: /^containerd$/,
    from,
    profile: {
      name,
      sandboxEvents: events,
      containerEvents: events,
      announcesRemovedWithSandbox: true,
      lead: CONTAINERD_LEAD,
      subscription,
      why,
    },
  };
}

function crio(
  name: string,
  from: Rule['from'],
  subscription: RuntimeProfile['subscription'],
  why: string,
): Rule {
  return {
    runtime: /^cri-o$/,
    from,
    profile: {
      name,
      // A sandbox's CREATED and DELETED are made while its status cannot be had, and are skipped.
      sandboxEvents: ['STARTED', 'STOPPED'],
      containerEvents: ALL,
      // Only RemoveContainer announces; what RemovePodSandbox takes along goes without a word.
      announcesRemovedWithSandbox: false,
      lead: NO_LEAD,
      subscription,
      why,
    },
  };
}

const RULES: readonly Rule[] = [
  containerd('containerd-2', [2, 0, 0], 'safe', 'containerd 2 gives every subscriber every event'),
  containerd(
    'containerd-1.7',
    [1, 7, 0],
    'unsafe',
    'containerd 1.7 gives each event to one subscriber only: we would take events from the kubelet',
  ),
  containerd('containerd-1.6', [0, 0, 0], 'impossible', 'containerd before 1.7 has no event stream'),
  crio('crio-1.33', [1, 33, 0], 'safe', 'CRI-O 1.33 and later give every subscriber every event'),
  crio('crio-1.28', [1, 28, 0], 'unsafe', 'CRI-O 1.28 to 1.32 may crash when a subscriber leaves'),
  crio(
    'crio-1.26',
    [0, 0, 0],
    'unsafe',
    'CRI-O before 1.28 gives each event to one subscriber only: we would take events from the kubelet',
  ),
  {
    runtime: /^iSulad$/i,
    from: [2, 1, 6],
    profile: {
      name: 'isulad-2.1.6',
      sandboxEvents: ALL,
      containerEvents: ALL,
      announcesRemovedWithSandbox: true,
      lead: NO_LEAD,
      subscription: 'safe',
      why: 'iSulad keeps a queue for each subscriber',
    },
  },
  {
    runtime: /^docker$/,
    from: [0, 0, 0],
    profile: {
      name: 'cri-dockerd',
      sandboxEvents: [],
      containerEvents: [],
      announcesRemovedWithSandbox: false,
      lead: NO_LEAD,
      subscription: 'impossible',
      why: 'cri-dockerd has no event stream',
    },
  },
];

const UNKNOWN: RuntimeProfile = {
  name: 'unknown',
  sandboxEvents: [],
  containerEvents: [],
  announcesRemovedWithSandbox: false,
  lead: NO_LEAD,
  subscription: 'unknown',
  why: 'nothing is known of how this runtime treats subscribers',
};

/** The profile of a runtime; the profile `unknown` where no rule fits. */
export function profileOf(runtime: RuntimeVersion): RuntimeProfile {
  const version = parseVersion(runtime.version);
  if (version === null) return UNKNOWN;
  const rule = RULES.find((each) => each.runtime.test(runtime.name) && atLeast(version, each.from));
  return rule?.profile ?? UNKNOWN;
}

/** What `--stream` says. */
export type StreamSetting = 'auto' | 'always' | 'never';

/** Whether to subscribe, and the state to report where not. */
export type Decision =
  | { readonly subscribe: true }
  | { readonly subscribe: false; readonly state: 'Off' | 'Unsafe' | 'Unsupported'; readonly why: string };

/**
 * The stream policy. `always` overrides only what is unknown: where subscribing is known to take events from the kubelet,
 * it would need the kubelet's own word that it does not listen.
 */
export function decide(setting: StreamSetting, profile: RuntimeProfile): Decision {
  if (setting === 'never') return { subscribe: false, state: 'Off', why: 'switched off by --stream never' };
  if (profile.subscription === 'impossible')
    return { subscribe: false, state: 'Unsupported', why: profile.why };
  if (profile.subscription === 'safe') return { subscribe: true };
  if (profile.subscription === 'unknown' && setting === 'always') return { subscribe: true };
  return { subscribe: false, state: 'Unsafe', why: profile.why };
}

function parseVersion(text: string): readonly [number, number, number] | null {
  const match = /^v?(\d{1,5})\.(\d{1,5})(?:\.(\d{1,5}))?/.exec(text);
  return match === null ? null : [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
}

function atLeast(version: Rule['from'], bound: Rule['from']): boolean {
  const differing = version.findIndex((part, i) => part !== bound[i]);
  return differing === -1 || (version[differing] ?? 0) > (bound[differing] ?? 0);
}
