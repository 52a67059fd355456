/*
 * The report writer's side of the store: what is due, what is known of a node, and what was shown.
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
import type { Condition } from './status.ts';

/** A row of the queue. It is taken off only at this version: what was asked for meanwhile is not lost. */
export interface Due {
  readonly node_id: number;
  readonly version: string;
  readonly urgent: boolean;
  readonly node: string;
}

export class ReportQueue {
  readonly #store: SqlRunner;
  readonly #cluster: number;

  constructor(store: SqlRunner, clusterId: number) {
    this.#store = store;
    this.#cluster = clusterId;
  }

  /** What is due, changes first; nodes written in the last `quietMs` wait. */
  async due(quietMs: number, limit: number): Promise<Due[]> {
    return (
      await this.#store.run<Due>({ text: listDueReports, name: 'report.take' }, [
        this.#cluster,
        quietMs,
        limit,
      ])
    ).rows;
  }

  /** What SQL says of these nodes, by their id. */
  async read(nodeIds: readonly number[]): Promise<Map<number, EvidenceRow>> {
    return new Map((await readEvidence(this.#store, nodeIds)).map((row) => [row.node_id, row]));
  }

  /** Keeps conditions, so that their times survive a change of leader. */
  async keepConditions(
    nodes: readonly { row: EvidenceRow; conditions: readonly Condition[] }[],
  ): Promise<void> {
    const all = nodes.flatMap(({ row, conditions: list }) =>
      list.map((c) => ({ nodeId: row.node_id, ...c })),
    );
    await this.#store.run({ text: upsertConditions }, [
      all.map((c) => c.nodeId),
      all.map((c) => c.type),
      all.map((c) => c.status),
      all.map((c) => c.reason),
      all.map((c) => c.message),
      all.map((c) => c.lastTransitionTime),
    ]);
  }

  async written(due: Due, createdAt: string | null, shown: string, recheckMs: number): Promise<void> {
    await this.#store.run({ text: finishWrittenReport }, [
      due.node_id,
      due.version,
      createdAt,
      shown,
      recheckMs,
    ]);
  }

  async unchanged(due: Due, recheckMs: number): Promise<void> {
    await this.#store.run({ text: finishUnchangedReport }, [due.node_id, due.version, recheckMs]);
  }

  async drop(due: Due): Promise<void> {
    await this.#store.run({ text: dequeueReport }, [due.node_id, due.version]);
  }

  async defer(due: Due, waitMs: number): Promise<void> {
    await this.#store.run({ text: deferReport }, [due.node_id, waitMs]);
  }

  /** These nodes are written whatever was written before. Names without a node in SQL are passed over. */
  async enqueue(names: readonly string[]): Promise<void> {
    if (names.length > 0) await this.#store.run({ text: enqueueRewrites }, [this.#cluster, names]);
  }

  async gone(names: readonly string[]): Promise<void> {
    if (names.length > 0) await this.#store.run({ text: markNodesDeleted }, [this.#cluster, names]);
  }

  async goneExcept(names: readonly string[]): Promise<void> {
    await this.#store.run({ text: markOtherNodesDeleted }, [this.#cluster, names]);
  }

  /** Asks again for what time alone may have changed. */
  async sweep(silentAfterMs: number): Promise<void> {
    await this.#store.run({ text: enqueueStaleReports }, [this.#cluster, silentAfterMs]);
  }
}

/** What SQL says of these nodes, by name. */
export async function readEvidence(store: SqlRunner, nodeIds: readonly number[]): Promise<EvidenceRow[]> {
  return (await store.run<EvidenceRow>({ text: readEvidenceSql, name: 'report.read' }, [nodeIds])).rows;
}
