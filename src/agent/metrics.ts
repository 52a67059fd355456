/*
 * The agent's metrics. None has a label per pod: their number would have no bound.
 */
import { Histogram } from 'prom-client';
import { CALL_CODES, CRI_CALLS } from '../cri/client.ts';
import { MetricSet } from '../platform/metricSet.ts';
import { FALLBACK_CONSEQUENCES, type FallbackConsequence } from '../protocol/fallback.ts';
import {
  EVENT_TYPES,
  type EvidenceRecord,
  FINDING_KINDS,
  LIST_CALLS,
  MODES,
  type Mode,
  PODS_API_STATES,
  type PodsApiState,
  RELIST_BOUNDS_MS,
  STREAM_STATES,
  type StreamState,
} from '../protocol/record.ts';
import { KUBELET_IDENTITIES, type KubeletIdentity } from './observe/kubelet/identity.ts';
import { SCRAPE_FAILURES } from './observe/kubelet/scrapeError.ts';
import { POD_QUERY_RESULTS } from './observe/pods/podQueries.ts';
import { PODS_STREAM_ENDS } from './observe/pods/podsStream.ts';
import { RELIST_ERROR_CODES } from './observe/relister.ts';
import { type KnownHang, TIMED_STATUSES } from './observe/slowStatusSearch.ts';
import { SESSION_END_CODES } from './observe/stream/subscription.ts';

/** The causes of a missed event; see compare/unobservableReason.ts. */
const MISSED_CAUSES = ['unannounced_by_list', 'sequence', 'runtime_state_late'] as const;

interface MirroredCounter {
  set(total: number): void;
  /** Figures kept elsewhere start at 0 again; the counter goes on. */
  carry(): void;
}

