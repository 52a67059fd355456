/*
 * Profiles: how a runtime of this name and version treats its events, lists and subscribers. Each entry follows the
 * runtime's sources and the observed behavior of real ones.
 */
import { status } from '@grpc/grpc-js';
import type { EventType } from '../../src/protocol/record.ts';

export interface Profile {
  /** The response of Version. */
  readonly runtimeName: string;
  readonly runtimeVersion: string;
  /**
   * How the stream treats its subscribers: `broadcast` sends every event to all, `steal` sends each event to exactly one,
   * `unimplemented` has no such call, `disabled` ends the call at once with status OK.
   */
  readonly stream: 'broadcast' | 'steal' | 'unimplemented' | 'disabled';
  /** The message of UNIMPLEMENTED. */
  readonly refusal: string;
  /** Fate of events without a subscriber. */
  readonly backlog: {
    readonly events: number;
    readonly ageMs: number;
    /** Whether events are kept whenever there is no subscriber, or only until the first subscription. */
    readonly when: 'alone' | 'never-subscribed';
  };
  /** Whether events are built while there is no subscriber. */
  readonly buildsAlone: boolean;
  /**
   * The effect of a subscriber that does not read: `freeze` blocks everything, including pod starts, after `events` more
   * events; `delay` delays the others, and events beyond `events` are lost; `steal` leaves its events to the others, and up
   * to `events` wait; `own-queue` has no effect on the others. `room` is how many events fit between the runtime and a
   * process that reads none.
   */
  readonly slow: {
    readonly effect: 'freeze' | 'delay' | 'steal' | 'own-queue';
    readonly events: number;
    readonly room: number;
  };
  /** A way to crash the runtime: an event for a subscriber that has just left, or a subscriber that leaves with unread events. */
  readonly crashesOnDisconnect: 'next-event' | 'unread-events' | null;
  /** How an orderly stop ends the streams before the socket closes; null where it does not. */
  readonly stopEndsStreams: { readonly code: status; readonly details: string } | null;
  /** The transitions that are announced at all. */
  readonly sandboxEvents: readonly EventType[];
  readonly containerEvents: readonly EventType[];
  /**
   * Whether RemovePodSandbox announces what it ends: the DELETED of its containers, the STOPPED of a running sandbox. The STOPPED of a
   * sandbox with a shared PID namespace is announced anyway: a process of its own ends.
   */
  readonly announcesSandboxRemoval: boolean;
  /** Whether a container that never ran gets a STOPPED when it is stopped or removed; elsewhere it is left as it is. */
  readonly stopsWhatNeverRan: boolean;
  /** The events that are announced of a restored container: everything, only its end, or all but its CREATED. */
  readonly restores: 'all' | 'end_only' | 'unknown';
  /**
   * The remains of a failed start. `containerd`: an exited container with `started_at` 0 or three equal times, and no event. `cri-o`: a STOPPED with
   * `started_at` = `created_at` and a later `finished_at`; the container is removed without a DELETED. `isulad`: an exited container with
   * `started_at` 0 and exit code 127, and no event.
   */
  readonly failedStart: 'containerd' | 'cri-o' | 'isulad';
  /** Whether a failed start may be UNKNOWN until it is stopped or removed, which then announces its STOPPED. */
  readonly failedStartsMayBeUnknown: boolean;
  /** Whether the STOPPED of a container that was killed for want of memory says so; elsewhere only later statuses do. */
  readonly stoppedShowsOom: boolean;
  /** Whether the CREATED of a sandbox is announced that then fails to start. */
  readonly announcesFailedSandbox: boolean;
  /** Whether a sandbox is listed as NOTREADY before it starts; its CREATED says so too. */
  readonly sandboxesListedBeforeStart: boolean;
  /** Whether `finished_at` is when the runtime noticed the exit; for exits while it was down its restart, with exit code 255. */
  readonly exitsDatedWhenNoticed: boolean;
  /** The probability that a STOPPED has a status of its own container that still says RUNNING. */
  readonly stoppedShownRunning: number;
  /** Whether StopContainer also announces a DELETED, although the container stays listed. */
  readonly stopAnnouncesDeleted: boolean;
  /** Whether a sandbox's DELETED is built while it is still listed; if not, the event has no sandbox status. */
  readonly sandboxDeletedWhileListed: boolean;
  /** Which container statuses an event has: those of its sandbox, or of every sandbox of its pod. */
  readonly statusesOf: 'sandbox' | 'pod';
  /** The timestamp in PodSandboxStatus; null where it has none. */
  readonly statusTimestamp: 'nanoseconds' | 'seconds' | null;
  /** Whether PodSandboxStatus has the container statuses. */
  readonly statusHasContainers: boolean;
  /** Items in one message of the streaming lists; null where they do not exist. */
  readonly listBatch: number | null;
  /** The largest message that it sends. */
  readonly maxSendBytes: number;
}

