/*
 * The reports that are in Kubernetes, with the UID of the Node each belongs to. Listed at the start and again now and then,
 * because others may delete a report too; kept up to date by our own writes in between.
 */
import type { KubeClient } from '../kube/client.ts';
import { PLEG_REPORTS } from '../kube/object.ts';
import type { KubeNode } from '../kube/projection.ts';

interface KnownReport {
  readonly uid: string;
  /** Empty where no Node owns it. */
  readonly nodeUid: string;
}

const PAGE = 500;

export class Inventory {
  readonly #kube: KubeClient;
  #reports = new Map<string, KnownReport>();

  constructor(kube: KubeClient) {
    this.#kube = kube;
  }

  /** Lists all reports anew. */
  async load(signal: AbortSignal): Promise<void> {
    const reports = new Map<string, KnownReport>();
    let next = '';
    do {
      const from = next === '' ? {} : { continue: next };
      const page = await this.#kube.list(PLEG_REPORTS, { limit: PAGE, metadataOnly: true, signal, ...from });
      for (const { metadata } of page.items) {
        const owner = metadata.ownerReferences.find(({ kind }) => kind === 'Node');
        reports.set(metadata.name, { uid: metadata.uid, nodeUid: owner?.uid ?? '' });
      }
      next = page.continue;
    } while (next !== '');
    this.#reports = reports;
  }

  names(): string[] {
    return [...this.#reports.keys()];
  }

  /** Whether there is a report of this very Node. */
  has(name: string, node: KubeNode): boolean {
    return this.#reports.get(name)?.nodeUid === node.uid;
  }

  put(name: string, uid: string, node: KubeNode): void {
    this.#reports.set(name, { uid, nodeUid: node.uid });
  }

  /** Deletes the report of this name, unless it is of the Node given. Says whether there was one to delete. */
  async removeUnlessOf(name: string, node: KubeNode | undefined, signal: AbortSignal): Promise<boolean> {
    const known = this.#reports.get(name);
    if (known === undefined || known.nodeUid === node?.uid) return false;
    await this.#kube.delete(PLEG_REPORTS, name, known.uid, signal);
    this.#reports.delete(name);
    return true;
  }
}
