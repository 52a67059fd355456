/*
 * The epoch that a batch belongs to: added when it is first seen, and locked while a batch of it is written. An epoch belongs to its node: two
 * nodes that name the same one have an epoch each. Also closes the node's earlier epochs that its spool no longer holds.
 *
 * The claims of a batch are believed as far as they can be, by what the store knows (docs/decisions/0026-what-the-store-believes.md):
 *
 *   seq           none that outruns what the epoch announced
 *   loss          only below the highest stored record, unless the epoch has ended: a later one of the node is known
 *   incarnation   none of the future; and an epoch that proves to run after its successors becomes the latest again
 *   time          no batch is sealed after it is stored
 */

import { invariant } from '../../platform/invariant.ts';
import type { Envelope } from '../../protocol/batch.ts';
import type { SqlRunner } from '../../store/runner.ts';
import type { RowOf } from '../../store/statement.ts';
import type { BatchScope } from './batchScope.ts';
import type { UnstorableRecord } from './recordValidation.ts';
import { RESERVED_ROWS, type RowBudget } from './rowQuota.ts';
import { multirange, type SeqRange, seqsIn, seqsOf } from './seqRanges.ts';
import {
  addQuotaGap,
  closeEpochs,
  declareLost,
  ensureClaimedNode,
  insertEpoch,
  insertRecordGaps,
  lockEpoch as lockEpochStatement,
  readEpochs,
} from './statements.ts';

/**
 * Why nothing of a batch is stored.
 *
 *   unsigned       every batch of its epoch so far was signed, and this one is not
 *   unknown_node   agents have named too many nodes lately that the cluster does not know
 *   implausible    it names a seq that its epoch cannot have reached
 *   over_quota     a node that has stored far more rows than it may in a day begins yet another epoch or context
 */
export interface RejectedBatch {
  readonly is: 'unsigned' | 'unknown_node' | 'implausible' | 'over_quota';
  readonly error: string;
}

/** How many nodes that only agents name are added to a cluster in 24 hours: as many as the largest cluster has. */
const MAX_CLAIMED_NODES = 5_000;

/** Claims of a batch that are not believed. `successor`: of the epochs that superseded this one. */
export const UNBELIEVED_CLAIMS = ['loss', 'incarnation', 'successor', 'time'] as const;
export type UnbelievedClaim = (typeof UNBELIEVED_CLAIMS)[number];

/** A batch is believed to be sealed so much ahead of the database's clock, in microseconds: the epoch may have been dated late. */
const MAX_SEALED_AHEAD_US = 3_600_000_000;

/** The known state of the epoch of a batch: store.known_of_batch. */
export interface LockedEpoch extends Omit<RowOf<typeof readEpochs>, 'place' | 'context_id' | 'fresh'> {
  readonly is: 'locked';
  /** The seqs of the batch that were not received yet. */
  readonly fresh: readonly SeqRange[];
  readonly context_id: number | null;
  /** Earlier epochs of the node that are open and that this batch may close; locked too. */
  readonly earlier: readonly string[];
  /** Whether this batch is the first of its epoch. */
  readonly added: boolean;
}

export async function lockEpoch(
  runner: SqlRunner,
  clusterId: number,
  envelope: Envelope,
  { isSigned, mustBeSigned }: { readonly isSigned: boolean; readonly mustBeSigned: boolean },
): Promise<LockedEpoch | RejectedBatch> {
  const mayChangeAttributed = isSigned || !mustBeSigned;
  const known = await lock(runner, clusterId, envelope, { mayChangeAttributed, added: false });
  if (known !== null) return known;
  const { node, epoch, prev, incarnation, bootId, startedMono, wall0, mono0 } = envelope;
  const claim = [clusterId, node, MAX_CLAIMED_NODES];
  const claimed = await runner.run(ensureClaimedNode, claim);
  if (claimed.rows[0]?.is_known !== true) {
    return {
      is: 'unknown_node',
      error: `node: ${node} is not known, and ${MAX_CLAIMED_NODES} others were added in 24 hours`,
    };
  }
  const clocks = [wall0, mono0, startedMono];
  await runner.run(insertEpoch, [clusterId, node, epoch, prev, incarnation, bootId, ...clocks, isSigned]);
  const added = await lock(runner, clusterId, envelope, { mayChangeAttributed, added: true });
  invariant(added, 'an epoch can be added or is there');
  return added;
}

