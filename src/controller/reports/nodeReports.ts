/*
 * The reports in Kubernetes, each with the UID of the Node that it belongs to. Deletes the reports of deleted and replaced Nodes, and queues
 * a report for every Node without one.
 *
 * Our own writes keep the list up to date. Others can delete reports too, so all of them are listed again from time to time.
 */
import { type KubeClient, pagesOf } from '../kube/client.ts';
import type { NodeWatch } from '../kube/nodes.ts';
import { PLEG_REPORTS } from '../kube/object.ts';
import type { KubeNode } from '../kube/projection.ts';
import type { ReportQueue } from './queue.ts';

interface ExistingReport {
  readonly uid: string;
  /** Empty if no Node owns it. */
  readonly nodeUid: string;
}

export interface NodeReportsOptions {
  readonly kube: Pick<KubeClient, 'list' | 'delete'>;
  readonly nodes: Pick<NodeWatch, 'get' | 'names'>;
  /** Called for each report that was deleted because its Node no longer exists. */
  readonly onDeleted: (name: string) => void;
}

export class NodeReports {
  readonly #options: NodeReportsOptions;
  readonly #changedNodes = new Set<string>();
  #reports = new Map<string, ExistingReport>();

  constructor(options: NodeReportsOptions) {
    this.#options = options;
  }

  /** A Node was created, deleted or replaced. */
  noteChange(name: string): void {
    this.#changedNodes.add(name);
  }

  /** Lists all reports, and compares them with all Nodes. */
  async reconcileAll(queue: ReportQueue, signal: AbortSignal): Promise<void> {
    this.#reports = await this.#list(signal);
    const nodes = [...this.#options.nodes.names()];
    await queue.markOthersDeleted(nodes);
    await queue.enqueueRewrites(nodes.filter((name) => this.#lacksReport(name)));
    for (const name of [...this.#reports.keys()]) await this.deleteOrphan(name, signal);
  }

  /** Handles the Nodes of {@link noteChange}. What fails here is left to {@link reconcileAll}. */
  async reconcileChanged(queue: ReportQueue, signal: AbortSignal): Promise<void> {
    const names = [...this.#changedNodes];
    this.#changedNodes.clear();
    for (const name of names) await this.deleteOrphan(name, signal);
    await queue.markDeleted(names.filter((name) => this.#options.nodes.get(name) === undefined));
    await queue.enqueueRewrites(names.filter((name) => this.#lacksReport(name)));
  }

  /** Whether this very Node has a report. */
  exists(name: string, node: KubeNode): boolean {
    return this.#reports.get(name)?.nodeUid === node.uid;
  }

  noteWrite(name: string, uid: string, node: KubeNode): void {
    this.#reports.set(name, { uid, nodeUid: node.uid });
  }

  /** Deletes the report of this name unless it belongs to the present Node. */
  async deleteOrphan(name: string, signal: AbortSignal): Promise<void> {
    const { kube, nodes, onDeleted } = this.#options;
    const report = this.#reports.get(name);
    if (report === undefined || report.nodeUid === nodes.get(name)?.uid) return;
    await kube.delete(PLEG_REPORTS, name, report.uid, signal);
    this.#reports.delete(name);
    onDeleted(name);
  }

  #lacksReport(name: string): boolean {
    const node = this.#options.nodes.get(name);
    return node !== undefined && !this.exists(name, node);
  }

  async #list(signal: AbortSignal): Promise<Map<string, ExistingReport>> {
    const reports = new Map<string, ExistingReport>();
    for await (const { items } of pagesOf(this.#options.kube, PLEG_REPORTS, { metadataOnly: true, signal })) {
      for (const { metadata } of items) {
        const owner = metadata.ownerReferences.find(({ kind }) => kind === 'Node');
        reports.set(metadata.name, { uid: metadata.uid, nodeUid: owner?.uid ?? '' });
      }
    }
    return reports;
  }
}
