/*
 * The Nodes of the cluster, by name: which Node it is, and its Ready condition. A Node that was deleted and made again under
 * its name has another UID: it is another node.
 *
 * The watch may be wrong in ways that nobody would notice, so all Nodes are listed now and then beside it, as a second
 * witness (witness.ts); what the watch did not tell is corrected and counted.
 */

import type { BackoffOptions } from '../../platform/backoff.ts';
import type { Logger } from '../../platform/log.ts';
import type { Mono } from '../../protocol/units.ts';
import type { KubeClient } from './client.ts';
import { type Followed, follow } from './listWatch.ts';
import { NODES } from './object.ts';
import { isSameNode, type KubeNode, type NamedNode, nodeOf } from './projection.ts';
import { startWitness } from './resync.ts';

/** Told when a Node comes, goes, or is another one under the same name; not for other changes. */
type NodeChanged = (name: string, present: KubeNode | undefined, before: KubeNode | undefined) => void;

/** Told when the Ready condition of a Node is another, and of each Node that comes. */
type ReadyChanged = (name: string, present: KubeNode) => void;

export interface NodeWatch {
  get(name: string): KubeNode | undefined;
  names(): Iterable<string>;
  /** Returns the function that ends it. */
  onChange(callback: NodeChanged): () => void;
  /** The same for Ready conditions; it is told of those that are known at once. */
  onReady(callback: ReadyChanged): () => void;
  /** Whether all Nodes have been listed once: before, a Node that is not known may be there. */
  readonly synced: boolean;
  /** When the API server last answered; null before it first did. */
  readonly lastProgress: Mono | null;
  /** Why the API server is not being followed; null while it is. */
  readonly trouble: string | null;
  stop(): Promise<void>;
}

export interface NodeWatchOptions {
  readonly kube: KubeClient;
  readonly log: Logger;
  readonly backoff?: BackoffOptions;
  readonly watchSeconds?: number;
  /** How often all Nodes are listed beside the watch. */
  readonly witnessMs?: number;
  /** Told of each Node that the watch was wrong about. */
  readonly onMissed?: () => void;
}

/** Starts at once and goes on through every failure until it is stopped. */
export function startNodeWatch(options: NodeWatchOptions): NodeWatch {
  const { kube, log, backoff, watchSeconds, witnessMs, onMissed } = options;
  const nodes = new Map<string, KubeNode>();
  const callbacks = new Set<NodeChanged>();
  const readyCallbacks = new Set<ReadyChanged>();
  const stop = new AbortController();
  let synced = false;
  let lastProgress: Mono | null = null;
  let trouble: string | null = null;

  function put(name: string, present: KubeNode | undefined): void {
    const before = nodes.get(name);
    if (isSameNode(before, present)) return;
    if (present === undefined) nodes.delete(name);
    else nodes.set(name, present);
    if (present !== undefined) for (const callback of readyCallbacks) callback(name, present);
    if (before?.uid === present?.uid) return;
    for (const callback of callbacks) callback(name, present, before);
  }

  function replaceAll(objects: readonly NamedNode[]): void {
    const there = new Map(objects.map(({ name, node }) => [name, node]));
    synced = true;
    for (const name of [...nodes.keys()]) if (!there.has(name)) put(name, undefined);
    for (const [name, node] of there) put(name, node);
  }

  function change({ type, object: { name, node } }: Followed<NamedNode>): void {
    put(name, type === 'DELETED' ? undefined : node);
  }

  const ended = follow({
    kube,
    resource: NODES,
    metadataOnly: false,
    project: nodeOf,
    log,
    signal: stop.signal,
    onList: replaceAll,
    onEvent: change,
    onProgress: (at) => {
      lastProgress = at;
      trouble = null;
    },
    onFailure: (message) => {
      trouble = message;
    },
    backoff,
    watchSeconds,
  });

  const witness = startWitness({
    kube,
    log,
    everyMs: witnessMs,
    known: () => (synced ? nodes : null),
    correct: (name, node) => {
      put(name, node);
      onMissed?.();
    },
  });

  return {
    get: (name) => nodes.get(name),
    names: () => nodes.keys(),
    onChange(callback) {
      callbacks.add(callback);
      return () => callbacks.delete(callback);
    },
    onReady(callback) {
      readyCallbacks.add(callback);
      for (const [name, node] of nodes) callback(name, node);
      return () => readyCallbacks.delete(callback);
    },
    get synced() {
      return synced;
    },
    get lastProgress() {
      return lastProgress;
    },
    get trouble() {
      return trouble;
    },
    async stop() {
      stop.abort();
      await Promise.all([ended, witness.stop()]);
    },
  };
}