async function lock(
  runner: SqlRunner,
  clusterId: number,
  { node, epoch, first, last, context }: Envelope,
  { mayChangeAttributed, added }: { readonly mayChangeAttributed: boolean; readonly added: boolean },
): Promise<LockedEpoch | RejectedBatch | null> {
  const values = [clusterId, node, epoch, first, last, context.no, mayChangeAttributed];
  const { rows } = await runner.run(lockEpochStatement, values);
  if (rows[0] === undefined) return null;
  const { is_forgery, fresh, ...row } = rows[0];
  if (!is_forgery) return { is: 'locked', ...row, fresh: seqsIn(fresh), added };
  const error = `all batches of epoch ${epoch} were signed, and this one is not, or with a key that is no longer valid: node ${node} has to enrol again`;
  return { is: 'unsigned', error };
}

/** The epoch of a plain batch, whose context is stored. */
export type PlainEpoch = LockedEpoch & { readonly context_id: number };

/** A batch, and whether it may change epochs of which every batch was signed. */
export interface BatchOfLockedEpoch {
  readonly envelope: Envelope;
  readonly mayChangeAttributed: boolean;
}

/** The known state of the epochs of batches that the caller has locked with their nodes; null for a batch that is not plain: readEpochs.sql. */
export async function readLockedEpochs(
  runner: SqlRunner,
  clusterId: number,
  batches: readonly BatchOfLockedEpoch[],
): Promise<(PlainEpoch | null)[]> {
  const { rows } = await runner.run(readEpochs, [
    clusterId,
    batches.map(({ envelope }) => envelope.node),
    batches.map(({ envelope }) => envelope.epoch),
    batches.map(({ envelope }) => envelope.first),
    batches.map(({ envelope }) => envelope.last),
    batches.map(({ envelope }) => envelope.context.no),
    batches.map(({ mayChangeAttributed }) => mayChangeAttributed),
    batches.map(({ envelope }) => declaredLost(envelope)),
  ]);
  const known: (PlainEpoch | null)[] = batches.map(() => null);
  for (const { place, fresh, ...row } of rows) {
    known[place - 1] = { is: 'locked', ...row, fresh: seqsIn(fresh), earlier: [], added: false };
  }
  return known;
}

/** The seqs that a batch says will never come: as a multirange. */
function declaredLost({ oldestSeq, first, lost }: Envelope): string {
  const ranges = lost.map(({ from, to }) => `[${from},${to}]`);
  return `{${[...ranges, `[1,${Math.min(oldestSeq, first)})`].join(',')}}`;
}

/** Null unless the batch names a seq that its epoch cannot have reached. */
export function implausibleSeq(
  { epoch, last }: Envelope,
  { plausible_seq }: LockedEpoch,
): RejectedBatch | null {
  if (last <= plausible_seq) return null;
  return {
    is: 'implausible',
    error: `last: ${last} is more than epoch ${epoch} can have reached, ${plausible_seq}`,
  };
}

/** Null unless the batch would add an epoch or a context of a node that has used up even the reserve of today. */
export function overQuota(
  { node }: Envelope,
  { added, context_id, rows_today }: LockedEpoch,
  rowsPerDay: number,
): RejectedBatch | null {
  if ((!added && context_id !== null) || rows_today < rowsPerDay + RESERVED_ROWS) return null;
  return {
    is: 'over_quota',
    error: `node ${node} has stored ${rows_today} rows today; ${rowsPerDay} are allowed`,
  };
}

/** Which claims of a batch are not believed. */
export function unbelievedClaims(envelope: Envelope, locked: LockedEpoch): UnbelievedClaim[] {
  const { oldestSeq, first, lost, incarnation } = envelope;
  const through = believedLoss(envelope, locked);
  const claims: UnbelievedClaim[] = [];
  if (Math.min(oldestSeq, first) - 1 > through || lost.some(({ to }) => to > through)) claims.push('loss');
  if (locked.added && incarnation > locked.incarnation) claims.push('incarnation');
  if (locked.started_us + envelope.mono0 > locked.now_us + MAX_SEALED_AHEAD_US) claims.push('time');
  return claims;
}

