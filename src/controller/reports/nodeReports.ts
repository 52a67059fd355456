/*
 * The reports in Kubernetes, each with the UID of the Node that it belongs to and the labels that it has from it. Deletes the reports of
 * deleted and replaced Nodes, and queues a report for every Node without one or with other labels.
 *
 * All reports are watched, because others can delete and change them too. A failed write is repeated later.
 */
import type { KubeClient } from '../../kube/client.ts';
import type { ListWatchEvent } from '../../kube/listWatch.ts';
import { type KubeObject, PLEG_REPORTS } from '../../kube/object.ts';
import { isSameLabels, type KubeNode, type Labels, labelsOf } from '../../kube/projection.ts';
import { rightsOn } from '../../kube/rights.ts';
import type { NodeWatch } from '../nodes/nodeWatch.ts';
import type { ReportQueue } from './queue.ts';
import { REPORT_API, type ReportStatus } from './status.ts';
import { withoutEmpty } from './text.ts';
import { saysUnknown } from './unknown.ts';

/** An apply is a patch, and a create if there is no such object. */
export const NODE_REPORT_RIGHTS = [
  ...rightsOn(PLEG_REPORTS, ['list', 'watch', 'delete', 'create', 'patch']),
  ...rightsOn(PLEG_REPORTS, ['patch'], { subresource: 'status' }),
];

/** A report as it is watched. */
export interface WatchedReport extends ExistingReport {
  readonly name: string;
}

interface ExistingReport {
  readonly uid: string;
  /** Empty if no Node owns it. */
  readonly nodeUid: string;
  readonly labels: Labels;
  /** Whether it was written while no controller could work. */
  readonly isUnknown: boolean;
}

export interface NodeReportsOptions {
  readonly kube: Pick<KubeClient, 'delete' | 'apply' | 'applyStatus'>;
  readonly nodes: Pick<NodeWatch, 'get' | 'names'>;
  /** The keys of the labels that reports have from their Nodes. */
  readonly labelKeys: readonly string[];
  /** How long a Node without a report waits for its first agent. */
  readonly firstAgentMs: number;
  /** Called for each report that was deleted because its Node no longer exists. */
  readonly onDeleted: (name: string) => void;
}

export class NodeReports {
  readonly #options: NodeReportsOptions;
  readonly #changedNodes = new Set<string>();
  #reports = new Map<string, ExistingReport>();
  /** Whether the list has been compared with all Nodes. */
  #isCompared = false;

  constructor(options: NodeReportsOptions) {
    this.#options = options;
  }

  /** A Node was created, deleted or replaced, or its labels changed. */
  noteChange(name: string): void {
    this.#changedNodes.add(name);
  }

