/*
 * Records changes of Ready conditions in Postgres. A history says which changes, and where they are stored.
 *
 *   Node watch ──► pending, in order of arrival ──► a change by the rules of the history ──► its table
 *
 * The latest recorded conditions are read at the start, so that a restarted controller records nothing twice and records the end of what
 * another one recorded. Several controllers store a row only once. While the store is unavailable, changes are pending.
 *
 * The store may be restored from an older backup. Therefore the latest conditions are read again from time to time, and what was recorded
 * before and is missing is stored again, unless it is so old that maintenance deleted it, or its Node was deleted before an agent ran on it.
 */
import { eq } from 'drizzle-orm';
import type { KubeNode, ReadyCondition } from '../../kube/projection.ts';
import { readClocks } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { between, type Mono, millis, mono } from '../../protocol/units.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { node } from '../../store/schema/tables.ts';
import { ensureNode } from '../../store/statements.ts';
import type { Store } from '../../store/store.ts';
import type { NodeWatch } from './nodeWatch.ts';

/** Beyond this many pending changes, only the latest of each node is kept. */
const MAX_PENDING = 20_000;
/** This many changes of each node are kept, to be stored again. */
const MAX_KEPT = 20;
const RECHECK_MS = 300_000;
const BACKOFF = { firstMs: 500, maxMs: 30_000 };

const DAY_US = 86_400_000_000;
const MAX_AGE_US = 400 * DAY_US;

/** Every time needs a partition, and anybody who may write Nodes can put any time there. */
export const plausibleTime = (at: number, now: number): number =>
  at > now - MAX_AGE_US && at < now + DAY_US ? at : now;

interface PendingCondition {
  readonly name: string;
  readonly node: KubeNode;
}

/** A kind of changes. `at` is in microseconds since 1970. */
export interface ConditionHistory<Change extends { readonly at: number }> {
  /** The log message for each change, with its fields. */
  readonly changed: string;
  /** Whether a Node with such a change stays in the store after it was deleted, though no agent ever ran on it (markNodesDeleted.sql). */
  readonly keepsNode: boolean;
  fields(change: Change): object;
  /** Whether a condition changed since the latest recorded change; null if it did not, or was not recorded. */
  change(before: Change | null, ready: ReadyCondition, now: number): Change | null;
  /** The latest recorded change of each node, by its name. */
  readLast(store: SqlRunner, clusterId: number): Promise<(readonly [string, Change])[]>;
  insert(runner: SqlRunner, clusterId: number, name: string, change: Change): Promise<void>;
}

export interface ConditionRecorderOptions<Change extends { readonly at: number }> {
  readonly history: ConditionHistory<Change>;
  readonly store: Store;
  readonly cluster: string;
  readonly nodes: Pick<NodeWatch, 'get' | 'onState'>;
  readonly log: Logger;
  /** How often it is checked that the store still has what was recorded, in milliseconds. Default: 5 minutes. */
  readonly recheckMs?: number;
  /** Called for each recorded change. */
  readonly onRecorded?: () => void;
  readonly clocks?: typeof readClocks;
}

export interface ConditionRecorder {
  stop(): Promise<void>;
}

/** Runs until it is stopped, and survives every failure. */
export const startConditionRecorder = <Change extends { readonly at: number }>(
  options: ConditionRecorderOptions<Change>,
): ConditionRecorder => new Recorder(options);

const latestOf = (changes: readonly { readonly at: number }[] = []): number =>
  changes.at(-1)?.at ?? -Infinity;

class Recorder<Change extends { readonly at: number }> {
  readonly #options: ConditionRecorderOptions<Change>;
  readonly #loop: Loop;
  readonly #unsubscribe: () => void;
  #pending: PendingCondition[] = [];
  #clusterId = 0;
  /** By the name of the node, the latest change and those before it as far as they are kept, oldest first; null until it is read from the store. */
  #recorded: Map<string, readonly Change[]> | null = null;
  readonly #clocks: typeof readClocks;
  readonly #recheckMs: number;
  #checkedAt: Mono = mono(0);

