/*
 * Records: immutable facts that an agent observed.
 *
 *   record    one fact, addressed by (cluster, node, epoch, seq); its seq follows from its place in the batch
 *   object    the identity (pod, container, sandbox) of an id that records mention; sent in the same batch
 *   t         when the fact was established: microseconds since the start of the epoch, on the monotonic clock.
 *             The store adds the epoch's base, so the time of a record does not depend on when it is delivered.
 *
 * All times in a record count like `t`; durations are in microseconds. Every text and every list has a bound, because the
 * input comes from a socket that somebody else may own.
 */
import * as v from 'valibot';
import { MAX_ID_LENGTH, MAX_NAME_LENGTH } from './text.ts';
import { type Parsed, parse, text, uuid } from './validation.ts';

/** Event types by their number in the CRI. A number without a name is stored unchanged. */
export const EVENT_TYPES = ['CREATED', 'STARTED', 'STOPPED', 'DELETED'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/**
 * Why a container ended, in the words of the runtimes: containerd (internal/cri/server), CRI-O (server/container_status.go), and iSulad, which took
 * over Docker's. `Other` stands for any other word and for none: no table grows with
 * texts that a node invents. The store holds the position in this list, from 1.
 */
export const EXIT_REASONS = [
  'Completed',
  'Error',
  'OOMKilled',
  'seccomp killed',
  'StartError',
  'ContainerCannotRun',
  'Unknown',
  'Other',
] as const;

/** States of a container or sandbox, named as in the kubelet (kubelet pkg/kubelet/pleg/generic.go, plegContainerState). */
export const PLEG_STATES = ['non-existent', 'unknown', 'running', 'exited'] as const;
export type PlegState = (typeof PLEG_STATES)[number];

/** The events that a kubelet's Generic PLEG derives from a change (kubelet pkg/kubelet/pleg/pleg.go). */
export const PLEG_EVENTS = [
  'ContainerStarted',
  'ContainerDied',
  'ContainerRemoved',
  'ContainerChanged',
] as const;
export type PlegEvent = (typeof PLEG_EVENTS)[number];

export const FINDING_KINDS = [
  'missed',
  'late',
  'out_of_order',
  'stale',
  'duplicate',
  'spurious',
  'unannounced',
  'short_life',
  'duplicate_container',
  'regression',
  'silent_stream',
  'kubelet_late',
  'unobservable',
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

/** The version of the shape of a finding's `proof`. */
export const PROOF_VERSION = 1;

/**
 * The scope of a gap: `kubelet` its metrics, `kubelet_status` its own status of its pods. Only the store creates `seq` gaps.
 */
const GAP_SCOPES = [
  'stream',
  'list',
  'spool',
  'seq',
  'agent',
  'kubelet',
  'kubelet_status',
  'findings',
] as const;
export type GapScope = (typeof GAP_SCOPES)[number];

/** The watch of the kubelet's PodsAPI. `Absent`: this kubelet does not offer it; `Broken`: it did, and is tried again. */
export const PODS_API_STATES = ['Watching', 'Syncing', 'Absent', 'Broken'] as const;
export type PodsApiState = (typeof PODS_API_STATES)[number];

export const STREAM_STATES = [
  'Active',
  'Arming',
  'Silent',
  'Starved',
  'Interrupted',
  'Unsupported',
  'Disabled',
  'Unsafe',
  'Off',
] as const;
export type StreamState = (typeof STREAM_STATES)[number];

/** The modes of a kubelet's PLEG. Later agents may report more. */
export const MODES = [
  'Generic',
  'Starting',
  'Evented',
  'Fallback',
  'EventedHint',
  'HintDisabled',
  'Unknown',
] as const;
export type Mode = (typeof MODES)[number];

/** The longest free text (messages, reasons), in characters. */
const MAX_TEXT_LENGTH = 1024;
/** The longest proof, in characters of JSON. */
const MAX_PROOF_LENGTH = 16_384;

const id = v.pipe(text(MAX_ID_LENGTH), v.minLength(1));
const name = text(MAX_NAME_LENGTH);
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

/** The largest number of four bytes. */
export const MAX_INT4 = 2 ** 31 - 1;
const int4Count = v.pipe(count, v.maxValue(MAX_INT4));

/** The latest wall clock, in microseconds since 1970: the end of 2242. */
export const MAX_WALL = 8.64e15;

/** 400 days in microseconds: the furthest that a record's time may be from the start of its epoch. */
export const MAX_OFFSET = 400 * 86_400 * 1_000_000;
const at = v.pipe(v.number(), v.safeInteger(), v.minValue(-MAX_OFFSET), v.maxValue(MAX_OFFSET));
const duration = v.pipe(count, v.maxValue(MAX_OFFSET));
const window = v.strictObject({ from: at, to: at });
/** Nanoseconds since the Unix epoch as the runtime sent them: any int64, however absurd. */
const nanos = v.pipe(v.string(), v.regex(/^-?\d{1,19}$/));
const proof = v.pipe(
  v.record(v.string(), v.unknown()),
  v.check(
    (p) => isStorable(p),
    `is over ${MAX_PROOF_LENGTH} characters, is nested too deeply or contains a NUL character`,
  ),
);

function isStorable(value: object): boolean {
  try {
    const json = JSON.stringify(value);
    return json.length <= MAX_PROOF_LENGTH && !json.includes('\\u0000');
  } catch (error) {
    // JSON.parse accepts deeper nesting than JSON.stringify.
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** The identity of a container or sandbox id. For a sandbox `sandbox` is its own id and `container` is empty. */
export const ContainerIdentitySchema = v.strictObject({
  id,
  sandbox: text(MAX_ID_LENGTH),
  isSandbox: v.boolean(),
  podUid: name,
  namespace: name,
  pod: name,
  container: name,
  attempt: count,
});
export type ContainerIdentity = v.InferOutput<typeof ContainerIdentitySchema>;

const byte = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(255));

/**
 * How a container ended, as the status in an event says; no status is requested for it. It is what the runtime knew then: an OOM that it learns of
 * later is an `Error` with 137. `OOMKilled` is about the container, not its first process, which may go on and exit with 0. `code` is null where
 * the runtime does not know it; CRI-O then says -1.
 */
const ContainerExit = v.strictObject({ code: v.nullable(byte), reason: v.picklist(EXIT_REASONS) });
export type ContainerExit = v.InferOutput<typeof ContainerExit>;

const ContainerEventRecord = v.strictObject({
  type: v.literal('container_event'),
  /** When the stream reader received it. */
  t: at,
  containerId: id,
  /** The CRI's number of the type; see {@link EVENT_TYPES}. */
  eventType: byte,
  createdNs: nanos,
  isSandbox: v.boolean(),
  /** Created before our subscription: it can confirm an expected event and never supports a finding. */
  replayed: v.boolean(),
  hasSandboxStatus: v.boolean(),
  /** Absent unless the event carries a status of its container that says that it ended. */
  exit: v.optional(ContainerExit),
});

/** A state change found by a relist. It happened between `window.from` and `window.to`. */
const RelistChangeRecord = v.strictObject({
  type: v.literal('relist_change'),
  t: at,
  containerId: id,
  isSandbox: v.boolean(),
  window,
  oldState: v.picklist(PLEG_STATES),
  newState: v.picklist(PLEG_STATES),
});

/** A finding. The agent generates `findingId`, which is also its id in SQL and in the report. */
const FindingRecord = v.strictObject({
  type: v.literal('finding'),
  t: at,
  findingId: uuid,
  kind: v.picklist(FINDING_KINDS),
  eventType: v.nullable(v.picklist(EVENT_TYPES)),
  cause: text(64),
  /** Null for a finding about the stream as a whole. */
  containerId: v.nullable(id),
  window: v.nullable(window),
  /** The exact time, if known. */
  occurred: v.nullable(at),
  /** From the exact time (or `createdNs`) to receipt; null when it has no meaning. */
  lateness: v.nullable(count),
  delivery: v.nullable(count),
  /** The evidence for the finding; `v` is the version of its format. */
  proof,
});

/**
 * An earlier finding holds no more: the event that was missed was received after all, or the kubelet's status showed what was late. The
 * finding itself never changes.
 */
const FindingResolvedRecord = v.strictObject({
  type: v.literal('finding_resolved'),
  t: at,
  findingId: uuid,
  /** The cause of `kubelet_late`, where the runtime took back what it had shown: then the status never showed it. */
  cause: v.optional(v.literal('state_went_back')),
});

/**
 * The event of a container's start or stop is overdue. If a finding follows, it has the same id; meanwhile the controller
 * can watch for the pod status that the kubelet publishes.
 */
const EventOverdueRecord = v.strictObject({
  type: v.literal('event_overdue'),
  t: at,
  findingId: uuid,
  containerId: id,
  eventType: v.picklist(['STARTED', 'STOPPED']),
  /** The change happened between these two; `from` is null when no lower bound is known. */
  window: v.strictObject({ from: v.nullable(at), to: at }),
  occurred: v.nullable(at),
});

/** A subscription. Every record of a session repeats all that is known of it, so their order does not matter. */
const StreamSessionRecord = v.strictObject({
  type: v.literal('stream_session'),
  t: at,
  /** The number of the subscription in its epoch, from 1. */
  sessionNo: v.pipe(int4Count, v.minValue(1)),
  opened: at,
  armed: v.nullable(at),
  closed: v.nullable(at),
  /** The gRPC status it ended with, or a code of ours such as READER_ENDED. */
  code: v.nullable(text(64)),
  message: v.nullable(text(MAX_TEXT_LENGTH)),
  events: count,
  replayed: count,
});

/** A time that could not be observed. Sent when it opens (`to` null) and again when it closes, with the same `gapId`. */
const GapRecord = v.strictObject({
  type: v.literal('gap'),
  t: at,
  gapId: uuid,
  scope: v.picklist(GAP_SCOPES),
  cause: text(64),
  from: at,
  to: v.nullable(at),
});

/**
 * A change of the kubelet's PLEG mode between two scrapes, at `notBefore` and at `t`. To `Unknown` for want of scrapes: `t` is the last one.
 */
const ModeChangeRecord = v.strictObject({
  type: v.literal('mode_change'),
  t: at,
  notBefore: at,
  model: text(64),
  from: text(64),
  to: text(64),
  reason: text(64),
  proof,
});

/** Calls of one kind: their number, how many failed, their total duration. */
const CallTotals = v.strictObject({ calls: count, errors: count, sum: count });
export type CallTotals = v.InferOutput<typeof CallTotals>;

/**
 * The calls of the whole kubelet to its runtime between two scrapes, and its processor time. A call counts when it ends, so one that hangs is
 * missing.
 */
const KubeletCalls = v.strictObject({
  from: at,
  to: at,
  /** Total duration of its relists, failed ones included. */
  relistSum: count,
  /** ListPodSandbox, ListContainers, PodSandboxStatus and ContainerStatus. */
  sandboxLists: CallTotals,
  containerLists: CallTotals,
  sandboxStatuses: CallTotals,
  containerStatuses: CallTotals,
  /** A lower bound of the longest list. */
  longestList: count,
  /** Processor time of the whole kubelet; null where it does not report it. */
  cpu: v.nullable(count),
});
export type KubeletCalls = v.InferOutput<typeof KubeletCalls>;

/** One minute of the kubelet's own metrics. `hist` counts its relists by duration, in {@link KUBELET_RELIST_BOUNDS_MS}. */
const KubeletMinute = v.strictObject({
  /** The first and the last of its scrapes. */
  scraped: window,
  relists: count,
  hist: v.pipe(v.array(count), v.maxLength(64)),
  /** Relist intervals that it reported in the mode at the end of the minute: their number and their sum. */
  intervals: count,
  intervalSum: count,
  /** The greatest age of its last successful relist at a scrape. */
  lastSeenAge: v.nullable(count),
  discarded: v.nullable(count),
  /** Since the kubelet started. */
  streamErrors: v.nullable(count),
  listP99: v.nullable(count),
  /** Resident memory of the kubelet at the last scrape, in bytes. */
  resident: v.nullable(count),
  /** Absent when there was no earlier scrape to count from. */
  calls: v.optional(KubeletCalls),
});
export type KubeletMinute = v.InferOutput<typeof KubeletMinute>;

/** The two calls of a relist. */
export const LIST_CALLS = ['ListPodSandbox', 'ListContainers'] as const;
export type ListCallName = (typeof LIST_CALLS)[number];

/**
 * The cause of a list that hangs, as far as it is proven: the container or pod whose status does not answer while others do; the runtime, which
 * answers none; `none`: every status is answered. `unknown`: too few have been asked for.
 */
const HANG_VERDICTS = ['container', 'pod', 'runtime', 'none', 'unknown'] as const;
export type HangVerdict = (typeof HANG_VERDICTS)[number];

/** A list that was not answered within five seconds. Every minute of a hang repeats what is known of it. */
const ListHang = v.strictObject({
  call: v.picklist(LIST_CALLS),
  from: at,
  /** Null while it lasts. */
  to: v.nullable(at),
  /** How long the list was waited for, without the time in which the agent did not run. */
  waited: duration,
  /** `container` and `pod` mean the one that `slowest` names. */
  verdict: v.picklist(HANG_VERDICTS),
  /** Sandboxes and containers of the last relist that was answered. */
  listed: int4Count,
  /** Statuses that were asked for during the hang, how many were answered within a second, and how many have not been. */
  asked: int4Count,
  quick: int4Count,
  unanswered: int4Count,
});
export type ListHang = v.InferOutput<typeof ListHang>;

/** The statuses of sandboxes and containers that were asked for because relists were slow, to name the one that hangs. */
const MinuteStatuses = v.strictObject({
  /** How many there were, and how many of them took a second or longer. One that is not answered counts in each minute. */
  asked: int4Count,
  slow: int4Count,
  /** The slowest of those, or the one that a list waits for; null if none was slow. */
  slowest: v.nullable(
    v.strictObject({
      containerId: id,
      isSandbox: v.boolean(),
      /** When it was asked for, which may be in an earlier minute. */
      at,
      /** How long the answer took, or how long it was waited for. */
      took: duration,
      /** Whether it was not answered within five seconds. */
      timedOut: v.boolean(),
    }),
  ),
  /** Absent unless a list hung. */
  hang: v.optional(ListHang),
});
export type MinuteStatuses = v.InferOutput<typeof MinuteStatuses>;

/** Upper bounds of the buckets of kubelet lag, in milliseconds; one more bucket has no bound. */
export const KUBELET_LAG_BOUNDS_MS = [
  1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536,
] as const;
const lagCounts = v.pipe(v.array(int4Count), v.maxLength(KUBELET_LAG_BOUNDS_MS.length + 1));

/**
 * The starts and stops of containers that the kubelet's own status was seen to show, by how long that took at most, in
 * {@link KUBELET_LAG_BOUNDS_MS}. Empty buckets at the end are left out.
 */
const KubeletLagMinute = v.strictObject({ starts: lagCounts, stops: lagCounts });
export type KubeletLagMinute = v.InferOutput<typeof KubeletLagMinute>;

/**
 * For how long, of `span`, tasks of the node waited for processor, disk or memory: `some` at least one of them, `full` all that were not idle
 * (Linux Documentation/accounting/psi.rst). The kernel has no `full` of the processor for a whole node.
 */
const NodePressure = v.pipe(
  v.strictObject({
    span: int4Count,
    cpuSome: int4Count,
    ioSome: int4Count,
    ioFull: int4Count,
    memorySome: int4Count,
    memoryFull: int4Count,
  }),
  v.check(
    ({ span, ...waits }) => Object.values(waits).every((wait) => wait <= span),
    'is longer than its span',
  ),
);
export type NodePressure = v.InferOutput<typeof NodePressure>;

/**
 * The fields of `lists` of a minute for each relist: when its two calls began and ended, and when the last event was received that was compared
 * before it, in microseconds from the minute's `t` (at least -MAX_INT4); and flags: 1 the answer on sandboxes was incomplete, 2 that on containers
 * was, 4 the relist failed (both calls then have its begin and its end).
 */
export const LIST_FIELDS = [
  'sandboxesFrom',
  'sandboxesTo',
  'containersFrom',
  'containersTo',
  'flags',
  'eventsTo',
] as const;
export const LIST_FLAGS = { sandboxesPartial: 1, containersPartial: 2, failed: 4 } as const;
/** The number of relists, at most, whose times a minute has. */
export const MAX_LISTED = 1000;
const int4Offset = v.pipe(v.number(), v.integer(), v.minValue(-MAX_INT4), v.maxValue(MAX_INT4));

/**
 * One minute of relists. `hist` counts them by duration, in {@link RELIST_BOUNDS_MS}; `max` is the longest. `expected`,
 * `matched` and `unobservable` count transitions whose event was due. `span` is how long the minute lasted, `covered` how
 * much of it was covered.
 */
const RelistMinuteRecord = v.strictObject({
  type: v.literal('relist_minute'),
  /** When the minute began. */
  t: at,
  span: duration,
  /** The wall clock at the end of the minute, in microseconds since 1970. */
  wall: v.pipe(count, v.maxValue(MAX_WALL)),
  /** The times of its list calls; see {@link LIST_FIELDS}. Fewer than it had where these were too many. */
  lists: v.pipe(v.array(int4Offset), v.maxLength(MAX_LISTED * LIST_FIELDS.length)),
  relists: int4Count,
  errors: int4Count,
  max: duration,
  hist: v.pipe(v.array(count), v.maxLength(64)),
  /** The items in the last relist, how many of them had exited, and the sizes of its two answers. */
  sandboxes: int4Count,
  containers: int4Count,
  exitedSandboxes: int4Count,
  exitedContainers: int4Count,
  sandboxListBytes: int4Count,
  containerListBytes: int4Count,
  expected: int4Count,
  matched: int4Count,
  unobservable: int4Count,
  covered: duration,
  /** With the records until this one, everything that happened before then is decided: missed, unobservable, or its event came. */
  decided: at,
  /** Absent when the kubelet was not scraped, or did not answer. */
  kubelet: v.optional(KubeletMinute),
  /** Absent when none were asked for and no list hung. */
  statuses: v.optional(MinuteStatuses),
  /** Absent when the kubelet's status was not seen to show any start or stop. */
  kubeletLag: v.optional(KubeletLagMinute),
  /** Absent where the kernel does not report it. */
  pressure: v.optional(NodePressure),
});

/** The current state of the node. The record with the highest (incarnation, seq) wins. */
const NodeStateRecord = v.strictObject({
  type: v.literal('node_state'),
  t: at,
  stream: v.strictObject({
    state: v.picklist(STREAM_STATES),
    since: at,
    reason: text(MAX_TEXT_LENGTH),
    lastError: text(MAX_TEXT_LENGTH),
  }),
  /** Whether lists succeed. */
  relist: v.strictObject({ healthy: v.boolean(), reason: text(MAX_TEXT_LENGTH) }),
  model: text(64),
  mode: text(64),
  modeSince: at,
  modeReason: text(64),
  /** Errors of the kubelet's own event stream since the kubelet started; absent when it does not report them. */
  kubeletStreamErrors: v.optional(count),
  /** Why the last scrape of the kubelet failed, while that leaves its mode unknown. */
  kubeletError: v.optional(text(64)),
  /** Whether it is certain that this node's kubelet was scraped: `Verified`, `Unverified`, `NotChecked`; absent while its mode is not observed. */
  kubeletIdentity: v.optional(text(64)),
  /** Whether the kubelet's own status of its pods is watched, and why not; absent if that is switched off. */
  podsApi: v.optional(v.strictObject({ state: v.picklist(PODS_API_STATES), reason: text(64) })),
});

const RecordSchema = v.variant('type', [
  ContainerEventRecord,
  RelistChangeRecord,
  FindingRecord,
  FindingResolvedRecord,
  EventOverdueRecord,
  StreamSessionRecord,
  GapRecord,
  ModeChangeRecord,
  RelistMinuteRecord,
  NodeStateRecord,
]);

export type EvidenceRecord = v.InferOutput<typeof RecordSchema>;
export type RecordType = EvidenceRecord['type'];
export type RecordOf<K extends RecordType> = Extract<EvidenceRecord, { type: K }>;

/** Upper bounds of the relist duration buckets, in milliseconds; one more bucket has no bound. */
export const RELIST_BOUNDS_MS = [
  1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536,
] as const;

/** The kubelet's own buckets for its relists, in milliseconds (kubelet pkg/kubelet/metrics/metrics.go). */
export const KUBELET_RELIST_BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000] as const;

/** Checks one record from outside. The error names the field. */
export function parseRecord(input: unknown): Parsed<EvidenceRecord> {
  return parse(RecordSchema, input);
}
