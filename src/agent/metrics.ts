/*
 * The agent's metrics. None has a label per pod: their number would have no bound.
 */
import { Histogram } from 'prom-client';
import { CALL_CODES, CRI_CALLS } from '../cri/client.ts';
import { MetricSet } from '../platform/metricSet.ts';
import {
  EVENT_TYPES,
  type EvidenceRecord,
  FINDING_KINDS,
  RELIST_BOUNDS_MS,
  STREAM_STATES,
  type StreamState,
} from '../protocol/record.ts';
import { SCRAPE_FAILURES } from './observe/kubelet/client.ts';
import { MODES, type Mode } from './observe/kubelet/modeInference.ts';
import { RELIST_ERROR_CODES } from './observe/relister.ts';
import { SESSION_END_CODES } from './observe/stream/subscription.ts';

/** The causes of a missed event; see compare/unobservableReason.ts. */
const MISSED_CAUSES = ['unannounced_by_list', 'sequence', 'runtime_state_late'] as const;

/** A counter whose value is kept elsewhere. */
interface MirroredCounter {
  set(total: number): void;
}

export class AgentMetrics extends MetricSet {
  readonly #missed = this.counter('missed_events_total', 'Confirmed misses of the event stream.', {
    event_type: EVENT_TYPES,
    cause: MISSED_CAUSES,
  });
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
  readonly kubeletErrors = this.counter(
    'kubelet_scrape_errors_total',
    "Failed scrapes of the kubelet's metrics, by reason.",
    { reason: SCRAPE_FAILURES },
  );
  readonly #kubeletMode = this.gauge('kubelet_mode', "The kubelet's PLEG mode: 1 for the current one.", [
    'mode',
  ]);
  readonly spoolBytes = this.gauge('spool_bytes', 'Size of the spool.');
  readonly spoolInMemory = this.gauge('spool_in_memory', 'Whether the spool is kept in memory.');
  readonly spoolDropped = this.#mirroredCounter(
    'spool_dropped_records_total',
    'Records dropped before they were stored.',
  );
  readonly unackedRecords = this.gauge('unacked_records', 'Records that the store has not acknowledged.');
  readonly relistDuration = new Histogram({
    name: 'plegwatch_relist_duration_seconds',
    help: 'Duration of one relist, both list calls.',
    buckets: RELIST_BOUNDS_MS.map((ms) => ms / 1000),
    registers: [this.registry],
  });

  constructor() {
    super();
    this.setKubeletMode('Unknown');
    this.setStreamState(null);
    this.streamConnected.set(0);
  }

  setKubeletMode(mode: Mode): void {
    for (const each of MODES) this.#kubeletMode.set({ mode: each }, each === mode ? 1 : 0);
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
    return {
      set: (total) => {
        counter.reset();
        counter.inc(total);
      },
    };
  }
}
