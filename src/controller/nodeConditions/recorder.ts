/*
 * Records the PLEG-related transitions of Ready conditions, one node after the other, until they are in Postgres.
 *
 *   Node watch ──► waiting, in the order in which they were told ──► transition? ──► store.node_condition
 *
 * What was recorded last is read from the store at the start, so that a controller that comes back says nothing twice and
 * closes what another one left open. Several controllers record the same rows, once. A store that is away is waited for.
 */

import { wallNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { dayOf } from '../ingest/recordValidation.ts';
import type { NodeWatch } from '../kube/nodes.ts';
import type { KubeNode } from '../kube/projection.ts';
import ensureNode from '../store/sql/ensureNode.sql';
import makePartition from '../store/sql/makePartition.sql';
import type { Runner, Store } from '../store/store.ts';
import { plegTrouble } from './plegTrouble.ts';
import insertNodeCondition from './sql/insertNodeCondition.sql';
import readLastNodeConditions from './sql/readLastNodeConditions.sql';
import { type Recorded, type Transition, transitionOf } from './transition.ts';

/** More changes than these wait for a store that is away only as the latest of each node. */
const MOST_WAITING = 20_000;
const BACKOFF = { firstMs: 500, maxMs: 30_000 };

interface Waiting {
  readonly name: string;
  readonly node: KubeNode;
}

export interface RecorderOptions {
  readonly store: Store;
  readonly cluster: string;
  readonly nodes: Pick<NodeWatch, 'onReady'>;
  readonly log: Logger;
  /** Told of each transition that was recorded. */
  readonly onRecorded?: () => void;
}

export interface ConditionRecorder {
  stop(): Promise<void>;
}

type LastRow = { name: string; status: string; message: string; at: string };

/** Starts at once and goes on through every failure until it is stopped. */
export function startConditionRecorder(options: RecorderOptions): ConditionRecorder {
  const recorder = new Recorder(options);
  recorder.start();
  return recorder;
}

class Recorder {
  readonly #options: RecorderOptions;
  readonly #loop: Loop;
  readonly #ignoreNodes: () => void;
  #waiting: Waiting[] = [];
  #clusterId = 0;
  /** By the name of the node; null until the store has told it. */
  #recorded: Map<string, Recorded> | null = null;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#loop = new Loop({
      work: (signal) => this.#recordAll(signal),
      onError: (error) =>
        options.log.warn({ error: messageOf(error) }, 'conditions of Nodes wait for the store'),
      backoff: BACKOFF,
    });
    this.#ignoreNodes = options.nodes.onReady((name, node) => this.#take({ name, node }));
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#ignoreNodes();
    await this.#loop.stop();
  }

  #take(change: Waiting): void {
    if (this.#waiting.length >= MOST_WAITING) {
      this.#waiting = this.#waiting.filter(({ name }) => name !== change.name);
    }
    this.#waiting.push(change);
    this.#loop.wake();
  }

  /** Records everything that waits. Returns the wait for the next change. */
  async #recordAll(signal: AbortSignal): Promise<number> {
    const recorded = await this.#known();
    for (let next = this.#waiting[0]; next !== undefined && !signal.aborted; next = this.#waiting[0]) {
      await this.#record(next, recorded);
      // Another may have been put in its place meanwhile.
      if (this.#waiting[0] === next) this.#waiting.shift();
    }
    return Number.POSITIVE_INFINITY;
  }

  async #known(): Promise<Map<string, Recorded>> {
    if (this.#recorded !== null) return this.#recorded;
    const { store, cluster } = this.#options;
    this.#clusterId = await store.clusterId(cluster);
    const { rows } = await store.run<LastRow>({ text: readLastNodeConditions }, [this.#clusterId]);
    this.#recorded = new Map(
      rows.map(({ name, status, message, at }) => {
        const ill = status !== 'True' && plegTrouble(message) !== null;
        return [name, { ill, status, at: Number(at) }];
      }),
    );
    return this.#recorded;
  }

  async #record({ name, node }: Waiting, recorded: Map<string, Recorded>): Promise<void> {
    if (node.ready === null) return;
    const transition = transitionOf(recorded.get(name) ?? null, node.ready, wallNow());
    if (transition === null) return;
    await this.#options.store.transaction((runner) => this.#insert(runner, name, node.uid, transition));
    const { ill, status, at } = transition;
    recorded.set(name, { ill, status, at });
    this.#options.log.info({ node: name, ill, status }, 'PLEG condition of a Node');
    this.#options.onRecorded?.();
  }

  async #insert(runner: Runner, name: string, uid: string, transition: Transition): Promise<void> {
    const { at, status, reason, message, seenAgoMs, thresholdMs } = transition;
    await runner.run({ text: ensureNode }, [this.#clusterId, name, uid]);
    await runner.run({ text: makePartition }, ['node_condition', dayOf(at)]);
    const values = [this.#clusterId, name, at, status, reason, message, seenAgoMs, thresholdMs];
    await runner.run({ text: insertNodeCondition }, values);
  }
}
