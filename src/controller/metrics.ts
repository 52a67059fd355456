/*
 * The controller's metrics. No label grows with nodes or pods.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { registerProcessMetrics } from '../platform/processMetrics.ts';
import { REPORT_RESULTS } from './reports/metrics.ts';
import { READ_RESULTS, WATCH_KINDS } from './statusLag/metrics.ts';

const RECORD_RESULTS = ['stored', 'duplicate', 'lost', 'rejected', 'version'] as const;

export interface ControllerMetrics {
  readonly registry: Registry;
  /** A rejected input counts as one record. */
  readonly records: Counter<'result'>;
  readonly batchSeconds: Histogram;
  readonly queueDepth: Gauge<'queue'>;
  readonly lagSeconds: Gauge;
  readonly reportWrites: Counter<'result'>;
  readonly leader: Gauge;
  readonly nodeConditions: Counter;
  readonly nodeWatchMissed: Counter;
  readonly statusLagReads: Counter<'result'>;
  readonly statusLagWatches: Gauge<'kind'>;
  readonly statusLagShed: Counter<'kind'>;
}

export function createControllerMetrics(): ControllerMetrics {
  const registry = new Registry();
  const registers = [registry];
  registerProcessMetrics(registry);
  const metrics: ControllerMetrics = {
    registry,
    records: new Counter({
      name: 'plegwatch_records_total',
      help: 'Records received from agents, by result.',
      labelNames: ['result'],
      registers,
    }),
    batchSeconds: new Histogram({
      name: 'plegwatch_ingest_batch_duration_seconds',
      help: 'Time from taking a batch from its queue to its commit.',
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
      registers,
    }),
    queueDepth: new Gauge({
      name: 'plegwatch_queue_depth',
      help: 'Jobs in a queue: waiting, active and delayed.',
      labelNames: ['queue'],
      registers,
    }),
    lagSeconds: new Gauge({
      name: 'plegwatch_ingest_lag_seconds',
      help: 'Age of the latest committed batch at its commit.',
      registers,
    }),
    reportWrites: new Counter({
      name: 'plegwatch_report_writes_total',
      help: 'Due PLEGReports, by result.',
      labelNames: ['result'],
      registers,
    }),
    leader: new Gauge({
      name: 'plegwatch_leader',
      help: '1 if this controller writes the reports.',
      registers,
    }),
    nodeConditions: new Counter({
      name: 'plegwatch_node_conditions_total',
      help: 'PLEG-related transitions of Ready conditions that this controller recorded.',
      registers,
    }),
    nodeWatchMissed: new Counter({
      name: 'plegwatch_node_watch_missed_total',
      help: 'Changes of Nodes that the watch missed and a list found.',
      registers,
    }),
    statusLagReads: new Counter({
      name: 'plegwatch_status_lag_reads_total',
      help: 'Reads of pods whose published status may lag, by result.',
      labelNames: ['result'],
      registers,
    }),
    statusLagWatches: new Gauge({
      name: 'plegwatch_status_lag_watches',
      help: 'Transitions whose status lag is being measured: overdue ones, and samples of announced ones.',
      labelNames: ['kind'],
      registers,
    }),
    statusLagShed: new Counter({
      name: 'plegwatch_status_lag_shed_total',
      help: 'Transitions whose status lag was not measured because too many others were.',
      labelNames: ['kind'],
      registers,
    }),
  };
  // increase() misses the first increment of a series that did not exist before.
  for (const result of RECORD_RESULTS) metrics.records.inc({ result }, 0);
  for (const result of REPORT_RESULTS) metrics.reportWrites.inc({ result }, 0);
  for (const result of READ_RESULTS) metrics.statusLagReads.inc({ result }, 0);
  for (const kind of WATCH_KINDS) metrics.statusLagShed.inc({ kind }, 0);
  return metrics;
}
