/*
 * Lists all Nodes from time to time and compares them with what the watch has delivered.
 *
 * List and watch show different moments, so a difference proves nothing yet. The watch has missed a change only if the Node, read again
 * after the watch had time to catch up, still differs.
 */
import { jittered } from '../platform/backoff.ts';
import { messageOf } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import { Loop } from '../platform/loop.ts';
import { sleep } from '../platform/sleep.ts';
import { type KubeClient, pagesOf } from './client.ts';
import { type KubeObject, NODES } from './object.ts';
import { isSameNode, type KubeNode, type NamedNode } from './projection.ts';

const PERIOD_MS = 600_000;
const BACKOFF = { firstMs: 1_000, maxMs: 1_000 };
/** How long the watch may take to deliver what a list shows: a share of the period, and at most this long. */
const CATCH_UP_SHARE = 0.1;
const MAX_CATCH_UP_MS = 10_000;
/** The next resync checks the differences beyond these. */
const MAX_READS = 100;

export interface ResyncOptions {
  readonly kube: Pick<KubeClient, 'list' | 'get'>;
  readonly log: Logger;
  readonly project: (object: KubeObject) => NamedNode;
  /** Default: 10 minutes. */
  readonly periodMs?: number | undefined;
  /** The Nodes according to the watch; null before its first list. */
  readonly watched: () => ReadonlyMap<string, KubeNode> | null;
  /** Called with each Node whose change the watch missed; undefined if the Node was deleted. */
  readonly onMissed: (name: string, node: KubeNode | undefined) => void;
}

export interface Resync {
  stop(): Promise<void>;
}

/** Runs until it is stopped. A failed resync is logged. */
export function startResync(options: ResyncOptions): Resync {
  const { periodMs = PERIOD_MS, log } = options;
  const loop = new Loop({
    async work(signal) {
      await sleep(jittered(periodMs, 0.2), signal);
      if (!signal.aborted) await resync(options, periodMs, signal);
      return 0;
    },
    onError: (error) => log.warn({ error: messageOf(error) }, 'resync of the Nodes failed'),
    backoff: BACKOFF,
  });
  loop.start();
  return loop;
}

async function resync(options: ResyncOptions, periodMs: number, signal: AbortSignal): Promise<void> {
  const { kube, log, project, watched, onMissed } = options;
  const suspects = differing(await listAll(options, signal), watched());
  if (suspects.length === 0) return;
  await sleep(Math.min(MAX_CATCH_UP_MS, periodMs * CATCH_UP_SHARE), signal);
  if (signal.aborted) return;
  for (const name of suspects.slice(0, MAX_READS)) {
    const before = watched()?.get(name);
    const object = await kube.get(NODES, name, signal);
    const node = object === undefined ? undefined : project(object).node;
    // A change that the watch delivered during the read is at least as new as the response.
    if (watched()?.get(name) !== before || isSameNode(node, before)) continue;
    log.warn({ node: name }, 'node watch missed a change');
    onMissed(name, node);
  }
}

async function listAll(
  { kube, project }: ResyncOptions,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, KubeNode>> {
  const nodes = new Map<string, KubeNode>();
  for await (const { items } of pagesOf(kube, NODES, { signal })) {
    for (const { name, node } of items.map(project)) nodes.set(name, node);
  }
  return nodes;
}

function differing(
  listed: ReadonlyMap<string, KubeNode>,
  watched: ReadonlyMap<string, KubeNode> | null,
): string[] {
  if (watched === null) return [];
  const names = new Set([...listed.keys(), ...watched.keys()]);
  return [...names].filter((name) => !isSameNode(listed.get(name), watched.get(name)));
}
