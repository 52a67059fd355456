/*
 * The queue of due reports in Postgres, and the evidence of their nodes.
 */

import type { SqlRunner } from '../../store/runner.ts';
import addNodes from '../../store/sql/addNodes.sql';
import type { EvidenceRow } from './evidence.ts';
import deferReport from './sql/deferReport.sql';
import dequeueReport from './sql/dequeueReport.sql';
import enqueueRewrites from './sql/enqueueRewrites.sql';
import enqueueStaleReports from './sql/enqueueStaleReports.sql';
import finishUnchangedReports from './sql/finishUnchangedReports.sql';
import finishWrittenReport from './sql/finishWrittenReport.sql';
import listDueReports from './sql/listDueReports.sql';
import markNodesDeleted from './sql/markNodesDeleted.sql';
import nameMachines from './sql/nameMachines.sql';
import readEvidenceSql from './sql/readEvidence.sql';
import recordNodes from './sql/recordNodes.sql';
import upsertConditions from './sql/upsertConditions.sql';
import type { ReportCondition, ReportStatus } from './status.ts';

/** A row of the queue. It is removed only at this version, so that a request made meanwhile is not lost. */
export interface DueReport {
  readonly node_id: number;
  readonly version: string;
  readonly node: string;
}

/** What is to be written, or would be. */
export interface BuiltReport {
  readonly status: ReportStatus;
  readonly digest: string;
  readonly recheckMs: number;
}

/** A Node, and which machine it is. */
export interface IdentifiedNode {
  readonly name: string;
  readonly uid: string;
  readonly createdAt: string;
}

export class ReportQueue {
  readonly #store: SqlRunner;
  readonly #cluster: number;

  constructor(store: SqlRunner, clusterId: number) {
    this.#store = store;
    this.#cluster = clusterId;
  }

  /** At most `max` due reports, without those written in the last `minIntervalMs`: what a reader cares about most comes first. */
  async due(minIntervalMs: number, max: number): Promise<DueReport[]> {
    const values = [this.#cluster, minIntervalMs, max];
    return (await this.#store.run<DueReport>({ text: listDueReports, name: 'list_due_reports' }, values))
      .rows;
  }

  /** The evidence of these nodes, by node id. */
  async read(nodeIds: readonly number[]): Promise<Map<number, EvidenceRow>> {
    return new Map((await readEvidence(this.#store, nodeIds)).map((row) => [row.node_id, row]));
  }

  /** Stores conditions, so that a new leader keeps their transition times. */
  async storeConditions(
    nodes: readonly { row: EvidenceRow; conditions: readonly ReportCondition[] }[],
  ): Promise<void> {
    const all = nodes.flatMap(({ row, conditions }) =>
      conditions.map((condition) => ({ nodeId: row.node_id, ...condition })),
    );
    await this.#store.run({ name: 'upsert_conditions', text: upsertConditions }, [
      all.map(({ nodeId }) => nodeId),
      all.map(({ type }) => type),
      all.map(({ status }) => status),
      all.map(({ reason }) => reason),
      all.map(({ message }) => message),
      all.map(({ lastTransitionTime }) => lastTransitionTime),
    ]);
  }

  async finishWritten(
    { node_id, version }: DueReport,
    createdAt: string | null,
    { status, digest, recheckMs }: BuiltReport,
  ): Promise<void> {
    const isOfAgent = status.conditions.some(
      ({ type, status: is }) => type === 'AgentReporting' && is === 'True',
    );
    const said = isOfAgent ? [status.mode, status.stream?.state ?? null] : [null, null];
    const values = [node_id, version, createdAt, digest, recheckMs, ...said];
    await this.#store.run({ name: 'finish_written_report', text: finishWrittenReport }, values);
  }

  async finishUnchanged(reports: readonly { due: DueReport; recheckMs: number }[]): Promise<void> {
    if (reports.length === 0) return;
    await this.#store.run({ name: 'finish_unchanged_reports', text: finishUnchangedReports }, [
      reports.map(({ due }) => due.node_id),
      reports.map(({ due }) => due.version),
      reports.map(({ recheckMs }) => Math.round(recheckMs)),
    ]);
  }

  async remove(due: DueReport): Promise<void> {
    await this.#store.run({ text: dequeueReport }, [due.node_id, due.version]);
  }

  async defer(due: DueReport, waitMs: number): Promise<void> {
    await this.#store.run({ text: deferReport }, [due.node_id, waitMs]);
  }

  /** Adds Nodes that the store does not have. */
  async addNodes(names: readonly string[]): Promise<void> {
    if (names.length > 0) await this.#store.run({ text: addNodes }, [this.#cluster, names]);
  }

  /** Records which machines these Nodes are. */
  async recordNodes(nodes: readonly IdentifiedNode[]): Promise<void> {
    if (nodes.length === 0) return;
    const values = [
      this.#cluster,
      nodes.map(({ name }) => name),
      nodes.map(({ uid }) => uid),
      nodes.map(({ createdAt }) => createdAt),
    ];
    await this.#store.run({ text: nameMachines }, values);
    await this.#store.run({ text: recordNodes }, values);
  }

  /** Queues reports that must be written even if they did not change; those of Nodes without an agent after `firstAgentMs`. */
  async enqueueRewrites(names: readonly string[], firstAgentMs: number): Promise<void> {
    if (names.length === 0) return;
    await this.#store.run({ text: enqueueRewrites }, [this.#cluster, names, firstAgentMs]);
  }

  async markDeleted(names: readonly string[]): Promise<void> {
    if (names.length > 0) await this.#store.run({ text: markNodesDeleted }, [this.#cluster, names, true]);
  }

  /** Marks every node that has none of these names. */
  async markOthersDeleted(names: readonly string[]): Promise<void> {
    await this.#store.run({ text: markNodesDeleted }, [this.#cluster, names, false]);
  }

  /** Queues reports that may have changed with time alone. */
  async enqueueStale(silentAfterMs: number): Promise<void> {
    await this.#store.run({ text: enqueueStaleReports }, [this.#cluster, silentAfterMs]);
  }
}

/** The evidence of these nodes, ordered by name. */
export async function readEvidence(store: SqlRunner, nodeIds: readonly number[]): Promise<EvidenceRow[]> {
  return (await store.run<EvidenceRow>({ text: readEvidenceSql, name: 'read_evidence' }, [nodeIds])).rows;
}
