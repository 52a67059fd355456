/*
 * The agent's metrics. No labels per pod: their number would have no bound.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { EVENT_TYPES, type EvidenceRecord, RELIST_BOUNDS_MS } from '../protocol/record.ts';
import { MODES, type Mode } from './observe/kubelet/modeInference.ts';

/** Takes over a count as it stands. */
export interface Tally {
  set(total: number): void;
}

export class AgentMetrics {
  readonly registry = new Registry();
  readonly #missed = this.#counter('missed_events_total', 'Confirmed misses of the event stream.', [
    'event_type',
    'cause',
  ]);
  readonly #findings = this.#counter('findings_total', 'Findings by kind.', ['kind']);
  readonly #events = this.#counter('events_received_total', 'Events received from the runtime.', [
    'event_type',
  ]);
  readonly streamErrors = this.#counter(
    'stream_errors_total',
    'Ends of the event stream, by why they came.',
    ['code'],
  );
  readonly readerDropped = this.#counter(
    'reader_dropped_events_total',
    'Events the reader dropped without a trace.',
    [],
  );
  readonly statusLacked = this.#counter(
    'events_without_status_total',
    'Events without the sandbox status that this runtime puts into them when all is well.',
    [],
  );
  readonly malformed = this.#counter(
    'malformed_messages_total',
    'Messages from the runtime, and items of its lists, that could not be read, by the call.',
    ['call'],
  );
  readonly relistErrors = this.#counter('relist_errors_total', 'List calls that failed, by gRPC status.', [
    'code',
  ]);
  readonly streamConnected = this.#gauge('stream_connected', 'Whether the event stream is connected.', []);
  readonly awaited = this.#gauge(
    'awaited_events',
    'Transitions whose event has not come yet and has no verdict.',
    [],
  );
  readonly remembered = this.#gauge(
    'remembered_ids',
    'Ids that are remembered: those that are there, and those that ended or were heard of in the last 15 minutes.',
    [],
  );
  readonly shed = this.#tally(
    'shed_ids_total',
    'Ids that were not followed because too many were, each time that one was shown.',
  );
  readonly untold = this.#tally(
    'untold_overdue_total',
    'Starts and ends that were overdue and were not told to be, because too many were.',
  );
  readonly kubeletErrors = this.#counter(
    'kubelet_scrape_errors_total',
    "Looks at the kubelet's metrics that failed, by reason.",
    ['reason'],
  );
  readonly #kubeletMode = this.#gauge('kubelet_mode', "The kubelet's PLEG mode: 1 for the present one.", [
    'mode',
  ]);
  readonly spoolBytes = this.#gauge('spool_bytes', 'Size of the spool.', []);
  readonly spoolInMemory = this.#gauge('spool_in_memory', 'Whether the spool runs from memory.', []);
  readonly spoolDropped = this.#tally(
    'spool_dropped_records_total',
    'Records dropped before they were stored.',
  );
  readonly unacknowledged = this.#gauge(
    'unacked_records',
    'Records that the store has not acknowledged.',
    [],
  );
  readonly relist = new Histogram({
    name: 'plegwatch_relist_duration_seconds',
    help: 'Duration of one relist, both list calls.',
    buckets: RELIST_BOUNDS_MS.map((ms) => ms / 1000),
    registers: [this.registry],
  });

  constructor() {
    collectDefaultMetrics({ register: this.registry, prefix: 'plegwatch_' });
    this.modeIs('Unknown');
    this.streamConnected.set(0);
  }

  /** Every mode is told, so that none is left behind: 1 for the present one, 0 for the others. */
  modeIs(mode: Mode): void {
    for (const each of MODES) this.#kubeletMode.set({ mode: each }, each === mode ? 1 : 0);
  }

  /** Counts a record where it is one that metrics speak of. */
  count(record: EvidenceRecord): void {
    if (record.type === 'container_event')
      this.#events.inc({ event_type: EVENT_TYPES[record.eventType] ?? 'UNKNOWN' });
    if (record.type !== 'finding') return;
    this.#findings.inc({ kind: record.kind });
    if (record.kind === 'missed')
      this.#missed.inc({ event_type: record.eventType ?? 'UNKNOWN', cause: record.cause });
  }

  #counter<const L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> {
    return new Counter({
      name: `plegwatch_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [this.registry],
    });
  }

  /** A count that is kept elsewhere. */
  #tally(name: string, help: string): Tally {
    const counter = this.#counter(name, help, []);
    return {
      set: (total) => {
        counter.reset();
        counter.inc(total);
      },
    };
  }

  #gauge<const L extends string>(name: string, help: string, labelNames: readonly L[]): Gauge<L> {
    return new Gauge({
      name: `plegwatch_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [this.registry],
    });
  }
}