/**
 * The seq up to which losses are believed. An agent that runs goes on to write records, and declares its losses again with them: until
 * then nothing shows that the seqs exist. An epoch that has ended may have lost its last records.
 */
function believedLoss({ first, last }: Envelope, locked: LockedEpoch): number {
  if (locked.is_superseded) return locked.plausible_seq;
  return Math.max(locked.received_through, last < first ? 0 : last);
}

/** When a batch was sealed, in microseconds: not after it is stored. */
export function sealedTime({ mono0 }: Envelope, { started_us, now_us }: LockedEpoch): number {
  const sealedAt = started_us + mono0;
  return sealedAt > now_us + MAX_SEALED_AHEAD_US ? now_us : sealedAt;
}

/** The seqs of a batch whose records are not stored. */
export interface MissingRecords {
  readonly unstorable: readonly UnstorableRecord[];
  /** Those for which the node has no rows left today. */
  readonly beyond: readonly SeqRange[];
}

/**
 * Records as gaps what will never arrive: records that are not stored, and seqs that the agent declares lost. Those for which the node has
 * no rows left today share one gap.
 */
export async function declareGaps(
  runner: SqlRunner,
  { nodeId, clusterId, epoch }: BatchScope,
  envelope: Envelope,
  locked: LockedEpoch,
  { unstorable, beyond }: MissingRecords,
  budget: RowBudget,
): Promise<void> {
  const { oldestSeq, first, lost } = envelope;
  const sealedAt = sealedTime(envelope, locked);
  if (unstorable.length > 0) {
    await runner.run(insertRecordGaps, [
      nodeId,
      clusterId,
      epoch,
      sealedAt,
      unstorable.map(({ seq }) => seq),
      unstorable.map(({ cause }) => cause),
      unstorable.map(({ bytes }) => (bytes === null ? null : Buffer.from(bytes, 'utf8').toString('hex'))),
    ]);
  }
  // The spool may have dropped the records of this batch since: they are here all the same.
  const oldest = Math.min(oldestSeq, first);
  let declared: DeclaredHoles | undefined;
  if (lost.length > 0 || oldest > 1) {
    const { rows } = await runner.run(declareLost, [
      nodeId,
      epoch,
      oldest,
      sealedAt,
      lost.map(({ from }) => from),
      lost.map(({ to }) => to),
      lost.map(({ cause }) => cause),
      believedLoss(envelope, locked),
      budget.left,
    ]);
    declared = rows[0];
  }
  const surplus = takeHoles(declared, budget);
  if (beyond.length === 0 && surplus === null) return;
  const from = Math.min(sealedAt, declared?.from ?? sealedAt);
  const seqs = [multirange(seqsOf(beyond)), surplus ?? '{}'];
  await runner.run(addQuotaGap, [nodeId, epoch, from, sealedAt, ...seqs]);
}

type DeclaredHoles = RowOf<typeof declareLost>;

/** Takes the rows of holes from the budget, or returns the seqs that have no rows. */
function takeHoles(declared: DeclaredHoles | undefined, budget: RowBudget): string | null {
  if (declared === undefined) return null;
  if (declared.surplus === null) budget.take(declared.holes);
  return declared.surplus;
}

/** Closes the earlier epochs that the spool no longer holds, and returns them. */
export async function closeEarlier(
  runner: SqlRunner,
  { nodeId }: BatchScope,
  envelope: Envelope,
  { earlier, now_us }: LockedEpoch,
  budget: RowBudget,
): Promise<string[]> {
  if (earlier.length === 0) return [];
  const held = envelope.held.filter(({ epoch }) => earlier.includes(epoch));
  const { rows } = await runner.run(closeEpochs, [
    nodeId,
    earlier,
    held.map(({ epoch }) => epoch),
    held.map(({ last }) => last),
    budget.left,
  ]);
  for (const closed of rows) {
    const surplus = takeHoles(closed, budget);
    if (surplus === null) continue;
    await runner.run(addQuotaGap, [nodeId, closed.epoch, closed.from, now_us, '{}', surplus]);
  }
  return rows.map(({ epoch }) => epoch);
}
