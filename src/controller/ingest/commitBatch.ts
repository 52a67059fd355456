/*
 * Commits one batch in one READ COMMITTED transaction:
 *
 *   lock       the epoch and the node's earlier open epochs, in key order
 *   judge      what the batch claims, by what is known of the epoch; nothing remains of a batch that is rejected
 *   validate   the records whose seqs are new, those not yet received; no more than the node may store today
 *   write      containers, then rows of each type; nothing is committed if one is there already
 *   enqueue    transitions whose pods are to be read, if status lag is measured
 *   declare    gaps: unstorable records, those over the quota, declared holes, and everything below the oldest seq that is not stored
 *   close      earlier epochs that the spool no longer holds
 *   advance    the epoch; its acked seq is read from what is about to be committed
 *   resolve    misses that events of another epoch resolve; the row of the node is locked by now
 *
 * If Postgres refuses a value that passed every check, the batch is committed record by record, and the refused ones become gaps. The records of
 * a batch that times out again and again while other batches are stored all become gaps (giveUpBatch).
 */
import type { Envelope } from '../../protocol/batch.ts';
import type { RecordType } from '../../protocol/record.ts';
import { databaseErrorKind } from '../../store/databaseError.ts';
import { dayOf } from '../../store/partitions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import enqueueReports from '../../store/sql/enqueueReports.sql';
import type { Store, StoreSettings } from '../../store/store.ts';
import { type BatchScope, type BatchTimes, scopeOf } from './batchScope.ts';
import { resolveAcrossEpochs } from './crossEpochResolution.ts';
import {
  closeEarlier,
  declareGaps,
  type ImplausibleBatch,
  implausibleSeq,
  lockEpoch,
  type MissingRecords,
  type OverQuota,
  overQuota,
  type UnbelievedClaim,
  type UnknownNode,
  type UnsignedBatch,
  unbelievedClaims,
} from './epoch.ts';
import { advanceEpoch } from './epochAdvance.ts';
import type { Partition, PartitionCache } from './partitionCache.ts';
import { type StorableRecord, timedOut, type UnstorableRecord, validateRecords } from './recordValidation.ts';
import { type WrittenRecords, writeOneByOne, writeRecords, writeResolutions } from './recordWriters.ts';
import { DEFAULT_NODE_ROWS_PER_DAY, divideSeqs, RowBudget } from './rowQuota.ts';
import { countSeqs } from './seqRanges.ts';

export interface CommittedBatch {
  readonly kind: 'committed';
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

/** What can be done with a batch: all of it, or none. */
export type CommitOutcome = CommittedBatch | UnsignedBatch | ImplausibleBatch | OverQuota | UnknownNode;

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
  const made: Partition[] = [];
  try {
    const committed = await context.store.transaction(async (runner) => {
      made.length = 0;
      const outcome = await commitIn(runner, context, envelope, mode, made);
      if (outcome.kind !== 'committed') throw new NotCommitted(outcome);
      return outcome;
    });
    context.partitions.committed(made);
    return committed;
  } catch (error) {
    if (error instanceof NotCommitted) return error.outcome;
    throw error;
  }
}

/** Rolls back the transaction of a batch that is rejected: its node and its epoch may have been added for it. */
class NotCommitted extends Error {
  readonly outcome: Exclude<CommitOutcome, CommittedBatch>;
  constructor(outcome: Exclude<CommitOutcome, CommittedBatch>) {
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
  const { clusterId, settings, partitions, watches, isSigned = false, mustBeSigned = false } = context;
  const { nodeRowsPerDay = DEFAULT_NODE_ROWS_PER_DAY } = context;
  const locked = await lockEpoch(runner, clusterId, envelope, { isSigned, mustBeSigned });
  if (locked.kind !== 'locked') return locked;
  const refused = implausibleSeq(envelope, locked) ?? overQuota(envelope, locked, nodeRowsPerDay);
  if (refused !== null) return refused;
  const scope = await scopeOf(runner, clusterId, envelope, { ...locked, isSigned });
  const { epochStart } = scope;
  const days = { today: dayOf(locked.now), ...settings() };
  const budget = new RowBudget(nodeRowsPerDay - locked.rowsToday);
  budget.take((locked.added ? 1 : 0) + (locked.contextId === null ? 1 : 0));
  const { within, beyond } = divideSeqs(locked.fresh, budget.left);
  const valid = validateRecords(envelope, within, epochStart, days);
  made.push(...(await partitions.ensure(runner, valid.storable, epochStart)));
  const written = await WRITE[mode](runner, scope, valid.storable);
  const { stored } = written;
  const missing: MissingRecords = { unstorable: [...valid.unstorable, ...written.refused], beyond };
  budget.take(stored.length + missing.unstorable.length);
  await watches?.enqueue(
    runner,
    scope,
    { storedAt: locked.now, sealedAt: envelope.mono0, epochStart },
    stored,
  );
  await declareGaps(runner, scope, envelope, locked, missing, budget);
  const closed = await closeEarlier(runner, scope, envelope, locked, budget);
  const advance = { scope, envelope, locked, stored, missing, addedRows: budget.used };
  const advanced = await advanceEpoch(runner, advance);
  const { overtakes, ...reply } = advanced;
  const resolved = await resolveAcrossEpochs(runner, scope, stored, days.eventRetentionDays);
  made.push(...(await partitions.ensure(runner, resolved, epochStart)));
  await writeResolutions(runner, clusterId, [{ scope, records: resolved }]);
  const { unstorable } = missing;
  const overQuotaRecords = countSeqs(beyond);
  const gaps = unstorable.length > 0 || overQuotaRecords > 0 || closed.length > 0;
  const urgency = reportUrgency([...valid.storable, ...resolved], gaps || locked.added);
  if (urgency !== null) {
    await runner.run({ text: enqueueReports }, [clusterId, [scope.nodeId], [urgency === 'urgent']]);
  }
  const duplicate = envelope.records.length - stored.length - unstorable.length - overQuotaRecords;
  const unbelieved = unbelievedClaims(envelope, locked);
  if (overtakes) unbelieved.push('successor');
  const counts = { stored: stored.length, duplicate, unstorable, overQuota: overQuotaRecords };
  return { kind: 'committed', ...counts, closed, unbelieved, ...reply };
}

/** Whether the report of a node has to be written after a batch, and how soon. */
export function reportUrgency(
  records: readonly StorableRecord[],
  isUrgent: boolean,
): 'urgent' | 'due' | null {
  if (isUrgent || records.some(({ record }) => REPORTED.has(record.type))) return 'urgent';
  return records.some(({ record }) => record.type === 'relist_minute') ? 'due' : null;
}
