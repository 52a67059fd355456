/*
 * Every mark, and where it is expected: in the long tests, within a number of schedules or histories, or elsewhere, in a test of its own.
 *
 * The types of the product say which marks there are, so that a new cause does not compile before it is here; marks.test.ts finds those that the
 * product has as text only.
 */
import type { UnobservableCause } from '../../src/agent/compare/unobservableReason.ts';
import type { ScrapeFailure } from '../../src/agent/observe/kubelet/scrapeError.ts';
import type { PodsStreamEnd } from '../../src/agent/observe/pods/podsStream.ts';
import type { SubscriptionState } from '../../src/agent/observe/stream/subscription.ts';
import type { UnbelievedClaim } from '../../src/controller/ingest/epoch.ts';
import type { REMOVAL_KINDS } from '../../src/controller/ingest/inbox.ts';
import type { UnstorableRecord } from '../../src/controller/ingest/recordValidation.ts';
import type { Rejection } from '../../src/controller/ingest/rejections.ts';
import type { FindingKind, GapScope, HangVerdict } from '../../src/protocol/record.ts';

export type Expectation =
  | { readonly in: 'torture' | 'histories'; readonly within: number }
  | { readonly in: 'elsewhere'; readonly test: string };
type Expectations = readonly Expectation[];

const torture = (within: number): Expectation => ({ in: 'torture', within });
const histories = (within: number): Expectation => ({ in: 'histories', within });
const elsewhere = (test: string): Expectations => [{ in: 'elsewhere', test: `${test}.test.ts` }];

/** CI tries 2,000 histories and 2 schedules; test-long a million, and 100. */
const always = [histories(2_000)];
const seldom = [histories(100_000)];
const inEach = [torture(2)];
const often = [torture(20)];
const sometimes = [torture(100)];

const FINDINGS: Readonly<Record<FindingKind, Expectations>> = {
  missed: always,
  late: always,
  out_of_order: always,
  stale: always,
  duplicate: always,
  spurious: always,
  unannounced: always,
  short_life: [...always, ...inEach],
  duplicate_container: always,
  regression: always,
  silent_stream: always,
  kubelet_late: [...always, ...often],
  unobservable: [...always, ...often],
};

const UNOBSERVABLE: Readonly<Record<UnobservableCause, Expectations>> = {
  stream_down: always,
  stream_gap: always,
  before_baseline: [...always, ...often],
  no_lower_bound: always,
  window_not_covered: always,
  exact_time_not_covered: seldom,
  clock_step: always,
  agent_stalled: always,
  reader_stalled: always,
  reader_overflow: always,
  malformed_event: always,
  unknown_event_type: elsewhere('src/agent/compare/eventProofs'),
  too_many_ids: elsewhere('src/agent/compare/memory'),
  may_have_ended_before: always,
  may_have_been_removed: always,
  may_have_been_restored: always,
  end_not_shown: [...always, ...often],
  start_failed: seldom,
  unconfirmed: elsewhere('src/agent/compare/unconfirmedEvents'),
  contradicted: always,
  spurious: seldom,
  listed_again: always,
  state_went_back: seldom,
};

type StreamCause =
  | Lowercase<Exclude<SubscriptionState, 'Connected' | 'Interrupted'>>
  | 'unproven'
  | 'broken'
  | 'agent_stalled'
  | 'reader_stalled'
  | 'malformed_event'
  | 'reader_overflow'
  | 'too_many_ids';
const SUBSCRIPTION = elsewhere('src/agent/observe/stream/subscription');

const STREAM_GAPS: Readonly<Record<StreamCause, Expectations>> = {
  unproven: inEach,
  broken: inEach,
  agent_stalled: sometimes,
  reader_stalled: sometimes,
  malformed_event: elsewhere('src/agent/observe/gaps'),
  reader_overflow: elsewhere('src/agent/observe/gaps'),
  too_many_ids: elsewhere('src/agent/observe/relister'),
  unsupported: SUBSCRIPTION,
  disabled: SUBSCRIPTION,
  unsafe: SUBSCRIPTION,
  off: SUBSCRIPTION,
};

const CLIENT = elsewhere('src/agent/observe/kubelet/client');
const CERTIFICATES = elsewhere('src/agent/observe/kubelet/certificates');
const SCRAPES: Readonly<Record<ScrapeFailure, Expectations>> = {
  Unreachable: CLIENT,
  Timeout: elsewhere('src/agent/observe/kubeletMonitor'),
  Tls: CLIENT,
  CertificateChanged: CERTIFICATES,
  Credentials: CLIENT,
  Unauthorized: CLIENT,
  Forbidden: CLIENT,
  Redirect: CLIENT,
  BadStatus: CLIENT,
  TooLarge: CLIENT,
  NotMetrics: CLIENT,
};

const PODS_WATCH = elsewhere('src/agent/observe/pods/podsWatch');
const KUBELET_STATUS_GAPS: Readonly<Record<PodsStreamEnd, Expectations>> = {
  closed_by_kubelet: often,
  kubelet_unavailable: inEach,
  kubelet_initializing: PODS_WATCH,
  unimplemented: PODS_WATCH,
  message_too_large: PODS_WATCH,
  malformed: PODS_WATCH,
  too_many_pods: PODS_WATCH,
  agent_stalled: sometimes,
  ended: PODS_WATCH,
};

