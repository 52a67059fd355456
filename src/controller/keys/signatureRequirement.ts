/*
 * Since when a cluster requires signatures: a time in the store, which all its controllers follow (nodeKeys.ts), and only the leader writes.
 *
 *   accept    it is cleared
 *   require   it is set
 *   auto      it is set once every node with an agent has had a valid key for an hour without interruption, and no unsigned batch was stored in that
 *             hour. Then it stays, whatever happens: only `accept` clears it
 *
 * The hour begins anew with each leader.
 */
import { eq } from 'drizzle-orm';
import { monoNow } from '../../platform/clock.ts';
import { errorFields } from '../../platform/errors.ts';
import { invariant } from '../../platform/invariant.ts';
import type { Logger } from '../../platform/log.ts';
import { Loop } from '../../platform/loop.ts';
import { between, type Mono, millis } from '../../protocol/units.ts';
import { databaseNow } from '../../store/expressions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { cluster } from '../../store/schema/tables.ts';
import type { Store } from '../../store/store.ts';
import type { AttributionMode } from './attribution.ts';
import { readSignatures, type SignatureState } from './statements.ts';

export interface SignatureRequirementOptions {
  /** In the term of the leader. */
  readonly store: Pick<Store, 'ensureCluster' | 'transaction'>;
  /** The name of the cluster. */
  readonly cluster: string;
  readonly mode: AttributionMode;
  readonly log: Logger;
  /** Null while the database does not answer. */
  readonly onRead: (state: SignatureState | null) => void;
  /** Default: {@link monoNow}. */
  readonly clock?: () => Mono;
  /** How long to wait until it is looked at again. For tests. */
  readonly intervalMs?: number;
}

const INTERVAL_MS = 30_000;
const BACKOFF = { firstMs: 1_000, maxMs: 30_000 };
/** As sql/readSignatures.sql has it for unsigned batches. */
const ALL_SIGN_FOR = millis(3_600_000);

/** Looks at the nodes again and again, until it is stopped. */
export function startSignatureRequirement(options: SignatureRequirementOptions): { stop(): Promise<void> } {
  const { store, cluster: name, log, onRead, intervalMs = INTERVAL_MS } = options;
  const requirement = new SignatureRequirement(options);
  const loop = new Loop({
    async work() {
      const clusterId = await store.ensureCluster(name);
      onRead(await store.transaction((runner) => requirement.update(runner, clusterId)));
      return intervalMs;
    },
    onError(error) {
      onRead(null);
      log.warn(errorFields(error), 'whether signatures are required could not be read or stored, retrying');
    },
    backoff: BACKOFF,
  });
  loop.start();
  return loop;
}

class SignatureRequirement {
  readonly #mode: AttributionMode;
  readonly #log: Logger;
  readonly #clock: () => Mono;
  /** Since when every node with an agent has had a valid key. */
  #enrolledSince: Mono | null = null;

  constructor({ mode, log, clock = monoNow }: SignatureRequirementOptions) {
    this.#mode = mode;
    this.#log = log;
    this.#clock = clock;
  }

  /** Returns what holds from now on. */
  async update(runner: SqlRunner, clusterId: number): Promise<SignatureState> {
    const state = await readState(runner, clusterId);
    const isRequired = this.#isRequired(state);
    if (isRequired === (state.required_since !== null)) return state;
    await runner.query((db) =>
      db
        .update(cluster)
        .set({ signatures_required_since: isRequired ? databaseNow : null })
        .where(eq(cluster.cluster_id, clusterId)),
    );
    this.#log.info({ required: isRequired }, 'requirement of signatures changed');
    return readState(runner, clusterId);
  }

  #isRequired({ required_since, agents, without_key, holding_back }: SignatureState): boolean {
    const now = this.#clock();
    const isEnrolled = agents > 0 && without_key === 0;
    this.#enrolledSince = isEnrolled ? (this.#enrolledSince ?? now) : null;
    if (this.#mode !== 'auto') return this.#mode === 'require';
    if (required_since !== null) return true;
    return (
      holding_back === 0 && this.#enrolledSince !== null && between(this.#enrolledSince, now) >= ALL_SIGN_FOR
    );
  }
}

/** How many nodes that hold it back are named. */
const MAX_NAMES = 5;

export async function readState(runner: SqlRunner, clusterId: number): Promise<SignatureState> {
  const [state] = (await runner.run(readSignatures, [clusterId, MAX_NAMES])).rows;
  invariant(state, 'the cluster has a row');
  return state;
}
