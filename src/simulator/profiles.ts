/*
 * Profiles: what a runtime of this name and version does with its events. One entry per runtime; a new one is a line in
 * the table. The facts behind each entry are the runtimes' own sources and what real ones did.
 */
import type { EventType } from '../evidence/record.ts';

export interface Profile {
  /** What Version answers. */
  readonly runtimeName: string;
  readonly runtimeVersion: string;
  /**
   * How the stream treats its subscribers: `broadcast` all get everything, `steal` each event goes to exactly one,
   * `unimplemented` the call does not exist, `disabled` the call ends at once with status OK.
   */
  readonly stream: 'broadcast' | 'steal' | 'unimplemented' | 'disabled';
  /** What happens to events that nobody is subscribed to. */
  readonly backlog: {
    readonly events: number;
    readonly ageMs: number;
    /** Whether it is kept whenever nobody listens, or only until somebody listened once. */
    readonly when: 'alone' | 'never-subscribed';
  };
  /** The transitions that are announced at all. */
  readonly sandboxEvents: readonly EventType[];
  readonly containerEvents: readonly EventType[];
  /** Whether RemovePodSandbox announces the containers that it removes on its way. */
  readonly removalAnnouncesContainers: boolean;
  /** Whether a sandbox's DELETED is built while it is still listed; if not, it carries no sandbox status. */
  readonly sandboxDeletedWhileListed: boolean;
  /** Whose statuses an event carries: those of its sandbox, or of every sandbox of its pod. */
  readonly statusesOf: 'sandbox' | 'pod';
  /** Whether PodSandboxStatus carries a timestamp and the containers' statuses. */
  readonly statusIsComplete: boolean;
}

const ALL: readonly EventType[] = ['CREATED', 'STARTED', 'STOPPED', 'DELETED'];
const NO_BACKLOG = { events: 0, ageMs: 0, when: 'alone' } as const;
/** Queued until somebody comes, the oldest first and the newest dropped when full, whatever their age. */
const ONE_THOUSAND_OLDEST = { events: 1000, ageMs: Number.POSITIVE_INFINITY, when: 'alone' } as const;
const FIVE_MINUTES = { events: Number.POSITIVE_INFINITY, ageMs: 300_000, when: 'alone' } as const;

const containerd: Profile = {
  runtimeName: 'containerd',
  runtimeVersion: '2.1.9+unknown',
  stream: 'broadcast',
  backlog: FIVE_MINUTES,
  sandboxEvents: ALL,
  containerEvents: ALL,
  removalAnnouncesContainers: true,
  sandboxDeletedWhileListed: true,
  statusesOf: 'sandbox',
  statusIsComplete: false,
};

const crio: Profile = {
  ...containerd,
  runtimeName: 'cri-o',
  runtimeVersion: '1.33.0',
  backlog: { events: 1000, ageMs: Number.POSITIVE_INFINITY, when: 'never-subscribed' },
  sandboxEvents: ['STARTED', 'STOPPED'],
  removalAnnouncesContainers: false,
  statusesOf: 'pod',
  statusIsComplete: true,
};

const silent = { stream: 'unimplemented', backlog: NO_BACKLOG } as const;

export const PROFILES = {
  'containerd-2.1': containerd,
  'containerd-1.7': {
    ...containerd,
    runtimeVersion: '1.7.24~ds1',
    stream: 'steal',
    backlog: ONE_THOUSAND_OLDEST,
    sandboxDeletedWhileListed: false,
  },
  'containerd-1.6': { ...containerd, runtimeVersion: '1.6.20~ds1', ...silent },
  'crio-1.33': crio,
  'crio-1.33-disabled': { ...crio, stream: 'disabled', backlog: NO_BACKLOG },
  'cri-dockerd': { ...containerd, runtimeName: 'docker', runtimeVersion: '28.3.3', ...silent },
  unknown: { ...containerd, runtimeName: 'somethingd', runtimeVersion: '0.1.0' },
} as const satisfies Record<string, Profile>;

export type ProfileName = keyof typeof PROFILES;
export const PROFILE_NAMES = Object.keys(PROFILES) as ProfileName[];