const AGENT_ENDS = elsewhere('test/integration/agentEnds');
const HOW_AN_AGENT_ENDS = {
  stopped: often,
  suspended: AGENT_ENDS,
  died: inEach,
  rebooted: AGENT_ENDS,
  silent: AGENT_ENDS,
};

type RecordCause = UnstorableRecord['cause'];
const INGEST = elsewhere('test/integration/ingest');
const REFUSED_RECORDS: Readonly<Record<RecordCause, Expectations>> = {
  unreadable: INGEST,
  absurd_time: INGEST,
  expired: INGEST,
  refused_by_database: INGEST,
  timed_out: elsewhere('test/integration/hostileBatches'),
};

/** By scope; `seq` is what is lost of the spool or refused by the store. */
const GAPS: Readonly<Record<GapScope, Readonly<Record<string, Expectations>>>> = {
  stream: STREAM_GAPS,
  list: {
    slow: elsewhere('src/agent/observe/listGaps'),
    failed: often,
  },
  spool: { foreign_spool: often },
  agent: HOW_AN_AGENT_ENDS,
  kubelet: Object.fromEntries(Object.entries(SCRAPES).map(([name, where]) => [snakeCase(name), where])),
  kubelet_status: KUBELET_STATUS_GAPS,
  findings: { ...HOW_AN_AGENT_ENDS, first_lists: [...always, ...inEach] },
  seq: {
    ...REFUSED_RECORDS,
    over_quota: elsewhere('test/integration/rowQuota'),
    store_lost: sometimes,
    abandoned: elsewhere('test/integration/maintain'),
    spool_full: elsewhere('src/agent/spool/spool'),
    spool_unwritable: elsewhere('src/agent/spool/unwritableSpool'),
    spool_memory_full: elsewhere('src/agent/spool/disk'),
    spool_unreadable: often,
    spool_corrupt: often,
  },
};

const ATTRIBUTION = elsewhere('test/integration/attribution');
const HOSTILE_BATCHES = elsewhere('test/integration/hostileBatches');
const REJECTED: Readonly<Record<Rejection['reason'], Expectations>> = {
  not_json: inEach,
  not_a_batch: inEach,
  other_cluster: inEach,
  implausible_seq: HOSTILE_BATCHES,
  unknown_node: HOSTILE_BATCHES,
  over_quota: elsewhere('test/integration/rowQuota'),
  enrolment: ATTRIBUTION,
  not_signed: ATTRIBUTION,
  no_valid_key: ATTRIBUTION,
  bad_signature: ATTRIBUTION,
  attributed_epoch: ATTRIBUTION,
  other_node: ATTRIBUTION,
};

/** The claims of a batch that the controller does not believe. */
const UNBELIEVED: Readonly<Record<UnbelievedClaim, Expectations>> = {
  loss: often,
  incarnation: HOSTILE_BATCHES,
  successor: HOSTILE_BATCHES,
  time: HOSTILE_BATCHES,
};

/** The acknowledgements that an agent does not believe. */
const REFUSED_ACKS: Readonly<Record<string, Expectations>> = {
  never_written: inEach,
  not_signed: elsewhere('test/integration/forgedAcks'),
};

/** The kinds of input that are removed from an inbox unread, and what Redis does not let an agent do. */
const REMOVALS: Readonly<Record<(typeof REMOVAL_KINDS)[number], Expectations>> = {
  bad_id: inEach,
  oversized: inEach,
  bad_sign: inEach,
  stray_inbox: inEach,
};
const REFUSED: Readonly<Record<string, Expectations>> = { by_redis: inEach };

const SLOW_STATUSES = elsewhere('src/agent/observe/slowStatusSearch');
const HANGS: Readonly<Record<HangVerdict, Expectations>> = {
  container: SLOW_STATUSES,
  pod: SLOW_STATUSES,
  runtime: SLOW_STATUSES,
  none: SLOW_STATUSES,
  unknown: SLOW_STATUSES,
};

/** The later corrections of the store. `epoch_…`: why it closed one. */
const REPAIRS: Readonly<Record<string, Expectations>> = {
  gap_filled_at: INGEST,
  finding_resolved: [...always, ...sometimes],
  finding_overdue: often,
  epoch_released: often,
  epoch_store_lost: INGEST,
  epoch_abandoned: elsewhere('test/integration/maintain'),
};

function snakeCase(name: string): string {
  return name.replaceAll(/(?!^)[A-Z]/g, (c) => `_${c}`).toLowerCase();
}

const FAMILIES: Readonly<Record<string, Readonly<Record<string, Expectations>>>> = {
  finding: FINDINGS,
  unobservable: UNOBSERVABLE,
  rejected: { ...REJECTED, over_the_cap: inEach },
  removal: REMOVALS,
  refused: REFUSED,
  unbelieved: UNBELIEVED,
  'refused ack': REFUSED_ACKS,
  hang: HANGS,
  repair: REPAIRS,
  ...Object.fromEntries(Object.entries(GAPS).map(([scope, causes]) => [`gap ${scope}`, causes])),
};

/** By mark: its family and what it is called there. */
export const EXPECTED_MARKS: ReadonlyMap<string, Expectations> = new Map(
  Object.entries(FAMILIES).flatMap(([family, marks]) =>
    Object.entries(marks).map(([name, where]) => [`${family} ${name}`, where] as const),
  ),
);