const ALL: readonly EventType[] = ['CREATED', 'STARTED', 'STOPPED', 'DELETED'];
const MIB = 1024 ** 2;
const EVER = Number.POSITIVE_INFINITY;
const NO_BACKLOG = { events: 0, ageMs: 0, when: 'alone' } as const;
/** Queued until the first subscriber; when the queue is full, new events are dropped. */
const ONE_THOUSAND_OLDEST = { events: 1000, ageMs: EVER, when: 'alone' } as const;
const FIVE_MINUTES = { events: EVER, ageMs: 300_000, when: 'alone' } as const;
const ONE_SHARED_QUEUE = { stream: 'steal', slow: { effect: 'steal', events: 1000, room: EVER } } as const;
const NO_STREAM = { stream: 'unimplemented', backlog: NO_BACKLOG } as const;
const NO_EVENTS = { stream: 'disabled', backlog: NO_BACKLOG } as const;

const containerd: Profile = {
  runtimeName: 'containerd',
  runtimeVersion: '2.1.9+unknown',
  stream: 'broadcast',
  refusal: 'method GetContainerEvents not implemented',
  backlog: FIVE_MINUTES,
  buildsAlone: true,
  slow: { effect: 'freeze', events: 100, room: 360 },
  crashesOnDisconnect: null,
  stopEndsStreams: null,
  sandboxEvents: ALL,
  containerEvents: ALL,
  announcesSandboxRemoval: true,
  stopsWhatNeverRan: false,
  restores: 'all',
  failedStart: 'containerd',
  failedStartsMayBeUnknown: false,
  stoppedShowsOom: false,
  announcesFailedSandbox: false,
  sandboxesListedBeforeStart: false,
  exitsDatedWhenNoticed: false,
  stoppedShownRunning: 0,
  stopAnnouncesDeleted: false,
  sandboxDeletedWhileListed: true,
  statusesOf: 'sandbox',
  statusTimestamp: null,
  statusHasContainers: false,
  listBatch: null,
  maxSendBytes: 16 * MIB,
};

const crio: Profile = {
  ...containerd,
  runtimeName: 'cri-o',
  runtimeVersion: '1.33.0',
  backlog: { events: 1000, ageMs: EVER, when: 'never-subscribed' },
  slow: { effect: 'delay', events: 1000, room: 102 },
  stopEndsStreams: { code: status.OK, details: '' },
  sandboxEvents: ['STARTED', 'STOPPED'],
  announcesSandboxRemoval: false,
  stopsWhatNeverRan: true,
  restores: 'end_only',
  failedStart: 'cri-o',
  stoppedShowsOom: true,
  statusesOf: 'pod',
  statusTimestamp: 'nanoseconds',
  statusHasContainers: true,
  maxSendBytes: 80 * MIB,
};

const containerd24: Profile = {
  ...containerd,
  runtimeVersion: '2.4.2',
  failedStartsMayBeUnknown: true,
  stoppedShowsOom: true,
  listBatch: 5000,
};

// Before 1.28 subscribers shared one channel; from 1.28 to 1.32 a race with a disconnect could crash the process. The
// timestamp was in seconds up to 1.31.0.
const crioStealing: Profile = {
  ...crio,
  ...ONE_SHARED_QUEUE,
  backlog: ONE_THOUSAND_OLDEST,
  statusTimestamp: 'seconds',
};
const crioCrashing: Profile = { ...crio, crashesOnDisconnect: 'next-event', statusTimestamp: 'seconds' };

