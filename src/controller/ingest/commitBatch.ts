/*
 * Commits one batch in one READ COMMITTED transaction:
 *
 *   lock       the epoch and the node's earlier open epochs, in key order
 *   validate   the records whose seqs are new, those not yet received
 *   write      containers, then rows of each type; as many rows as records, else nothing is committed
 *   enqueue    transitions whose pods are to be read, if status lag is measured
 *   declare    gaps: unstorable records, declared holes, and everything below the oldest seq that is not stored
 *   close      earlier epochs that the spool no longer holds
 *   advance    the epoch; its acked seq is read from what is about to be committed
 *   resolve    misses that events of another epoch resolve; the row of the node is locked by now
 *
 * If Postgres refuses a value that passed every check, the batch is committed record by record, and the refused ones become gaps.
 */
import type { Envelope } from '../../protocol/batch.ts';
import type { RecordType } from '../../protocol/record.ts';
import { databaseErrorKind } from '../store/databaseError.ts';
import { dayOf } from '../store/partitions.ts';
import enqueueReport from '../store/sql/enqueueReport.sql';
import type { SqlRunner, Store, StoreSettings } from '../store/store.ts';
import { type BatchScope, type BatchTimes, scopeOf } from './batchScope.ts';
import { resolveAcrossEpochs } from './crossEpochResolution.ts';
import {
  advanceEpoch,
  closeEarlier,
  declareGaps,
  type ForeignEpoch,
  type LockedEpoch,
  lockEpoch,
} from './epoch.ts';
import type { PartitionCache } from './partitionCache.ts';
import { type StorableRecord, type UnstorableRecord, validateRecords } from './recordValidation.ts';
import { writeOneByOne, writeRecords, writeResolutions } from './recordWriters.ts';

export interface CommittedBatch {
  readonly kind: 'committed';
  readonly stored: number;
  readonly duplicate: number;
  readonly unstorable: readonly UnstorableRecord[];
  readonly ackGeneration: number;
  readonly ackedSeq: number;
  readonly closed: readonly string[];
}

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

export async function commitBatch(
  context: CommitContext,
  envelope: Envelope,
): Promise<CommittedBatch | ForeignEpoch> {
  try {
    return await attempt(context, envelope, false);
  } catch (error) {
    if (databaseErrorKind(error) !== 'data') throw error;
    return attempt(context, envelope, true);
  }
}

async function attempt(
  context: CommitContext,
  envelope: Envelope,
  oneByOne: boolean,
): Promise<CommittedBatch | ForeignEpoch> {
  const made: string[] = [];
  const outcome = await context.store.transaction(async (runner) => {
    made.length = 0;
    return commitIn(runner, context, envelope, oneByOne, made);
  });
  context.partitions.committed(made);
  return outcome;
}

async function commitIn(
  runner: SqlRunner,
  { clusterId, settings, partitions, watches }: CommitContext,
  envelope: Envelope,
  oneByOne: boolean,
  made: string[],
): Promise<CommittedBatch | ForeignEpoch> {
  const locked = await lockEpoch(runner, clusterId, envelope);
  if (locked.kind === 'foreign_epoch') return locked;
  const scope = await scopeOf(runner, clusterId, envelope, locked);
  const { epochStart } = scope;
  const days = { today: dayOf(locked.now), ...settings() };
  const valid = validateRecords(envelope, locked.fresh, epochStart, days);
  made.push(...(await partitions.ensure(runner, valid.storable, epochStart)));
  const { stored, refused } = oneByOne
    ? await writeOneByOne(runner, scope, valid.storable)
    : { stored: valid.storable, refused: [] };
  if (!oneByOne) await writeRecords(runner, scope, stored);
  const unstorable = [...valid.unstorable, ...refused];
  await watches?.enqueue(runner, scope, { storedAt: locked.now, cutAt: envelope.mono0, epochStart }, stored);
  await declareGaps(runner, scope, envelope, unstorable);
  const closed = await closeEarlier(runner, scope, envelope, locked);
  const reply = await advanceEpoch(runner, scope, envelope, locked, stored, unstorable);
  const resolved = await resolveAcrossEpochs(runner, scope, stored, days.eventRetentionDays);
  made.push(...(await partitions.ensure(runner, resolved, epochStart)));
  await writeResolutions(runner, scope, resolved);
  const gaps = unstorable.length > 0 || closed.length > 0;
  await enqueueReportOf(runner, scope, locked, [...valid.storable, ...resolved], gaps);
  const duplicate = envelope.records.length - stored.length - unstorable.length;
  return { kind: 'committed', stored: stored.length, duplicate, unstorable, closed, ...reply };
}

async function enqueueReportOf(
  runner: SqlRunner,
  { nodeId, clusterId }: BatchScope,
  { added }: LockedEpoch,
  records: readonly StorableRecord[],
  gaps: boolean,
): Promise<void> {
  const urgent = gaps || added || records.some(({ record }) => REPORTED.has(record.type));
  if (!urgent && !records.some(({ record }) => record.type === 'relist_minute')) return;
  await runner.run({ text: enqueueReport }, [nodeId, clusterId, urgent]);
}
