/*
 * The controller's metrics. No label grows with nodes or pods.
 */
import { Histogram } from 'prom-client';
import { MetricSet } from '../platform/metricSet.ts';
import { REPORT_RESULTS } from './reports/metrics.ts';
import { READ_RESULTS, WATCH_KINDS } from './statusLag/metrics.ts';

export class ControllerMetrics extends MetricSet {
  /** A rejected input counts as one record. */
  readonly records = this.counter('records_total', 'Records received from agents, by result.', {
    result: ['stored', 'duplicate', 'lost', 'rejected', 'version'],
  });
  readonly batchSeconds = new Histogram({
    name: 'plegwatch_ingest_batch_duration_seconds',
    help: 'Time from taking a batch from its queue to its commit.',
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [this.registry],
  });
  readonly queueDepth = this.gauge('queue_depth', 'Jobs in a queue: waiting, active and delayed.', ['queue']);
  readonly lagSeconds = this.gauge('ingest_lag_seconds', 'Age of the latest committed batch at its commit.');
  readonly reportWrites = this.counter('report_writes_total', 'Due PLEGReports, by result.', {
    result: REPORT_RESULTS,
  });
  readonly leader = this.gauge('leader', '1 if this controller writes the reports.');
  readonly nodeConditions = this.counter(
    'node_conditions_total',
    'PLEG-related transitions of Ready conditions that this controller recorded.',
  );
  readonly nodeWatchMissed = this.counter(
    'node_watch_missed_total',
    'Changes of Nodes that the watch missed and a list found.',
  );
  readonly statusLagReads = this.counter(
    'status_lag_reads_total',
    'Reads of pods whose published status may lag, by result.',
    { result: READ_RESULTS },
  );
  readonly statusLagWatches = this.gauge(
    'status_lag_watches',
    'Transitions whose status lag is being measured: overdue ones, and samples of announced ones.',
    ['kind'],
  );
  readonly statusLagShed = this.counter(
    'status_lag_shed_total',
    'Transitions whose status lag was not measured because too many others were.',
    { kind: WATCH_KINDS },
  );
}
