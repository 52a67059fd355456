/*
 * The second witness: all Nodes are listed now and then, and held against what the watch has told.
 *
 * The list and the watch are two moments, so a difference proves nothing yet. Only where the Node itself, asked for after
 * that, still differs, and the watch has had its time, was something not told.
 */
import { jittered } from '../../platform/backoff.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { sleep } from '../../platform/sleep.ts';
import type { KubeClient } from './client.ts';
import { NODES } from './object.ts';
import { isSameNode, type KubeNode, nodeOf } from './projection.ts';

const EVERY_MS = 600_000;
const BACKOFF = { firstMs: 1_000, maxMs: 1_000 };
const PAGE = 500;
/** How long the watch may take to tell what a list shows, as a share of the time between two lists, and at most. */
const GRACE_SHARE = 0.1;
const LONGEST_GRACE_MS = 10_000;
/** More differences than these are looked at the next time. */
const MOST_ASKED = 100;

export interface WitnessOptions {
  readonly kube: KubeClient;
  readonly log: Logger;
  readonly everyMs?: number | undefined;
  /** What the watch knows; null while it knows nothing yet. */
  readonly known: () => ReadonlyMap<string, KubeNode> | null;
  /** Told of each Node that the watch is wrong about, and how it is; undefined where it is gone. */
  readonly correct: (name: string, node: KubeNode | undefined) => void;
}

export interface Witness {
  stop(): Promise<void>;
}

/** Looks until it is stopped; a look that fails is told in the log, and the next one follows in its time. */
export function startWitness(options: WitnessOptions): Witness {
  const { everyMs = EVERY_MS, log } = options;
  const loop = new Loop({
    async work(signal) {
      await sleep(jittered(everyMs, 0.2), signal);
      if (!signal.aborted) await look(options, everyMs, signal);
      return 0;
    },
    onError: (error) =>
      log.warn({ error: messageOf(error) }, 'the Nodes could not be listed beside the watch'),
    backoff: BACKOFF,
  });
  loop.start();
  return loop;
}

async function look(options: WitnessOptions, everyMs: number, signal: AbortSignal): Promise<void> {
  const { kube, log, known, correct } = options;
  const suspects = differing(await listAll(kube, signal), known());
  if (suspects.length === 0) return;
  await sleep(Math.min(LONGEST_GRACE_MS, everyMs * GRACE_SHARE), signal);
  if (signal.aborted) return;
  for (const name of suspects.slice(0, MOST_ASKED)) {
    const before = known()?.get(name);
    const object = await kube.get(NODES, name, signal);
    const node = object === undefined ? undefined : nodeOf(object).node;
    // What the watch told while the Node was asked for is newer than the answer, or the same.
    if (known()?.get(name) !== before || isSameNode(node, before)) continue;
    log.warn({ node: name }, 'the watch did not tell what became of a Node');
    correct(name, node);
  }
}

async function listAll(kube: KubeClient, signal: AbortSignal): Promise<ReadonlyMap<string, KubeNode>> {
  const nodes = new Map<string, KubeNode>();
  let next = '';
  do {
    const from = next === '' ? {} : { continue: next };
    const page = await kube.list(NODES, { limit: PAGE, signal, ...from });
    for (const { name, node } of page.items.map(nodeOf)) nodes.set(name, node);
    next = page.continue;
  } while (next !== '');
  return nodes;
}

function differing(
  listed: ReadonlyMap<string, KubeNode>,
  known: ReadonlyMap<string, KubeNode> | null,
): string[] {
  if (known === null) return [];
  const names = new Set([...listed.keys(), ...known.keys()]);
  return [...names].filter((name) => !isSameNode(listed.get(name), known.get(name)));
}