const isulad: Profile = {
  ...containerd,
  runtimeName: 'iSulad',
  runtimeVersion: '2.1.6',
  refusal: 'Pod events is not enabled',
  backlog: NO_BACKLOG,
  buildsAlone: false,
  slow: { effect: 'own-queue', events: EVER, room: EVER },
  crashesOnDisconnect: 'unread-events',
  stopEndsStreams: { code: status.UNKNOWN, details: 'Event queue is shutdown' },
  // The STARTED of a sandbox is not sent: seven events for a whole pod with one container.
  sandboxEvents: ['CREATED', 'STOPPED', 'DELETED'],
  failedStart: 'isulad',
  stoppedShowsOom: true,
  announcesFailedSandbox: true,
  sandboxesListedBeforeStart: true,
  exitsDatedWhenNoticed: true,
  stoppedShownRunning: 4 / 17,
  sandboxDeletedWhileListed: false,
  statusTimestamp: 'nanoseconds',
  statusHasContainers: true,
};

export const PROFILES = {
  'containerd-1.6': { ...containerd, ...NO_STREAM, runtimeVersion: '1.6.20~ds1' },
  'containerd-1.7': {
    ...containerd,
    ...ONE_SHARED_QUEUE,
    runtimeVersion: '1.7.24~ds1',
    backlog: ONE_THOUSAND_OLDEST,
    sandboxDeletedWhileListed: false,
  },
  // Up to 2.0.2 PodSandboxStatus had a timestamp, but not the statuses that it is for.
  'containerd-2.0.0': { ...containerd, runtimeVersion: '2.0.0', statusTimestamp: 'nanoseconds' },
  'containerd-2.0': { ...containerd, runtimeVersion: '2.0.5' },
  'containerd-2.1': containerd,
  'containerd-2.3': { ...containerd, runtimeVersion: '2.3.7', stoppedShowsOom: true },
  'containerd-2.4': containerd24,
  // No such version was seen: one that restores pods and announces as little as the CRI allows.
  'containerd-restoring': { ...containerd24, runtimeVersion: '2.5.0', restores: 'unknown' },
  'crio-1.25': {
    ...crio,
    ...NO_EVENTS,
    runtimeVersion: '1.25.0',
    statusTimestamp: null,
    statusHasContainers: false,
  },
  // The first patches of 1.26 announced a DELETED whenever a container was stopped.
  'crio-1.26': { ...crioStealing, runtimeVersion: '1.26.0', stopAnnouncesDeleted: true },
  'crio-1.27': { ...crioStealing, runtimeVersion: '1.27.0' },
  'crio-1.28': { ...crioCrashing, runtimeVersion: '1.28.0' },
  'crio-1.29': { ...crioCrashing, runtimeVersion: '1.29.0' },
  'crio-1.30': { ...crioCrashing, runtimeVersion: '1.30.0' },
  'crio-1.31': { ...crioCrashing, runtimeVersion: '1.31.0' },
  'crio-1.32': { ...crioCrashing, runtimeVersion: '1.32.0', statusTimestamp: 'nanoseconds' },
  'crio-1.33': crio,
  'crio-1.33-disabled': { ...crio, ...NO_EVENTS, statusTimestamp: null, statusHasContainers: false },
  'crio-1.36': { ...crio, runtimeVersion: '1.36.0', listBatch: 3000 },
  'isulad-2.1.6': isulad,
  'isulad-disabled': { ...isulad, ...NO_STREAM, statusTimestamp: null, statusHasContainers: false },
  'cri-dockerd': { ...containerd, ...NO_STREAM, runtimeName: 'docker', runtimeVersion: '28.3.3' },
  unknown: {
    ...containerd,
    runtimeName: 'somethingd',
    runtimeVersion: '0.1.0',
    slow: { effect: 'own-queue', events: EVER, room: EVER },
  },
} as const satisfies Record<string, Profile>;

export type ProfileName = keyof typeof PROFILES;
export const PROFILE_NAMES = Object.keys(PROFILES) as ProfileName[];

/** A profile by its name, or a custom one. */
export const profileOf = (profile: ProfileName | Profile): Profile =>
  typeof profile === 'string' ? PROFILES[profile] : profile;