  constructor(options: ConditionRecorderOptions<Change>) {
    this.#options = options;
    this.#clocks = options.clocks ?? readClocks;
    this.#recheckMs = options.recheckMs ?? RECHECK_MS;
    this.#loop = new Loop({
      work: (signal) => this.#recordAll(signal),
      onError: (error) =>
        options.log.warn({ error: messageOf(error) }, 'Node conditions were not stored, retrying'),
      backoff: BACKOFF,
    });
    this.#unsubscribe = options.nodes.onState((name, node) => this.#add({ name, node }));
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
    return this.#recheckMs;
  }

  async #readRecorded(): Promise<Map<string, readonly Change[]>> {
    const before = this.#recorded;
    const now = this.#clocks();
    if (before !== null && between(this.#checkedAt, now.mono) < millis(this.#recheckMs)) return before;
    const recorded = await this.#readLatest();
    const { findingRetentionDays } = await this.#options.store.readSettings();
    // Older rows are deleted by maintenance.
    const horizon = now.wall - findingRetentionDays * DAY_US;
    const forgotten = await this.#forgotten(
      [...(before?.keys() ?? [])].filter((name) => !recorded.has(name)),
    );
    for (const [name, changes] of before ?? []) {
      if (forgotten.has(name)) continue;
      const stored = latestOf(recorded.get(name));
      const kept = changes.filter(({ at }) => at >= horizon);
      if (stored < latestOf(kept)) await this.#storeAgain(name, kept);
      if (stored <= latestOf(changes)) recorded.set(name, changes);
    }
    this.#recorded = recorded;
    this.#checkedAt = now.mono;
    return recorded;
  }

  async #readLatest(): Promise<Map<string, readonly Change[]>> {
    const { store, cluster, history } = this.#options;
    this.#clusterId = await store.ensureCluster(cluster);
    const last = await history.readLast(store, this.#clusterId);
    return new Map(last.map(([name, change]) => [name, [change]]));
  }

  /** Those of these Nodes that were deleted, and of which nothing is left. */
  async #forgotten(names: readonly string[]): Promise<ReadonlySet<string>> {
    const { store, history, nodes } = this.#options;
    const gone = history.keepsNode ? [] : names.filter((name) => nodes.get(name) === undefined);
    if (gone.length === 0) return new Set();
    const rows = await store.query((db) =>
      db.select({ name: node.name }).from(node).where(eq(node.cluster_id, this.#clusterId)),
    );
    const left = new Set(rows.map(({ name }) => name));
    return new Set(gone.filter((name) => !left.has(name)));
  }

  async #storeAgain(name: string, changes: readonly Change[]): Promise<void> {
    this.#options.log.warn(
      { node: name, changes: changes.length },
      'conditions of a Node are missing in the store, they are stored again',
    );
    for (const change of changes)
      await this.#options.store.transaction((runner) => this.#insert(runner, name, '', change));
  }

  async #record({ name, node }: PendingCondition, recorded: Map<string, readonly Change[]>): Promise<void> {
    const { store, history, log, onRecorded } = this.#options;
    if (node.ready === null) return;
    const before = recorded.get(name) ?? [];
    const change = history.change(before.at(-1) ?? null, node.ready, this.#clocks().wall);
    if (change === null) return;
    await store.transaction((runner) => this.#insert(runner, name, node.uid, change));
    recorded.set(name, [...before.slice(1 - MAX_KEPT), change]);
    log.info({ node: name, ...history.fields(change) }, history.changed);
    onRecorded?.();
  }

  async #insert(runner: SqlRunner, name: string, uid: string, change: Change): Promise<void> {
    await runner.run(ensureNode, [this.#clusterId, name, uid]);
    await this.#options.history.insert(runner, this.#clusterId, name, change);
  }
}
