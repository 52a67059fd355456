/*
 * The controller's metrics, in a registry of their own. No labels that grow with nodes or pods.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { registerProcessMetrics } from '../platform/processMetrics.ts';

/** What becomes of a record that a controller receives; the same words as in the logs. */
type RecordResult = 'stored' | 'duplicate' | 'lost' | 'rejected' | 'version';

export interface ControllerMetrics {
  readonly registry: Registry;
  /** Records by what became of them; a refused input counts as one. */
  readonly records: Counter<'result'>;
  readonly batchSeconds: Histogram;
  readonly laneDepth: Gauge<'lane'>;
  readonly lagSeconds: Gauge;
  readonly reportWrites: Counter<'result'>;
  readonly leader: Gauge;
  readonly nodeConditions: Counter;
  readonly nodeWatchMissed: Counter;
  readonly impactReads: Counter<'result'>;
  readonly impactWatched: Gauge<'kind'>;
  readonly impactShed: Counter<'kind'>;
}

export function createControllerMetrics(): ControllerMetrics {
  const registry = new Registry();
  const registers = [registry];
  registerProcessMetrics(registry);
  const metrics: ControllerMetrics = {
    registry,
    records: new Counter({
      name: 'plegwatch_records_total',
      help: 'Records received from agents, by what became of them.',
      labelNames: ['result'],
      registers,
    }),
    batchSeconds: new Histogram({
      name: 'plegwatch_ingest_batch_seconds',
      help: 'Time from taking a batch from its lane to its commit.',
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
      registers,
    }),
    laneDepth: new Gauge({
      name: 'plegwatch_lane_depth',
      help: 'Jobs in a lane: waiting, active and delayed.',
      labelNames: ['lane'],
      registers,
    }),
    lagSeconds: new Gauge({
      name: 'plegwatch_ingest_lag_seconds',
      help: 'Age of the last committed batch when it was committed.',
      registers,
    }),
    reportWrites: new Counter({
      name: 'plegwatch_report_writes_total',
      help: 'Writes of PLEGReports, by result.',
      labelNames: ['result'],
      registers,
    }),
    leader: new Gauge({
      name: 'plegwatch_leader',
      help: '1 where this controller writes the reports.',
      registers,
    }),
    nodeConditions: new Counter({
      name: 'plegwatch_node_conditions_total',
      help: 'PLEG-related transitions of Ready conditions that were recorded.',
      registers,
    }),
    nodeWatchMissed: new Counter({
      name: 'plegwatch_node_watch_missed_total',
      help: 'Nodes that a list showed to be other than the watch had told.',
      registers,
    }),
    impactReads: new Counter({
      name: 'plegwatch_impact_reads_total',
      help: 'Reads of pods whose status may be behind, by what came of them.',
      labelNames: ['result'],
      registers,
    }),
    impactWatched: new Gauge({
      name: 'plegwatch_impact_watched',
      help: 'Transitions whose pods are read: overdue ones, and samples of announced ones.',
      labelNames: ['kind'],
      registers,
    }),
    impactShed: new Counter({
      name: 'plegwatch_impact_shed_total',
      help: 'Transitions that were not measured because too many were.',
      labelNames: ['kind'],
      registers,
    }),
  };
  for (const result of ['stored', 'duplicate', 'lost', 'rejected', 'version'] satisfies RecordResult[]) {
    metrics.records.inc({ result }, 0);
  }
  return metrics;
}
