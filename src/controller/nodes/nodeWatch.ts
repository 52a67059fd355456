/*
 * The Nodes of the cluster, by name: their UID, their Ready condition, and what reports and the database have of their labels and system. A Node
 * that is deleted and created again under the same name has another UID and counts as another Node.
 *
 * Changes that the watch missed and a later list shows are applied and counted.
 */

import type { KubeClient } from '../../kube/client.ts';
import { type ListWatchEvent, listWatch } from '../../kube/listWatch.ts';
import { type KubeObject, NODES } from '../../kube/object.ts';
import { isSameLabels, isSameNode, type KubeNode, type NamedNode, nodeOf } from '../../kube/projection.ts';
import { rightsOn } from '../../kube/rights.ts';
import type { BackoffOptions } from '../../platform/backoff.ts';
import type { Logger } from '../../platform/log.ts';

export const NODE_RIGHTS = rightsOn(NODES, ['list', 'watch']);

/** Called when a Node is created, deleted or replaced, and when a label changes that reports have too; not for other changes. */
type NodeListener = (name: string, present: KubeNode | undefined, before: KubeNode | undefined) => void;

/** Called when a Node is created and when its Ready condition, a chosen label or what is stored of it changes. */
type StateListener = (name: string, present: KubeNode) => void;

export interface NodeWatch {
  get(name: string): KubeNode | undefined;
  names(): Iterable<string>;
  onChange(listener: NodeListener): void;
  /** Calls the listener at once for every known Node. Returns a function that removes the listener. */
  onState(listener: StateListener): () => void;
  /** Whether all Nodes have been listed once. Before that, unknown Nodes may exist. */
  readonly synced: boolean;
  /** Why the last request failed; null if it did not. */
  readonly error: string | null;
  stop(): Promise<void>;
}

export interface NodeWatchOptions {
  readonly kube: KubeClient;
  readonly log: Logger;
  /** The keys of the labels that reports have too. Default: none. */
  readonly labelKeys?: readonly string[];
  /** The keys of the labels that are stored. Default: none. */
  readonly storedLabelKeys?: readonly string[];
  readonly backoff?: BackoffOptions;
  readonly relistMs?: number;
  /** Called for each Node whose change the watch missed. */
  readonly onMissed?: () => void;
}

/** Runs until it is stopped, and survives every failure. */
export function startNodeWatch({
  kube,
  log,
  labelKeys = [],
  storedLabelKeys = [],
  backoff,
  relistMs,
  onMissed,
}: NodeWatchOptions): NodeWatch {
  const keys = { reported: labelKeys, stored: storedLabelKeys };
  const project = (object: KubeObject) => nodeOf(object, keys);
  const nodes = new Map<string, KubeNode>();
  const listeners = new Set<NodeListener>();
  const stateListeners = new Set<StateListener>();
  const stop = new AbortController();
  let synced = false;
  let error: string | null = null;

  /** Returns whether it changed. */
  function put(name: string, present: KubeNode | undefined): boolean {
    const before = nodes.get(name);
    if (isSameNode(before, present)) return false;
    if (present === undefined) nodes.delete(name);
    else nodes.set(name, present);
    if (present !== undefined) for (const listener of stateListeners) listener(name, present);
    if (before?.uid === present?.uid && isSameLabels(before?.labels ?? {}, present?.labels ?? {}))
      return true;
    for (const listener of listeners) listener(name, present, before);
    return true;
  }

  function replaceAll(listed: readonly NamedNode[], isRelist: boolean): void {
    const present = new Map(listed.map(({ name, node }) => [name, node]));
    synced = true;
    const gone = [...nodes.keys()].filter((name) => !present.has(name));
    for (const name of [...gone, ...present.keys()]) {
      if (!put(name, present.get(name)) || !isRelist) continue;
      log.warn({ node: name }, 'node watch missed a change');
      onMissed?.();
    }
  }

  function apply({ type, object: { name, node } }: ListWatchEvent<NamedNode>): void {
    put(name, type === 'DELETED' ? undefined : node);
  }

  const watching = listWatch({
    kube,
    resource: NODES,
    project,
    log,
    signal: stop.signal,
    onList: replaceAll,
    onEvent: apply,
    onProgress: () => {
      error = null;
    },
    onFailure: (message) => {
      error = message;
    },
    backoff,
    relistMs,
  });

  return {
    get: (name) => nodes.get(name),
    names: () => nodes.keys(),
    onChange(listener) {
      listeners.add(listener);
    },
    onState(listener) {
      stateListeners.add(listener);
      for (const [name, node] of nodes) listener(name, node);
      return () => stateListeners.delete(listener);
    },
    get synced() {
      return synced;
    },
    get error() {
      return error;
    },
    async stop() {
      stop.abort();
      await watching;
    },
  };
}
