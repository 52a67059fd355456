/*
 * Commits batches of several nodes together, in one READ COMMITTED transaction with one statement for each kind of row. Plain batches only, the
 * many that bring nothing but new records of a known epoch:
 *
 *   lock       their nodes and epochs, as far as nobody else has them: no batch waits for the node of another one
 *   judge      each batch by what is known of its epoch, as commitBatch does
 *   write      containers, then rows of each type
 *   finish     as commitBatch does, from `enqueue` on
 *
 * Any other batch is left to commitBatch: the first one of an epoch, one that declares a loss or has a record that cannot be stored, and so on. So
 * are all batches of a group that fails, because only one of them may be at fault.
 */
import type { Envelope } from '../../protocol/batch.ts';
import { dayOf } from '../../store/partitions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { scopeOf } from './batchScope.ts';
import {
  type CommitContext,
  type CommittedBatch,
  finishBatches,
  inTransaction,
  type WrittenBatch,
} from './commitBatch.ts';
import { implausibleSeq, readLockedEpochs, unbelievedClaims } from './epoch.ts';
import { validateRecords } from './recordValidation.ts';
import { writeRecords } from './recordWriters.ts';
import { DEFAULT_NODE_ROWS_PER_DAY } from './rowQuota.ts';
import { countSeqs } from './seqRanges.ts';
import { lockNodes } from './statements.ts';

/** A batch and whether its node signed it. */
export interface AttributedBatch {
  readonly envelope: Envelope;
  readonly isSigned: boolean;
}

export interface GroupedBatch extends AttributedBatch {
  /** How often its node was busy. */
  readonly tries: number;
}

/** `busy`: somebody has locked its node, for a moment if it is another controller. `held`: it was busy before, and the session is no controller's. `alone`: it takes commitBatch. */
export type GroupOutcome = CommittedBatch | { readonly is: 'busy' | 'held' | 'alone' };

/** Commits batches, each of another node. Returns what became of each. */
export const commitGroup = (
  context: CommitContext,
  batches: readonly GroupedBatch[],
): Promise<GroupOutcome[]> =>
  inTransaction(context, async (runner, made) => {
    const { clusterId } = context;
    const { rows } = await runner.run(lockNodes, [
      clusterId,
      batches.map(({ envelope }) => envelope.node),
      batches.map(({ envelope }) => envelope.epoch),
      batches.map(({ tries }) => tries > 0),
    ]);
    const states = rows.map(({ state }) => state);
    const notCommitted = (i: number): GroupOutcome => {
      const state = states[i];
      return { is: state === 'busy' || state === 'held' ? state : 'alone' };
    };
    const locked = batches.filter((_, i) => states[i] === 'locked');
    const plain = locked.length === 0 ? [] : await judge(runner, context, locked);
    if (plain.length > 0) await writeRecords(runner, clusterId, plain);
    const committed = plain.length === 0 ? [] : await finishBatches(runner, context, plain, made);
    const byEpoch = new Map(plain.map(({ envelope }, i) => [envelope, committed[i]]));
    return batches.map(({ envelope }, i) => byEpoch.get(envelope) ?? notCommitted(i));
  });

/** Those of the batches that need nothing but that their records are written, which they are not yet. */
async function judge(
  runner: SqlRunner,
  context: CommitContext,
  batches: readonly AttributedBatch[],
): Promise<WrittenBatch[]> {
  const { clusterId, settings, partitions, mustBeSigned = false } = context;
  const { nodeRowsPerDay = DEFAULT_NODE_ROWS_PER_DAY } = context;
  const epochs = await readLockedEpochs(
    runner,
    clusterId,
    batches.map(({ envelope, isSigned }) => ({ envelope, mayChangeAttributed: isSigned || !mustBeSigned })),
  );
  return batches.flatMap(({ envelope, isSigned }, i) => {
    const locked = epochs[i] ?? null;
    if (locked === null || implausibleSeq(envelope, locked) !== null) return [];
    if (locked.rows_today + countSeqs(locked.fresh) > nodeRowsPerDay) return [];
    if (unbelievedClaims(envelope, locked).length > 0) return [];
    const days = { today: dayOf(locked.now_us), ...settings() };
    const { storable: records, unstorable } = validateRecords(
      envelope,
      locked.fresh,
      locked.started_us,
      days,
    );
    if (unstorable.length > 0 || !partitions.knows(records, locked.started_us)) return [];
    const scope = scopeOf(clusterId, envelope, locked, isSigned);
    const nothing = { missing: { unstorable, beyond: [] }, closed: [] };
    return [{ envelope, locked, scope, records, ...nothing, addedRows: records.length }];
  });
}
