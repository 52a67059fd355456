/*
 * The keys of nodes that are valid, and whether the cluster requires signatures, read from Postgres now and then: no batch costs a query.
 *
 * A key that another controller has enrolled is found when it is first used: what is not known is looked up, but for all nodes together,
 * and at most a few times a second, however many batches are forged. A batch that comes just after a look-up waits for the next one,
 * unless too many wait already. Only the clock of Postgres decides when a key expires.
 */
import type { KeyObject } from 'node:crypto';
import { and, eq, gt, sql } from 'drizzle-orm';
import { monoNow } from '../../platform/clock.ts';
import { publicKeyOf } from '../../protocol/signature.ts';
import { between, type Mono, millis, mono, shift } from '../../protocol/units.ts';
import { databaseNow, typed } from '../../store/expressions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { float8 } from '../../store/schema/columns.ts';
import { cluster, node, nodeKey } from '../../store/schema/tables.ts';
import { nullable } from '../../store/statement.ts';

const REFRESH_AFTER = millis(30_000);
const MIN_SPACING = millis(250);
/** More do not wait: honest batches are read beside forged ones. */
export const MAX_WAITING = 4;

interface NodeKey {
  readonly key: KeyObject;
  readonly expiresAt: Mono;
}

export class NodeKeys {
  readonly #store: SqlRunner;
  readonly #clusterId: number;
  readonly #now: typeof monoNow;
  #keys = new Map<string, NodeKey[]>();
  #areRequired = false;
  /** By their text, so that a look at all nodes parses only what is new. */
  #parsed = new Map<string, KeyObject | null>();
  #readAt = mono(Number.NEGATIVE_INFINITY);
  #reading: Promise<void> | null = null;
  /** How many wait for the next look. */
  #waiting = 0;

  constructor(store: SqlRunner, clusterId: number, now = monoNow) {
    this.#store = store;
    this.#clusterId = clusterId;
    this.#now = now;
  }

  /** The valid keys of a node. Throws if they are not known and Postgres is unavailable. */
  async of(node: string): Promise<readonly KeyObject[]> {
    if (between(this.#readAt, this.#now()) > REFRESH_AFTER) await this.#refresh();
    return this.#valid(node);
  }

  /** The same, after a look at what other controllers have enrolled until now. */
  async renewedOf(node: string): Promise<readonly KeyObject[]> {
    const asked = this.#now();
    await this.#endOfRead();
    const tooSoon = between(this.#now(), shift(this.#readAt, MIN_SPACING));
    const mayRead = tooSoon <= 0 || (await this.#waited(tooSoon / 1000));
    // Another one that waited may have read meanwhile.
    if (mayRead && this.#readAt <= asked) await this.#refresh();
    return this.#valid(node);
  }

  /** Returns whether it waited: not if too many do. */
  async #waited(ms: number): Promise<boolean> {
    if (this.#waiting >= MAX_WAITING) return false;
    this.#waiting += 1;
    await new Promise((resolve) => setTimeout(resolve, ms));
    this.#waiting -= 1;
    return true;
  }

  /** Whether the store said at the last look that every node has to sign. */
  get areRequired(): boolean {
    return this.#areRequired;
  }

  /** Reads all keys, because one was enrolled. */
  async enrolled(): Promise<void> {
    await this.#endOfRead();
    await this.#refresh();
  }

  /** A read that is under way may have begun before a key was enrolled. */
  async #endOfRead(): Promise<void> {
    await this.#reading?.catch(() => 'whoever began it handles its error');
  }

  #refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    const at = this.#now();
    const valid = await readValidKeys(this.#store, this.#clusterId);
    const requiredSince = valid[0]?.requiredSince ?? null;
    const keys = new Map<string, NodeKey[]>();
    const parsed = new Map<string, KeyObject | null>();
    for (const { node, publicKey, validForMs } of valid) {
      if (node === null || publicKey === null || validForMs === null) continue;
      const text = publicKey.toString('base64url');
      const known = this.#parsed.get(text);
      const key = known === undefined ? publicKeyOf(text) : known;
      parsed.set(text, key);
      if (key === null) continue;
      keys.set(node, [...(keys.get(node) ?? []), { key, expiresAt: shift(at, millis(validForMs)) }]);
    }
    this.#keys = keys;
    this.#parsed = parsed;
    this.#areRequired = requiredSince !== null;
    this.#readAt = at;
  }

  #valid(node: string): readonly KeyObject[] {
    const now = this.#now();
    return (this.#keys.get(node) ?? []).filter(({ expiresAt }) => expiresAt > now).map(({ key }) => key);
  }
}

/**
 * A row without a key if no key is valid. The clocks of controllers do not count: Postgres says for how long keys are still valid.
 */
function readValidKeys(store: SqlRunner, clusterId: number) {
  const validForMs = typed(
    nullable(float8),
    sql`(extract(epoch FROM ${nodeKey.expires_at} - now()) * 1000)::float8`,
  );
  return store.query((db) =>
    db
      .select({
        requiredSince: cluster.signatures_required_since,
        ...{ node: node.name, publicKey: nodeKey.public_key, validForMs },
      })
      .from(cluster)
      .leftJoin(nodeKey, and(eq(nodeKey.cluster_id, cluster.cluster_id), gt(nodeKey.expires_at, databaseNow)))
      .leftJoin(node, eq(node.node_id, nodeKey.node_id))
      .where(eq(cluster.cluster_id, clusterId)),
  );
}
