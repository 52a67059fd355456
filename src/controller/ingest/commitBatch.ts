/*
 * Commits one batch in one READ COMMITTED transaction:
 *
 *   lock       the epoch and the node's earlier open epochs, in key order
 *   judge      what the batch claims, by what is known of the epoch; nothing remains of a batch that is rejected
 *   validate   the records with new seqs, not yet received; no more than the node may store today
 *   write      containers, then rows of each type; nothing is committed if one is there already
 *   declare    gaps: unstorable records, those over the quota, declared holes, and everything below the oldest seq that is not stored
 *   close      earlier epochs that the spool no longer holds
 *   enqueue    transitions whose pods are to be read, if status lag is measured
 *   advance    the epoch and its node; the acked seq is read from what is about to be committed
 *   resolve    misses that events of another epoch resolve; the row of the node is locked by now
 *   report     the node becomes due
 *
 * If Postgres refuses a value that passed every check, the batch is committed record by record, and the refused ones become gaps. The records of
 * a batch that times out again and again while other batches are stored all become gaps (giveUpBatch).
 */
import { invariant } from '../../platform/invariant.ts';
import type { Envelope } from '../../protocol/batch.ts';
import type { EvidenceRecord, RecordType } from '../../protocol/record.ts';
import { databaseErrorKind } from '../../store/databaseError.ts';
import { dayOf } from '../../store/partitions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import { enqueueReports } from '../../store/statements.ts';
import type { Store, StoreSettings } from '../../store/store.ts';
import { addContext, type BatchScope, type BatchTimes, scopeOf } from './batchScope.ts';
import { mayResolve, resolveAcrossEpochs } from './crossEpochResolution.ts';
import {
  closeEarlier,
  declareGaps,
  implausibleSeq,
  lockEpoch,
  overQuota,
  type RejectedBatch,
  type UnbelievedClaim,
  unbelievedClaims,
} from './epoch.ts';
import { advanceEpochs, type EpochAdvance, type EpochReply } from './epochAdvance.ts';
import type { Partition, PartitionCache } from './partitionCache.ts';
import { type StorableRecord, timedOut, type UnstorableRecord, validateRecords } from './recordValidation.ts';
import { type WrittenRecords, writeOneByOne, writeRecords, writeResolutions } from './recordWriters.ts';
import { DEFAULT_NODE_ROWS_PER_DAY, RowBudget } from './rowQuota.ts';
import { countSeqs, divideSeqs } from './seqRanges.ts';

export interface CommittedBatch {
  readonly is: 'committed';
  readonly stored: number;
  readonly duplicate: number;
  readonly unstorable: readonly UnstorableRecord[];
  /** How many records were not stored because the node had stored as many rows as it may in a day. */
  readonly overQuota: number;
  readonly ackGeneration: number;
  readonly ackedSeq: number;
  readonly closed: readonly string[];
  readonly unbelieved: readonly UnbelievedClaim[];
}

/** The outcome of a batch: all of it, or none. */
export type CommitOutcome = CommittedBatch | RejectedBatch;

/** Adds transitions to the watches of the status lag. */
export interface WatchEnqueuer {
  /** Called in the transaction of the batch, with the records that it stores. */
  enqueue(
    runner: SqlRunner,
    scope: BatchScope,
    times: BatchTimes,
    stored: readonly StorableRecord[],
  ): Promise<void>;
}

export interface CommitContext {
  readonly store: Pick<Store, 'transaction'>;
  readonly clusterId: number;
  readonly settings: () => StoreSettings;
  readonly partitions: PartitionCache;
  /** Whether its node signed the batch. Default: no. */
  readonly isSigned?: boolean;
  /** Whether an unsigned batch cannot be of an epoch of which every batch was signed. Default: no. */
  readonly mustBeSigned?: boolean;
  /** Default: {@link DEFAULT_NODE_ROWS_PER_DAY}. */
  readonly nodeRowsPerDay?: number;
  /** Absent if the status lag is not measured. */
  readonly watches?: WatchEnqueuer | undefined;
}

