/*
 * The Nodes of the cluster, by name. A Node that was deleted and made again under its name has another UID: it is another
 * node.
 */
import type { Mono } from '../../evidence/units.ts';
import type { Logger } from '../../log.ts';
import type { BackoffOptions } from './backoff.ts';
import type { KubeClient, WatchEvent } from './client.ts';
import { follow } from './follow.ts';
import { type KubeObject, NODES } from './object.ts';

export interface KubeNode {
  readonly uid: string;
}

/** Told when a Node comes, goes, or is another one under the same name; not for other changes. */
export type NodeChanged = (name: string, present: KubeNode | undefined, before: KubeNode | undefined) => void;

export interface NodeWatch {
  get(name: string): KubeNode | undefined;
  names(): Iterable<string>;
  /** Returns the function that ends it. */
  onChange(callback: NodeChanged): () => void;
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
}

/** Starts at once and goes on through every failure until it is stopped. */
export function startNodeWatch({ kube, log, backoff, watchSeconds }: NodeWatchOptions): NodeWatch {
  const nodes = new Map<string, KubeNode>();
  const callbacks = new Set<NodeChanged>();
  const stop = new AbortController();
  let synced = false;
  let lastProgress: Mono | null = null;
  let trouble: string | null = null;

  function put(name: string, present: KubeNode | undefined): void {
    const before = nodes.get(name);
    if (before?.uid === present?.uid) return;
    if (present === undefined) nodes.delete(name);
    else nodes.set(name, present);
    for (const callback of callbacks) callback(name, present, before);
  }

  function replaceAll(objects: readonly KubeObject[]): void {
    const there = new Map(objects.map(({ metadata }) => [metadata.name, { uid: metadata.uid }]));
    synced = true;
    for (const name of [...nodes.keys()]) if (!there.has(name)) put(name, undefined);
    for (const [name, node] of there) put(name, node);
  }

  function change({ type, object }: WatchEvent): void {
    const { name, uid } = object.metadata;
    put(name, type === 'DELETED' ? undefined : { uid });
  }

  const ended = follow({
    kube,
    resource: NODES,
    metadataOnly: true,
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

  return {
    get: (name) => nodes.get(name),
    names: () => nodes.keys(),
    onChange(callback) {
      callbacks.add(callback);
      return () => callbacks.delete(callback);
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
      await ended;
    },
  };
}