export class AgentMetrics extends MetricSet {
  readonly #mirrored: MirroredCounter[] = [];
  /** True at first, so that every series exists. */
  #showsListHang = true;
  readonly #missed = this.counter(
    'missed_events_total',
    'Events that were due and not delivered to the agent.',
    {
      event_type: EVENT_TYPES,
      cause: MISSED_CAUSES,
    },
  );
  readonly #findings = this.counter('findings_total', 'Findings by kind.', { kind: FINDING_KINDS });
  readonly #events = this.counter('events_received_total', 'Events received from the runtime.', {
    event_type: [...EVENT_TYPES, 'UNKNOWN'],
  });
  readonly streamErrors = this.counter('stream_errors_total', 'Event streams that ended, by reason.', {
    code: [...CALL_CODES, ...SESSION_END_CODES],
  });
  readonly readerDropped = this.counter(
    'reader_dropped_events_total',
    'Events that the reader dropped without keeping even a digest.',
  );
  readonly eventsWithoutStatus = this.counter(
    'events_without_status_total',
    'Events without the sandbox status that this runtime normally includes.',
  );
  readonly malformed = this.counter(
    'malformed_messages_total',
    'Messages from the runtime, and items of its lists, that could not be decoded.',
    { call: CRI_CALLS },
  );
  readonly relistErrors = this.counter('relist_errors_total', 'Relists that failed, by reason.', {
    code: [...CALL_CODES, ...RELIST_ERROR_CODES],
  });
  readonly timedStatuses = this.counter(
    'timed_statuses_total',
    'Statuses that were asked for because relists were slow, by how long they took.',
    { result: TIMED_STATUSES },
  );
  readonly #listHang = this.gauge(
    'list_hang_seconds',
    'How long the list that hangs has been waited for, by what holds it up; 0 while none hangs.',
    ['call', 'verdict'],
  );
  readonly streamConnected = this.gauge('stream_connected', 'Whether the event stream is connected.');
  readonly #streamState = this.gauge('stream_state', 'State of the event stream: 1 for the current one.', [
    'state',
  ]);
  readonly pendingEvents = this.gauge(
    'pending_events',
    'Transitions whose event is neither received nor judged yet.',
  );
  readonly trackedContainers = this.gauge(
    'tracked_containers',
    'Containers and sandboxes that are tracked: present ones, and those that ended or were last seen less than 15 minutes ago.',
  );
  readonly untrackedContainers = this.#mirroredCounter(
    'untracked_containers_total',
    'Containers and sandboxes that were seen and not tracked because of the limit; counted each time one is seen.',
  );
  readonly overdueSuppressed = this.#mirroredCounter(
    'overdue_suppressed_total',
    'Overdue starts and stops that were not reported because of the rate limit.',
  );
  readonly kubeletLateSuppressed = this.#mirroredCounter(
    'kubelet_late_suppressed_total',
    "Starts and stops that the kubelet's own status showed late, and that were not reported because of the rate limit.",
  );
  readonly podsApiNotBrought = this.#mirroredCounter(
    'pods_api_not_brought_total',
    "Starts and stops in the kubelet's own status that the watch of its PodsAPI did not report.",
  );
  readonly podsApiUnobservedPods = this.#mirroredCounter(
    'pods_api_unobserved_pods_total',
    "Reports of the kubelet's PodsAPI on a pod that was left out because of the limits.",
  );
  readonly kubeletErrors = this.counter(
    'kubelet_scrape_errors_total',
    "Failed scrapes of the kubelet's metrics, by reason.",
    { reason: SCRAPE_FAILURES },
  );
  readonly #kubeletIdentity = this.gauge(
    'kubelet_identity',
    "How sure it is that this node's kubelet answered the last scrape: 1 for the current one.",
    ['identity'],
  );
  readonly #kubeletMode = this.gauge('kubelet_mode', "The kubelet's PLEG mode: 1 for the current one.", [
    'mode',
  ]);
  readonly #kubeletFallback = this.gauge(
    'kubelet_fallback',
    'What it means in its version that the kubelet gave up its event stream: 1 for what holds now, all 0 while it has not.',
    ['consequence'],
  );
  readonly #podsApiState = this.gauge(
    'pods_api_state',
    "Whether the kubelet's own status of its pods is watched: 1 for the current state, none if that is switched off.",
    ['state'],
  );
  readonly podsApiMessages = this.counter(
    'pods_api_messages_total',
    "Messages from the watch of the kubelet's PodsAPI.",
  );
  readonly podsApiMalformed = this.counter(
    'pods_api_malformed_messages_total',
    "Messages of the kubelet's PodsAPI that could not be decoded.",
  );
  readonly podsApiEnds = this.counter(
    'pods_api_ends_total',
    "Watches of the kubelet's PodsAPI that ended or could not begin, by reason.",
    { cause: PODS_STREAM_ENDS },
  );
  readonly podQueries = this.counter(
    'pod_queries_total',
    'Pods that the kubelet was to be asked for because it had not shown a start or stop in time, by result.',
    { result: POD_QUERY_RESULTS },
  );
  readonly spoolBytes = this.gauge('spool_bytes', 'Size of the spool.');
  readonly spoolMaxBytes = this.gauge('spool_max_bytes', 'Size that the spool may have.');
  readonly spoolUnackedBytes = this.gauge(
    'spool_unacked_bytes',
    'Size of the parts of the spool with records that the store has not acknowledged.',
  );
  readonly spoolFailing = this.gauge('spool_failing', 'Whether records cannot be written to the disk.');
  readonly spoolInMemory = this.gauge('spool_in_memory', 'Whether the spool is kept in memory.');
  readonly spoolDropped = this.#mirroredCounter(
    'spool_dropped_records_total',
    'Records dropped before they were stored.',
  );
  readonly unackedRecords = this.gauge('unacked_records', 'Records that the store has not acknowledged.');
  readonly oldestUnackedAge = this.gauge(
    'oldest_unacked_age_seconds',
    'For how long the oldest record that the store has not acknowledged has waited for it.',
  );
  readonly nodeKeyValid = this.gauge(
    'node_key_valid_seconds',
    'For how long the key that this node signs with is still valid; 0 if none is enrolled, NaN if the agent enrols none.',
  );
  readonly refusedAcks = this.#mirroredCounter(
    'refused_acks_total',
    'Acknowledgements that were not believed.',
  );
  readonly listBytes = this.gauge('list_bytes', 'Size of the last answer of each list.', ['list']);
  readonly relistDuration = new Histogram({
    name: 'plegwatch_relist_duration_seconds',
    help: 'Duration of one relist, both list calls.',
    buckets: RELIST_BOUNDS_MS.map((ms) => ms / 1000),
    registers: [this.registry],
  });

  constructor() {
    super();
    this.observesNothing();
  }

  /** Before the first epoch, and between two of them. */
  observesNothing(): void {
    this.setKubeletMode('Unknown', null);
    this.setKubeletIdentity(null);
    this.setStreamState(null);
    this.setPodsApiState(null);
    this.setListHang(null);
    for (const gauge of [this.streamConnected, this.pendingEvents, this.trackedContainers]) gauge.set(0);
  }

  /** Another epoch begins, whose totals start at 0. */
  carryTotals(): void {
    for (const counter of this.#mirrored) counter.carry();
  }

  /** Null if no scrape succeeded: then every series is 0. */
  setKubeletIdentity(identity: KubeletIdentity | null): void {
    for (const each of KUBELET_IDENTITIES)
      this.#kubeletIdentity.set({ identity: each }, each === identity ? 1 : 0);
  }

  setKubeletMode(mode: Mode, consequence: FallbackConsequence | null): void {
    for (const each of MODES) this.#kubeletMode.set({ mode: each }, each === mode ? 1 : 0);
    for (const each of FALLBACK_CONSEQUENCES)
      this.#kubeletFallback.set({ consequence: each }, each === consequence ? 1 : 0);
  }

  /** Null while the kubelet's pods are not to be watched: then every series is 0. */
  setPodsApiState(state: PodsApiState | null): void {
    for (const each of PODS_API_STATES) this.#podsApiState.set({ state: each }, each === state ? 1 : 0);
  }

  /** Null while no list hangs: then there is one series for each call, which is 0. */
  setListHang(hang: KnownHang | null): void {
    if (hang === null && !this.#showsListHang) return;
    this.#showsListHang = hang !== null;
    this.#listHang.reset();
    for (const call of LIST_CALLS) this.#listHang.set({ call, verdict: 'unknown' }, 0);
    if (hang !== null) this.#listHang.set({ call: hang.call, verdict: hang.verdict }, hang.waited / 1e6);
  }

  /** Null before the subscription has any state: then every series is 0. */
  setStreamState(state: StreamState | null): void {
    for (const each of STREAM_STATES) this.#streamState.set({ state: each }, each === state ? 1 : 0);
  }

  /** Counts an event or a finding; other records have no metric. */
  count(record: EvidenceRecord): void {
    if (record.type === 'container_event')
      this.#events.inc({ event_type: EVENT_TYPES[record.eventType] ?? 'UNKNOWN' });
    if (record.type !== 'finding') return;
    this.#findings.inc({ kind: record.kind });
    if (record.kind === 'missed')
      this.#missed.inc({ event_type: record.eventType ?? 'UNKNOWN', cause: record.cause });
  }

  #mirroredCounter(name: string, help: string): MirroredCounter {
    const counter = this.counter(name, help);
    let before = 0;
    let last = 0;
    const mirrored = {
      set: (total: number) => {
        last = total;
        counter.reset();
        counter.inc(before + total);
      },
      carry: () => {
        before += last;
        last = 0;
      },
    };
    this.#mirrored.push(mirrored);
    return mirrored;
  }
}
