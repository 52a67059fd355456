/*
 * Records the PLEG-related changes of Ready conditions in Postgres.
 *
 *   Node watch ──► pending, in order of arrival ──► conditionChange ──► store.node_condition
 *
 * The latest recorded conditions are read at the start, so that a restarted controller records nothing twice and records the end of what
 * another one recorded. Several controllers store a row only once. While the store is unavailable, changes are pending.
 */
import { wallNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import type { NodeWatch } from '../kube/nodes.ts';
import type { KubeNode } from '../kube/projection.ts';
import { dayOf, ensurePartition } from '../store/partitions.ts';
import ensureNode from '../store/sql/ensureNode.sql';
import type { SqlRunner, Store } from '../store/store.ts';
import { type ConditionChange, conditionChange, type RecordedCondition } from './conditionChange.ts';
import { parsePlegMessage } from './plegMessage.ts';
import insertNodeCondition from './sql/insertNodeCondition.sql';
import readLastNodeConditions from './sql/readLastNodeConditions.sql';

/** Beyond this many pending changes, only the latest of each node is kept. */
const MAX_PENDING = 20_000;
const BACKOFF = { firstMs: 500, maxMs: 30_000 };

interface PendingCondition {
  readonly name: string;
  readonly node: KubeNode;
}

export interface ConditionRecorderOptions {
  readonly store: Store;
  readonly cluster: string;
  readonly nodes: Pick<NodeWatch, 'onReady'>;
  readonly log: Logger;
  /** Called for each recorded change. */
  readonly onRecorded?: () => void;
}

export interface ConditionRecorder {
  stop(): Promise<void>;
}

type LastConditionRow = { name: string; status: string; message: string; at: string };

/** Runs until it is stopped, and survives every failure. */
export function startConditionRecorder(options: ConditionRecorderOptions): ConditionRecorder {
  const recorder = new Recorder(options);
  recorder.start();
  return recorder;
}

class Recorder {
  readonly #options: ConditionRecorderOptions;
  readonly #loop: Loop;
  readonly #unsubscribe: () => void;
  #pending: PendingCondition[] = [];
  #clusterId = 0;
  /** By the name of the node; null until it is read from the store. */
  #recorded: Map<string, RecordedCondition> | null = null;

  constructor(options: ConditionRecorderOptions) {
    this.#options = options;
    this.#loop = new Loop({
      work: (signal) => this.#recordAll(signal),
      onError: (error) =>
        options.log.warn({ error: messageOf(error) }, 'Node conditions were not stored, retrying'),
      backoff: BACKOFF,
    });
    this.#unsubscribe = options.nodes.onReady((name, node) => this.#add({ name, node }));
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#loop.stop();
  }

  #add(condition: PendingCondition): void {
    if (this.#pending.length >= MAX_PENDING) {
      this.#pending = this.#pending.filter(({ name }) => name !== condition.name);
    }
    this.#pending.push(condition);
    this.#loop.wake();
  }

  /** Records everything that is pending. Returns the wait for the next change. */
  async #recordAll(signal: AbortSignal): Promise<number> {
    const recorded = await this.#readRecorded();
    for (let next = this.#pending[0]; next !== undefined && !signal.aborted; next = this.#pending[0]) {
      await this.#record(next, recorded);
      // Meanwhile #add may have removed it.
      if (this.#pending[0] === next) this.#pending.shift();
    }
    return Number.POSITIVE_INFINITY;
  }

  async #readRecorded(): Promise<Map<string, RecordedCondition>> {
    if (this.#recorded !== null) return this.#recorded;
    const { store, cluster } = this.#options;
    this.#clusterId = await store.ensureCluster(cluster);
    const { rows } = await store.run<LastConditionRow>({ text: readLastNodeConditions }, [this.#clusterId]);
    this.#recorded = new Map(
      rows.map(({ name, status, message, at }) => {
        const unhealthy = status !== 'True' && parsePlegMessage(message) !== null;
        return [name, { unhealthy, status, at: Number(at) }];
      }),
    );
    return this.#recorded;
  }

  async #record({ name, node }: PendingCondition, recorded: Map<string, RecordedCondition>): Promise<void> {
    if (node.ready === null) return;
    const change = conditionChange(recorded.get(name) ?? null, node.ready, wallNow());
    if (change === null) return;
    await this.#options.store.transaction((runner) => this.#insert(runner, name, node.uid, change));
    const { unhealthy, status, at } = change;
    recorded.set(name, { unhealthy, status, at });
    this.#options.log.info({ node: name, unhealthy, status }, 'PLEG condition of a Node changed');
    this.#options.onRecorded?.();
  }

  async #insert(runner: SqlRunner, name: string, uid: string, change: ConditionChange): Promise<void> {
    const { at, status, reason, message, seenAgoMs, thresholdMs } = change;
    await runner.run({ text: ensureNode }, [this.#clusterId, name, uid]);
    await ensurePartition(runner, 'node_condition', dayOf(at));
    const values = [this.#clusterId, name, at, status, reason, message, seenAgoMs, thresholdMs];
    await runner.run({ text: insertNodeCondition }, values);
  }
}
