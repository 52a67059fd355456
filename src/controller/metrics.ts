/*
 * The controller's metrics. No label grows with nodes or pods.
 */
import { Histogram } from 'prom-client';
import { MetricSet } from '../platform/metricSet.ts';
import { MODES, STREAM_STATES } from '../protocol/record.ts';
import { INCOMPLETE_REASONS, type NodeCount, PLEG_VERDICTS, type StoreFigures } from './figures.ts';
import { UNBELIEVED_CLAIMS } from './ingest/epoch.ts';
import { REMOVAL_KINDS } from './ingest/inbox.ts';
import { ATTRIBUTION_REFUSALS } from './keys/attribution.ts';
import { ENROLMENT_RESULTS } from './keys/enroller.ts';
import type { SignatureState } from './keys/statements.ts';
import { PUBLISH_RESULTS } from './nodeConditions/publisher.ts';
import { EVENT_RESULTS } from './nodes/eventWriter.ts';
import { OTLP_RESULTS } from './otlp/sender.ts';
import { AGENT_REASONS, CONDITION_TYPES } from './reports/conditions.ts';
import { REPORT_RESULTS } from './reports/writer.ts';
import { READ_RESULTS } from './statusLag/readOutcome.ts';
import { WATCH_KINDS } from './statusLag/watchLimits.ts';

