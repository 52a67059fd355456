/*
 * The queue of due reports in Postgres, and the evidence of their nodes.
 */
import type { SqlRunner } from '../store/store.ts';
import type { EvidenceRow } from './evidence.ts';
import deferReport from './sql/deferReport.sql';
import dequeueReport from './sql/dequeueReport.sql';
import enqueueRewrites from './sql/enqueueRewrites.sql';
import enqueueStaleReports from './sql/enqueueStaleReports.sql';
import finishUnchangedReport from './sql/finishUnchangedReport.sql';
import finishWrittenReport from './sql/finishWrittenReport.sql';
import listDueReports from './sql/listDueReports.sql';
import markNodesDeleted from './sql/markNodesDeleted.sql';
import markOtherNodesDeleted from './sql/markOtherNodesDeleted.sql';
import readEvidenceSql from './sql/readEvidence.sql';
import upsertConditions from './sql/upsertConditions.sql';
import type { ReportCondition } from './status.ts';

/** A row of the queue. It is removed only at this version, so that a request made meanwhile is not lost. */
export interface DueReport {
  readonly node_id: number;
  readonly version: string;
  readonly node: string;
}

export class ReportQueue {
  readonly #store: SqlRunner;
  readonly #cluster: number;

  constructor(store: SqlRunner, clusterId: number) {
    this.#store = store;
    this.#cluster = clusterId;
  }

  /** Due reports, changes before refreshes, without those written in the last `minIntervalMs`. */
  async due(minIntervalMs: number, limit: number): Promise<DueReport[]> {
    const values = [this.#cluster, minIntervalMs, limit];
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
    await this.#store.run({ text: upsertConditions }, [
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
    digest: string,
    recheckMs: number,
  ): Promise<void> {
    const values = [node_id, version, createdAt, digest, recheckMs];
    await this.#store.run({ text: finishWrittenReport }, values);
  }

  async finishUnchanged(due: DueReport, recheckMs: number): Promise<void> {
    await this.#store.run({ text: finishUnchangedReport }, [due.node_id, due.version, recheckMs]);
  }

  async remove(due: DueReport): Promise<void> {
    await this.#store.run({ text: dequeueReport }, [due.node_id, due.version]);
  }

  async defer(due: DueReport, waitMs: number): Promise<void> {
    await this.#store.run({ text: deferReport }, [due.node_id, waitMs]);
  }

  /** Queues reports that must be written even if they did not change. Names without a node in SQL are ignored. */
  async enqueueRewrites(names: readonly string[]): Promise<void> {
    if (names.length > 0) await this.#store.run({ text: enqueueRewrites }, [this.#cluster, names]);
  }

  async markDeleted(names: readonly string[]): Promise<void> {
    if (names.length > 0) await this.#store.run({ text: markNodesDeleted }, [this.#cluster, names]);
  }

  /** Marks every node that has none of these names. */
  async markOthersDeleted(names: readonly string[]): Promise<void> {
    await this.#store.run({ text: markOtherNodesDeleted }, [this.#cluster, names]);
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
