/*
 * The containers that rows name, each once.
 */
import type { Container } from '../api.ts';

/** The columns that a row has of its container. */
export interface ContainerColumns {
  readonly containerId: string | null;
  readonly isSandbox: boolean;
  readonly podUid: string | null;
  readonly podNamespace: string | null;
  readonly podName: string | null;
  readonly containerName: string | null;
}

export class ContainerList {
  readonly #places = new Map<string, number>();
  readonly list: Container[] = [];

  /** The place of the row's container; null if the row has none. What one row does not know, another one may. */
  placeOf(row: ContainerColumns): number | null {
    if (row.containerId === null) return null;
    const known = this.#places.get(row.containerId);
    if (known === undefined) {
      this.#places.set(row.containerId, this.list.length);
      return this.list.push(containerOf(row, row.containerId)) - 1;
    }
    if (this.list[known]?.podName === null) this.list[known] = containerOf(row, row.containerId);
    return known;
  }
}

export function containerOf(row: ContainerColumns, id: string): Container {
  const { isSandbox, podUid, podNamespace, podName, containerName } = row;
  return { id, isSandbox, podUid, podNamespace, podName, name: containerName === '' ? null : containerName };
}