export class ControllerMetrics extends MetricSet {
  /** A rejected input counts as one record. */
  readonly records = this.counter('records_total', 'Records received from agents, by result.', {
    result: ['stored', 'duplicate', 'lost', 'over_quota', 'rejected', 'version'],
  });
  readonly unbelievedClaims = this.counter(
    'unbelieved_claims_total',
    'Claims of batches that were not believed, because what the store knows contradicts them.',
    { claim: UNBELIEVED_CLAIMS },
  );
  readonly enrolments = this.counter('enrolments_total', 'Enrolments of nodes, by result.', {
    result: ENROLMENT_RESULTS,
  });
  readonly attributionRefusals = this.counter(
    'unattributed_batches_refused_total',
    'Batches that were refused because their node did not provably sign them.',
    { reason: ATTRIBUTION_REFUSALS },
  );
  readonly batchSeconds = new Histogram({
    name: 'plegwatch_ingest_batch_duration_seconds',
    help: 'Time from taking a batch from its queue to its commit. A calm one waits for others, up to a second.',
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [this.registry],
  });
  readonly queueDepth = this.gauge('queue_depth', 'Inputs in the inbox of a queue that are not stored yet.', [
    'queue',
  ]);
  readonly inboxRemovals = this.counter(
    'inbox_removals_total',
    'What no agent of ours can have added to an inbox and was removed unread, by kind.',
    { kind: REMOVAL_KINDS },
  );
  readonly lastCommit = this.gauge(
    'last_commit_timestamp_seconds',
    'When a batch was last committed; when this controller started, if none was.',
  );
  readonly lagSeconds = this.gauge('ingest_lag_seconds', 'Age of the latest committed batch at its commit.');
  readonly reportWrites = this.counter('report_writes_total', 'Due PLEGReports, by result.', {
    result: REPORT_RESULTS,
  });
  readonly nodeEvents = this.counter(
    'node_events_total',
    'Kubernetes Events about Nodes and pods, by result.',
    {
      result: EVENT_RESULTS,
    },
  );
  readonly publishedConditions = this.counter(
    'node_condition_writes_total',
    'Writes of the conditions that plegwatch publishes on Nodes, by result.',
    { result: PUBLISH_RESULTS },
  );
  readonly otlpRecords = this.counter(
    'otlp_records_total',
    'Findings, resolutions, mode changes and verdicts for OpenTelemetry, by result.',
    { result: OTLP_RESULTS },
  );
  readonly leader = this.gauge('leader', '1 if this controller writes the reports.');
  readonly controllerConflict = this.gauge(
    'controller_conflict',
    '1 while another controller leads this cluster in this database too.',
  );
  readonly nodeConditions = this.counter(
    'node_conditions_total',
    'PLEG-related transitions of Ready conditions that this controller recorded.',
  );
  readonly clusterIdentityUnknown = this.counter(
    'cluster_identity_unknown_total',
    'Times that the UID of the cluster could not be read.',
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
    'Transitions whose status lag is being measured: overdue ones, announced ones on a node whose kubelet fell back and keeps what events told it, and samples of announced ones.',
    ['kind'],
  );
  readonly statusLagShed = this.counter(
    'status_lag_shed_total',
    'Transitions whose status lag was not measured because too many others were.',
    { kind: WATCH_KINDS },
  );
  readonly #nodesByMode = this.gauge('nodes_by_mode', "Nodes by the mode of their kubelet's PLEG.", ['mode']);
  readonly #nodesByStream = this.gauge('nodes_by_stream', "Nodes by the state of the agent's event stream.", [
    'state',
  ]);
  readonly #nodesByAgent = this.gauge(
    'nodes_by_agent',
    'Nodes by the reason of their condition AgentReporting.',
    ['reason'],
  );
  readonly #nodesByCondition = this.gauge(
    'nodes_by_condition',
    'Nodes by the status of each condition of their reports.',
    ['condition', 'status'],
  );

  readonly #oldestDue = this.gauge(
    'oldest_due_report_age_seconds',
    'For how long the PLEGReport that is due the longest has been due.',
  );
  readonly #maintained = this.gauge(
    'maintenance_last_success_timestamp_seconds',
    'When the maintenance of the database last succeeded.',
  );
  readonly #incomplete = this.gauge(
    'incomplete_nodes',
    'Nodes whose evidence of the last 24 hours is incomplete, by reason.',
    ['reason'],
  );
  readonly #unhealthy = this.gauge(
    'pleg_unhealthy_nodes',
    'Nodes that report at present that PLEG is not healthy, by verdict.',
    ['verdict'],
  );

  readonly #signaturesRequired = this.gauge(
    'signatures_required',
    '1 if the cluster requires signatures, 0 while unsigned batches of nodes without a key are stored.',
  );
  readonly #unsignedNodes = this.gauge(
    'unsigned_nodes',
    'Nodes that have had an agent within 24 hours and have no valid key, or of which an unsigned batch was stored within an hour.',
  );

  constructor() {
    super();
    this.lastCommit.setToCurrentTime();
    this.setFigures(null, false);
    this.setSignatures(null);
    for (const kind of WATCH_KINDS) this.statusLagWatches.set({ kind }, 0);
  }

  /**
   * `writesReports`: whether this controller writes them. Null while the database does not answer: then there are no series, because old figures
   * would look like present ones.
   */
  setFigures(figures: StoreFigures | null, writesReports: boolean): void {
    for (const gauge of [this.#oldestDue, this.#maintained]) gauge.remove();
    const labelled = [this.#incomplete, this.#unhealthy, this.#nodesByMode, this.#nodesByStream];
    for (const gauge of [...labelled, this.#nodesByAgent, this.#nodesByCondition]) gauge.reset();
    if (figures === null) return;
    this.#maintained.set(figures.maintainedAt);
    if (!writesReports) return;
    this.#oldestDue.set(figures.oldestDueSeconds);
    for (const reason of INCOMPLETE_REASONS) this.#incomplete.set({ reason }, figures.incomplete[reason]);
    for (const verdict of PLEG_VERDICTS) this.#unhealthy.set({ verdict }, figures.unhealthy[verdict]);
    this.#setNodes(figures.nodes);
  }

  /** Set by a leader. Null while nothing is known: then there are no series. */
  setSignatures(state: SignatureState | null): void {
    for (const gauge of [this.#signaturesRequired, this.#unsignedNodes]) gauge.remove();
    if (state === null) return;
    this.#signaturesRequired.set(state.required_since === null ? 0 : 1);
    this.#unsignedNodes.set(state.holding_back);
  }

  #setNodes(counts: readonly NodeCount[]): void {
    for (const mode of MODES) this.#nodesByMode.set({ mode }, 0);
    for (const state of [...STREAM_STATES, 'Unknown']) this.#nodesByStream.set({ state }, 0);
    for (const reason of AGENT_REASONS) this.#nodesByAgent.set({ reason }, 0);
    for (const condition of CONDITION_TYPES)
      for (const status of ['True', 'False', 'Unknown']) this.#nodesByCondition.set({ condition, status }, 0);
    for (const count of counts) this.#addNodes(count);
  }

  /** A value of a later version counts as unknown, so that no agent can add series. */
  #addNodes({ of, value, status, nodes }: NodeCount): void {
    if (of === 'mode') this.#nodesByMode.inc({ mode: knownOr(MODES, value) }, nodes);
    else if (of === 'stream') this.#nodesByStream.inc({ state: knownOr(STREAM_STATES, value) }, nodes);
    else if (of === 'agent') this.#nodesByAgent.inc({ reason: value }, nodes);
    else this.#nodesByCondition.inc({ condition: value, status }, nodes);
  }
}

const knownOr = (known: readonly string[], value: string): string =>
  known.includes(value) ? value : 'Unknown';
