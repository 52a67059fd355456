/*
 * The queue of due reports in Postgres, and the evidence of their nodes.
 */
import { and, eq, type SQL, sql } from 'drizzle-orm';
import { databaseNow } from '../../store/expressions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { reportQueue } from '../../store/schema/tables.ts';
import { addNodes } from '../../store/statements.ts';
import { conditionOf } from './conditions.ts';
import { type EvidenceRow, readEvidence } from './evidence.ts';
import {
  type DueReport,
  enqueueRewrites,
  enqueueStaleReports,
  finishUnchangedReports,
  finishWrittenReport,
  listDueReports,
  markNodesDeleted,
  nameMachines,
  recordNodes,
  upsertConditions,
} from './statements.ts';
import type { ReportCondition, ReportStatus } from './status.ts';

/** The report that is to be written, or would be. */
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
    return (await this.#store.run(listDueReports, values)).rows;
  }

  /** The evidence of these nodes, by node id. */
  async read(nodeIds: readonly number[]): Promise<Map<number, EvidenceRow>> {
    const { rows } = await this.#store.run(readEvidence, [nodeIds]);
    return new Map(rows.map((row) => [row.node_id, row]));
  }

  /** Stores conditions, so that a new leader keeps their transition times. */
  async storeConditions(
    nodes: readonly { row: EvidenceRow; conditions: readonly ReportCondition[] }[],
  ): Promise<void> {
    const all = nodes.flatMap(({ row, conditions }) =>
      conditions.map((condition) => ({ nodeId: row.node_id, ...condition })),
    );
    await this.#store.run(upsertConditions, [
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
    const isOfAgent = conditionOf(status, 'AgentReporting')?.status === 'True';
    const said = isOfAgent ? [status.mode, status.stream?.state ?? null] : [null, null];
    const values = [node_id, version, createdAt, digest, recheckMs, ...said];
    await this.#store.run(finishWrittenReport, values);
  }

  async finishUnchanged(reports: readonly { due: DueReport; recheckMs: number }[]): Promise<void> {
    if (reports.length === 0) return;
    await this.#store.run(finishUnchangedReports, [
      reports.map(({ due }) => due.node_id),
      reports.map(({ due }) => due.version),
      reports.map(({ recheckMs }) => Math.round(recheckMs)),
    ]);
  }

  async remove({ node_id, version }: DueReport): Promise<void> {
    const isDue = and(ofNode(node_id), eq(reportQueue.version, version));
    await this.#store.query((db) => db.delete(reportQueue).where(isDue));
  }

  async defer({ node_id }: DueReport, waitMs: number): Promise<void> {
    const due_at = sql`${databaseNow} + ${waitMs} * interval '1 millisecond'`;
    await this.#store.query((db) => db.update(reportQueue).set({ due_at }).where(ofNode(node_id)));
  }

  /** Adds Nodes that the store does not have. */
  async addNodes(names: readonly string[]): Promise<void> {
    if (names.length > 0) await this.#store.run(addNodes, [this.#cluster, names]);
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
    await this.#store.run(nameMachines, values);
    await this.#store.run(recordNodes, values);
  }

  /** Queues reports that must be written even if they did not change; those of Nodes without an agent after `firstAgentMs`. */
  async enqueueRewrites(names: readonly string[], firstAgentMs: number): Promise<void> {
    if (names.length === 0) return;
    await this.#store.run(enqueueRewrites, [this.#cluster, names, firstAgentMs]);
  }

  async markDeleted(names: readonly string[]): Promise<void> {
    if (names.length > 0) await this.#store.run(markNodesDeleted, [this.#cluster, names, true]);
  }

  /** Marks every node that has none of these names. */
  async markOthersDeleted(names: readonly string[]): Promise<void> {
    await this.#store.run(markNodesDeleted, [this.#cluster, names, false]);
  }

  /** Queues reports that may have changed with time alone. */
  async enqueueStale(silentAfterMs: number): Promise<void> {
    await this.#store.run(enqueueStaleReports, [this.#cluster, silentAfterMs]);
  }
}

const ofNode = (id: number): SQL => eq(reportQueue.node_id, id);