/** Types that change what a report says. */
const REPORTED: ReadonlySet<RecordType> = new Set([
  'finding',
  'finding_resolved',
  'stream_session',
  'gap',
  'mode_change',
  'node_state',
]);

export async function commitBatch(context: CommitContext, envelope: Envelope): Promise<CommitOutcome> {
  try {
    return await attempt(context, envelope, 'together');
  } catch (error) {
    if (databaseErrorKind(error) !== 'data') throw error;
    return attempt(context, envelope, 'one by one');
  }
}

/** Commits a batch without its records: those that are not stored yet become gaps. */
export function giveUpBatch(context: CommitContext, envelope: Envelope): Promise<CommitOutcome> {
  return attempt(context, envelope, 'as gaps');
}

/** How the records of a batch are written. */
type WriteMode = 'together' | 'one by one' | 'as gaps';

const WRITE: Readonly<
  Record<
    WriteMode,
    (runner: SqlRunner, scope: BatchScope, records: readonly StorableRecord[]) => Promise<WrittenRecords>
  >
> = {
  async together(runner, scope, stored) {
    await writeRecords(runner, scope.clusterId, [{ scope, records: stored }]);
    return { stored, refused: [] };
  },
  'one by one': writeOneByOne,
  'as gaps': (_runner, _scope, records) => Promise.resolve({ stored: [], refused: records.map(timedOut) }),
};

async function attempt(context: CommitContext, envelope: Envelope, mode: WriteMode): Promise<CommitOutcome> {
  try {
    return await inTransaction(context, async (runner, made) => {
      const outcome = await commitIn(runner, context, envelope, mode, made);
      if (outcome.is !== 'committed') throw new NotCommitted(outcome);
      return outcome;
    });
  } catch (error) {
    if (error instanceof NotCommitted) return error.outcome;
    throw error;
  }
}

/** Commits, and remembers the partitions that `work` adds to `made`. */
export async function inTransaction<T>(
  { store, partitions }: CommitContext,
  work: (runner: SqlRunner, made: Partition[]) => Promise<T>,
): Promise<T> {
  let made: Partition[] = [];
  const result = await store.transaction((runner) => {
    made = [];
    return work(runner, made);
  });
  partitions.committed(made);
  return result;
}

/** Rolls back the transaction of a batch that is rejected: its node and its epoch may have been added for it. */
class NotCommitted extends Error {
  readonly outcome: RejectedBatch;
  constructor(outcome: RejectedBatch) {
    super(outcome.error);
    this.outcome = outcome;
  }
}

async function commitIn(
  runner: SqlRunner,
  context: CommitContext,
  envelope: Envelope,
  mode: WriteMode,
  made: Partition[],
): Promise<CommitOutcome> {
  const { clusterId, settings, partitions, isSigned = false, mustBeSigned = false } = context;
  const { nodeRowsPerDay = DEFAULT_NODE_ROWS_PER_DAY } = context;
  const locked = await lockEpoch(runner, clusterId, envelope, { isSigned, mustBeSigned });
  if (locked.is !== 'locked') return locked;
  const refused = implausibleSeq(envelope, locked) ?? overQuota(envelope, locked, nodeRowsPerDay);
  if (refused !== null) return refused;
  const context_id = locked.context_id ?? (await addContext(runner, clusterId, locked.node_id, envelope));
  const scope = scopeOf(clusterId, envelope, { ...locked, context_id }, isSigned);
  const { epochStart } = scope;
  const days = { today: dayOf(locked.now_us), ...settings() };
  const budget = new RowBudget(nodeRowsPerDay - locked.rows_today);
  budget.take((locked.added ? 1 : 0) + (locked.context_id === null ? 1 : 0));
  const { within, beyond } = divideSeqs(locked.fresh, budget.left);
  const valid = validateRecords(envelope, within, epochStart, days);
  made.push(...(await partitions.ensure(runner, valid.storable, epochStart)));
  const { stored: records, refused: alsoUnstorable } = await WRITE[mode](runner, scope, valid.storable);
  const missing = { unstorable: [...valid.unstorable, ...alsoUnstorable], beyond };
  budget.take(records.length + missing.unstorable.length);
  await declareGaps(runner, scope, envelope, locked, missing, budget);
  const closed = await closeEarlier(runner, scope, envelope, locked, budget);
  const written = { scope, envelope, locked, records, missing, closed, addedRows: budget.used };
  const [committed] = await finishBatches(runner, context, [written], made);
  invariant(committed, 'a written batch is committed');
  return committed;
}

