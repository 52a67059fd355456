/*
 * The keys of nodes that are valid, read from Postgres now and then: no batch costs a query.
 *
 * A key that another controller has enrolled is found when it is first used: what is not known is looked up, but for all nodes together,
 * and at most a few times a second, however many batches are forged. A batch that comes just after a look-up waits for the next one,
 * unless too many wait already. Only the clock of Postgres decides when a key expires.
 */
import type { KeyObject } from 'node:crypto';
import { publicKeyOf } from '../../protocol/signature.ts';
import type { SqlRunner } from '../../store/runner.ts';
import readNodeKeys from './sql/readNodeKeys.sql';

const REFRESH_MS = 30_000;
const MIN_SPACING_MS = 250;
/** More do not wait: honest batches are read beside forged ones. */
export const MAX_WAITING = 4;

interface NodeKey {
  readonly key: KeyObject;
  /** On the clock of `performance.now()`. */
  readonly expiresAt: number;
}

export class NodeKeys {
  readonly #store: SqlRunner;
  readonly #clusterId: number;
  #keys = new Map<string, NodeKey[]>();
  /** By their hex, so that a look at all nodes parses only what is new. */
  #parsed = new Map<string, KeyObject | null>();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;
  /** How many wait for the next look. */
  #waiting = 0;

  constructor(store: SqlRunner, clusterId: number) {
    this.#store = store;
    this.#clusterId = clusterId;
  }

  /** The valid keys of a node. Throws if they are not known and Postgres is unavailable. */
  async of(node: string): Promise<readonly KeyObject[]> {
    if (performance.now() - this.#readAt > REFRESH_MS) await this.#refresh();
    return this.#valid(node);
  }

  /** The same, after a look at what other controllers have enrolled until now. */
  async renewedOf(node: string): Promise<readonly KeyObject[]> {
    const asked = performance.now();
    await this.#endOfRead();
    const tooSoonMs = this.#readAt + MIN_SPACING_MS - performance.now();
    const mayRead = tooSoonMs <= 0 || (await this.#waited(tooSoonMs));
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
    const at = performance.now();
    const { rows } = await this.#store.run<{ node: string; publicKey: string; validFor: number }>(
      { text: readNodeKeys },
      [this.#clusterId],
    );
    const keys = new Map<string, NodeKey[]>();
    const parsed = new Map<string, KeyObject | null>();
    for (const { node, publicKey, validFor } of rows) {
      const known = this.#parsed.get(publicKey);
      const key =
        known === undefined ? publicKeyOf(Buffer.from(publicKey, 'hex').toString('base64url')) : known;
      parsed.set(publicKey, key);
      if (key === null) continue;
      keys.set(node, [...(keys.get(node) ?? []), { key, expiresAt: at + validFor * 1000 }]);
    }
    this.#keys = keys;
    this.#parsed = parsed;
    this.#readAt = at;
  }

  #valid(node: string): readonly KeyObject[] {
    const now = performance.now();
    return (this.#keys.get(node) ?? []).filter(({ expiresAt }) => expiresAt > now).map(({ key }) => key);
  }
}
