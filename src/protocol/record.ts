/*
 * Records: the immutable facts that an agent observes.
 *
 *   record    one fact, addressed by (cluster, node, epoch, seq); its seq is its place in the batch that carries it
 *   object    the identity (pod, container, sandbox) of an id that records mention; it travels beside them
 *   t         when the fact was established: microseconds since the start of the epoch, on the monotonic clock.
 *             The store adds the epoch's base, so the time of a record is the same however often it is delivered.
 *
 * Every text and every list has a bound, because all of it comes from a socket that somebody else may own.
 */
import * as v from 'valibot';

/** Event types by their number in the CRI. A number without a name is kept as it came. */
export const EVENT_TYPES = ['CREATED', 'STARTED', 'STOPPED', 'DELETED'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** States of a container or sandbox in the kubelet's own words (kubelet pkg/kubelet/pleg/generic.go, plegContainerState). */
export const PLEG_STATES = ['non-existent', 'unknown', 'running', 'exited'] as const;
export type PlegState = (typeof PLEG_STATES)[number];

/** The events a kubelet's Generic PLEG makes of a change (kubelet pkg/kubelet/pleg/pleg.go). */
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
  'unobservable',
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

/** What a gap is about. `seq` gaps are made by the store, never by an agent. */
const GAP_SCOPES = ['stream', 'list', 'spool', 'seq', 'agent', 'kubelet'] as const;
export type GapScope = (typeof GAP_SCOPES)[number];

/** What the subscription to the runtime's events is doing. */
export const STREAM_STATES = [
  'Active',
  'Arming',
  'Silent',
  'Interrupted',
  'Unsupported',
  'Disabled',
  'Unsafe',
  'Off',
] as const;
export type StreamState = (typeof STREAM_STATES)[number];

/** The longest container or sandbox id that is accepted; runtimes use 64 hexadecimal digits. */
export const MAX_ID_LENGTH = 256;
/** The longest name (pod, namespace, container) that is accepted; the API server allows 253. */
export const MAX_NAME_LENGTH = 512;
/** The longest free text (messages, reasons) that is kept. */
const MAX_TEXT_LENGTH = 1024;
/** The largest proof, as JSON. */
const MAX_PROOF_LENGTH = 16_384;

// NUL is legal in JSON and in a protobuf string, and cannot be stored in a Postgres text.
const noNul = v.check((s: string) => !s.includes('\0'), 'contains a NUL character');
const text = (max: number) => v.pipe(v.string(), v.maxLength(max), noNul);
const id = v.pipe(v.string(), v.minLength(1), v.maxLength(MAX_ID_LENGTH), noNul);
const name = text(MAX_NAME_LENGTH);
const uuid = v.pipe(v.string(), v.uuid());
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

/** 400 days in microseconds: no epoch lives longer, and no record may claim to be further from its start. */
export const MAX_OFFSET = 400 * 86_400 * 1_000_000;
const at = v.pipe(v.number(), v.safeInteger(), v.minValue(-MAX_OFFSET), v.maxValue(MAX_OFFSET));
const window = v.strictObject({ from: at, to: at });
/** Nanoseconds since the Unix epoch as the runtime wrote them: any int64, absurd ones included. */
const nanos = v.pipe(v.string(), v.regex(/^-?\d{1,19}$/));
const proof = v.pipe(
  v.record(v.string(), v.unknown()),
  v.check(
    (p) => isProof(p),
    `is over ${MAX_PROOF_LENGTH} characters, is nested too deeply or contains a NUL character`,
  ),
);

function isProof(value: object): boolean {
  try {
    const json = JSON.stringify(value);
    return json.length <= MAX_PROOF_LENGTH && !json.includes('\\u0000');
  } catch (error) {
    // What a parser read may be nested deeper than it can be written.
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

/** A CRI event, as it was received. */
const ContainerEventRecord = v.strictObject({
  type: v.literal('container_event'),
  /** When the reader took it from the socket. */
  t: at,
  containerId: id,
  /** The CRI's number of the type; see {@link EVENT_TYPES}. */
  eventType: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(255)),
  createdNs: nanos,
  isSandbox: v.boolean(),
  /** Built before our subscription: it discharges an expectation and never supports an accusation. */
  replayed: v.boolean(),
  hasSandboxStatus: v.boolean(),
});

/** A state transition that a relist found. It became true somewhere between `window.from` and `window.to`. */
const RelistChangeRecord = v.strictObject({
  type: v.literal('relist_change'),
  t: at,
  containerId: id,
  isSandbox: v.boolean(),
  window,
  oldState: v.picklist(PLEG_STATES),
  newState: v.picklist(PLEG_STATES),
});

/** A verdict. `finding` is minted by the agent and is the row's id in SQL and in the report. */
const FindingRecord = v.strictObject({
  type: v.literal('finding'),
  t: at,
  findingId: uuid,
  kind: v.picklist(FINDING_KINDS),
  eventType: v.nullable(v.picklist(EVENT_TYPES)),
  cause: text(64),
  /** Null for a verdict on the stream as a whole. */
  containerId: v.nullable(id),
  window: v.nullable(window),
  /** The exact time where it is known. */
  occurred: v.nullable(at),
  /** True time (or `created_at`) to receipt, in microseconds; null where it means nothing. */
  lateness: v.nullable(count),
  delivery: v.nullable(count),
  /** What the verdict rests on; `v` is the version of its shape. */
  proof,
});

/** Something learnt about an earlier finding; the finding itself is never changed. */
const FindingResolvedRecord = v.strictObject({
  type: v.literal('finding_resolved'),
  t: at,
  findingId: uuid,
  what: v.picklist(['resolved']),
});

/**
 * The event of a container's start or end has not come for the grace. The finding about it that follows, if one does, has the
 * same id; what the kubelet publishes of it can be looked at meanwhile.
 */
const EventOverdueRecord = v.strictObject({
  type: v.literal('event_overdue'),
  t: at,
  findingId: uuid,
  containerId: id,
  eventType: v.picklist(['STARTED', 'STOPPED']),
  /** It became true between these two; `from` is null where no lower bound is known. */
  window: v.strictObject({ from: v.nullable(at), to: at }),
  /** The exact time where it is known. */
  occurred: v.nullable(at),
});

/** A subscription. Each record of one session repeats all that is known of it, so order does not matter. */
const StreamSessionRecord = v.strictObject({
  type: v.literal('stream_session'),
  t: at,
  /** Counts the subscriptions of this epoch from 1. */
  sessionNo: v.pipe(count, v.minValue(1)),
  opened: at,
  armed: v.nullable(at),
  closed: v.nullable(at),
  /** The gRPC status name it ended with, or a name of ours such as READER_KILLED. */
  code: v.nullable(text(64)),
  message: v.nullable(text(MAX_TEXT_LENGTH)),
  events: count,
  replayed: count,
});

/** A stretch that could not be observed. Sent once when it opens (`to` null) and once when it closes; same `gap`. */
const GapRecord = v.strictObject({
  type: v.literal('gap'),
  t: at,
  gapId: uuid,
  scope: v.picklist(GAP_SCOPES),
  cause: text(64),
  from: at,
  to: v.nullable(at),
});

/** A change of the kubelet's PLEG mode, bounded by the two scrapes around it. */
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

/**
 * What a kubelet's own calls to its runtime took, between two looks at it. A call counts when it ends, so one that hangs is not
 * among them yet. Lengths are in microseconds.
 */
const KubeletCalls = v.strictObject({
  from: at,
  to: at,
  /** Its relists, those that failed too, together. */
  relistSum: count,
  /** ListPodSandbox and ListContainers, whoever in the kubelet asked: how many, how many in vain, and how long together. */
  lists: count,
  listErrors: count,
  listSum: count,
  /** One of them took at least this long. */
  longestList: count,
  /** PodSandboxStatus and ContainerStatus, together. */
  statusSum: count,
});
export type KubeletCalls = v.InferOutput<typeof KubeletCalls>;

/**
 * What the kubelet said of itself in a minute. `hist` counts its relists by duration in the buckets of
 * {@link KUBELET_RELIST_BOUNDS_MS}; lengths are in microseconds.
 */
const KubeletMinute = v.strictObject({
  relists: count,
  hist: v.pipe(v.array(count), v.maxLength(64)),
  /** Times between two relists that it told in the mode in which the minute ended, and their sum. */
  intervals: count,
  intervalSum: count,
  /** How old its last successful relist was at most, when it was asked. */
  lastSeenAge: v.nullable(count),
  discarded: v.nullable(count),
  /** Since it started. */
  streamErrors: v.nullable(count),
  listP99: v.nullable(count),
  /** Absent where there was no look before to count from. */
  calls: v.optional(KubeletCalls),
});
export type KubeletMinute = v.InferOutput<typeof KubeletMinute>;

/**
 * One minute of figures. `hist` counts relists by duration in the buckets of {@link RELIST_BOUNDS_MS}. The figures of the
 * comparison (`expected`, `matched`, `unobservable`) count transitions that were due. `span` is how long the figures were
 * gathered, `covered` how much of that was covered; both, like `max`, in microseconds.
 */
const RelistMinuteRecord = v.strictObject({
  type: v.literal('relist_minute'),
  /** When the gathering began. */
  t: at,
  span: count,
  relists: count,
  errors: count,
  max: count,
  hist: v.pipe(v.array(count), v.maxLength(64)),
  sandboxes: count,
  containers: count,
  bytes: count,
  expected: count,
  matched: count,
  unobservable: count,
  covered: count,
  /** Absent where the kubelet was not asked, or did not answer. */
  kubelet: v.optional(KubeletMinute),
});

/** The present state of the node. The one with the highest (life, seq) wins. */
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
  /** Of the kubelet's own event stream since the kubelet started; absent where it does not tell. */
  kubeletStreamErrors: v.optional(count),
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
/** The record of one kind. */
export type RecordOf<K extends RecordType> = Extract<EvidenceRecord, { type: K }>;

/** Upper bounds of the relist duration buckets, in milliseconds; the last bucket has no bound. */
export const RELIST_BOUNDS_MS = [
  1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536,
] as const;

/** The same of a kubelet's relists: its own buckets (kubelet pkg/kubelet/metrics/metrics.go). */
export const KUBELET_RELIST_BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000] as const;

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: string };

/** Checks one record from outside. The problem names the field. */
export function parseRecord(input: unknown): Parsed<EvidenceRecord> {
  return parse(RecordSchema, input);
}

/** Checks a value against a schema; the first problem is told with the path of its field. */
export function parse<S extends v.GenericSchema>(schema: S, input: unknown): Parsed<v.InferOutput<S>> {
  const result = v.safeParse(schema, input, { abortEarly: true });
  if (result.success) return { ok: true, value: result.output };
  const issue = result.issues[0];
  const path = v.getDotPath(issue) ?? '(whole)';
  return { ok: false, problem: `${path}: ${issue.message}`.replaceAll('\0', '\\0').slice(0, 300) };
}