/** A batch whose records, and what it declares lost, are written. */
export interface WrittenBatch extends EpochAdvance {
  /** Earlier epochs that it closed. */
  readonly closed: readonly string[];
}

/** The remaining steps for batches, each of another node, from `enqueue` on. */
export async function finishBatches(
  runner: SqlRunner,
  { clusterId, settings, partitions, watches }: CommitContext,
  batches: readonly WrittenBatch[],
  made: Partition[],
): Promise<CommittedBatch[]> {
  for (const { scope, envelope, locked, records } of batches) {
    const times = { storedAt: locked.now_us, sealedAt: envelope.mono0, epochStart: scope.epochStart };
    await watches?.enqueue(runner, scope, times, records);
  }
  const replies = await advanceEpochs(runner, batches);
  const { eventRetentionDays } = settings();
  const resolved = new Map<WrittenBatch, StorableRecord[]>();
  for (const batch of await mayResolve(runner, batches, eventRetentionDays)) {
    const { scope, records } = batch;
    const resolutions = await resolveAcrossEpochs(runner, scope, records, eventRetentionDays);
    made.push(...(await partitions.ensure(runner, resolutions, scope.epochStart)));
    await writeResolutions(runner, clusterId, [{ scope, records: resolutions }]);
    resolved.set(batch, resolutions);
  }
  const due = batches.flatMap((batch) => {
    const urgency = reportUrgency(batch, resolved.get(batch) ?? []);
    return urgency === null ? [] : [{ nodeId: batch.scope.nodeId, isUrgent: urgency === 'urgent' }];
  });
  if (due.length > 0) {
    await runner.run(enqueueReports, [
      clusterId,
      due.map(({ nodeId }) => nodeId),
      due.map(({ isUrgent }) => isUrgent),
    ]);
  }
  return batches.map((batch, i) => {
    const reply = replies[i];
    invariant(reply, 'each batch has a reply');
    return committedBatch(batch, reply);
  });
}

function committedBatch(
  { envelope, locked, records, missing: { unstorable, beyond }, closed }: WrittenBatch,
  { overtakes, ...reply }: EpochReply,
): CommittedBatch {
  const unbelieved = unbelievedClaims(envelope, locked);
  if (overtakes) unbelieved.push('successor');
  const [stored, overQuota] = [records.length, countSeqs(beyond)];
  const duplicate = envelope.records.length - stored - unstorable.length - overQuota;
  return { is: 'committed', stored, duplicate, unstorable, overQuota, closed, unbelieved, ...reply };
}

const saysListHangs = (record: EvidenceRecord): boolean =>
  record.type === 'relist_minute' && record.statuses?.hang !== undefined;

/** Whether the report of a node has to be written after a batch, and how soon. */
function reportUrgency(
  { envelope: { known }, locked, records, missing: { unstorable, beyond }, closed }: WrittenBatch,
  resolved: readonly StorableRecord[],
): 'urgent' | 'due' | null {
  const hasGaps = unstorable.length > 0 || beyond.length > 0 || closed.length > 0;
  if (hasGaps || locked.added || resolved.length > 0) return 'urgent';
  if (records.some(({ record }) => REPORTED.has(record.type) || saysListHangs(record))) return 'urgent';
  return known !== undefined || records.some(({ record }) => record.type === 'relist_minute') ? 'due' : null;
}