  /** The part of a report that is kept. */
  project(report: KubeObject): WatchedReport {
    const { metadata } = report;
    const owner = metadata.ownerReferences.find(({ kind }) => kind === 'Node');
    const labels = labelsOf(metadata, this.#options.labelKeys);
    return {
      ...{ name: metadata.name, uid: metadata.uid, nodeUid: owner?.uid ?? '' },
      ...{ labels, isUnknown: saysUnknown(report) },
    };
  }

  /** All reports that exist; the next {@link reconcile} compares them with all Nodes. */
  replaceAll(reports: readonly WatchedReport[]): void {
    this.#reports = new Map(reports.map((report) => [report.name, report]));
    this.#isCompared = false;
  }

  /** A report was created, changed or deleted, by us or by others. Returns whether there may be something to do. */
  apply({ type, object }: ListWatchEvent<WatchedReport>): boolean {
    const known = this.#reports.get(object.name);
    if (type === 'DELETED') {
      if (known?.uid !== object.uid) return false;
      this.#reports.delete(object.name);
    } else {
      this.#reports.set(object.name, object);
      if (known !== undefined && isSameReport(known, object)) return false;
    }
    this.noteChange(object.name);
    return true;
  }

  /** Handles the Nodes of {@link noteChange}, and after a list all. */
  async reconcile(queue: ReportQueue, signal: AbortSignal): Promise<void> {
    const { nodes } = this.#options;
    if (!this.#isCompared) {
      const known = [...nodes.names()];
      await queue.markOthersDeleted(known);
      for (const name of [...known, ...this.#reports.keys()]) this.noteChange(name);
      this.#isCompared = true;
    }
    const names = [...this.#changedNodes];
    this.#changedNodes.clear();
    try {
      for (const name of names) await this.#deleteOrphan(name, signal);
      await queue.markDeleted(names.filter((name) => nodes.get(name) === undefined));
      await this.#record(queue, names);
    } catch (error) {
      for (const name of names) this.noteChange(name);
      throw error;
    }
  }

  /** Whether this very Node has a report, with its labels, that a leader wrote. */
  exists(name: string, node: KubeNode): boolean {
    const report = this.#reports.get(name);
    return report?.nodeUid === node.uid && isSameLabels(report.labels, node.labels) && !report.isUnknown;
  }

  /** Writes the report of a Node, in place of that of an earlier Node of this name. Returns when it was created. Throws as {@link putReport}. */
  async write(
    name: string,
    node: KubeNode,
    status: ReportStatus,
    signal: AbortSignal,
  ): Promise<string | null> {
    await this.#deleteOrphan(name, signal);
    const { uid, creationTimestamp } = await putReport(this.#options.kube, name, node, status, signal);
    this.#reports.set(name, { uid, nodeUid: node.uid, labels: node.labels, isUnknown: false });
    return creationTimestamp;
  }

  /** Deletes the report of this name unless it belongs to the present Node. */
  async #deleteOrphan(name: string, signal: AbortSignal): Promise<void> {
    const { kube, nodes, onDeleted } = this.#options;
    const report = this.#reports.get(name);
    if (report === undefined || report.nodeUid === nodes.get(name)?.uid) return;
    await kube.delete(PLEG_REPORTS, name, report.uid, signal);
    this.#reports.delete(name);
    onDeleted(name);
  }

  /** Records which machines these Nodes are, and queues the reports that they lack. */
  async #record(queue: ReportQueue, names: readonly string[]): Promise<void> {
    const lacking = names.filter((name) => this.#lacksReport(name));
    await queue.addNodes(lacking);
    await queue.recordNodes(
      names.flatMap((name) => {
        const { uid, createdAt = null } = this.#options.nodes.get(name) ?? {};
        return uid === undefined || createdAt === null ? [] : [{ name, uid, createdAt }];
      }),
    );
    await queue.enqueueRewrites(lacking, this.#options.firstAgentMs);
  }

  #lacksReport(name: string): boolean {
    const node = this.#options.nodes.get(name);
    return node !== undefined && !this.exists(name, node);
  }
}

const isSameReport = (one: ExistingReport, other: ExistingReport): boolean =>
  one.uid === other.uid &&
  one.nodeUid === other.nodeUid &&
  one.isUnknown === other.isUnknown &&
  isSameLabels(one.labels, other.labels);

/**
 * Writes a report: first the object, owned by its Node, then the status at the resourceVersion of the object.
 * Throws KubeStatusError 409 if the object changes or is replaced in between.
 */
export async function putReport(
  kube: Pick<KubeClient, 'apply' | 'applyStatus'>,
  name: string,
  node: KubeNode,
  status: ReportStatus,
  signal: AbortSignal,
): Promise<KubeObject['metadata']> {
  // Without controller and blockOwnerDeletion: the Node can be deleted at any time, and the report with it.
  const owner = { apiVersion: 'v1', kind: 'Node', name, uid: node.uid };
  const object = await kube.apply(
    PLEG_REPORTS,
    { ...REPORT_API, metadata: { name, ownerReferences: [owner], labels: node.labels } },
    signal,
  );
  const { resourceVersion } = object.metadata;
  // The API server makes null of an object that loses its last field, and rejects the report for it.
  await kube.applyStatus(
    PLEG_REPORTS,
    { ...REPORT_API, metadata: { name, resourceVersion }, status: withoutEmpty(status) },
    signal,
  );
  return object.metadata;
}
