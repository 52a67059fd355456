/*
 * Commits batches of several nodes together, in one READ COMMITTED transaction with one statement for each kind of row. Plain batches only, the
 * many that bring nothing but new records of a known epoch:
 *
 *   lock       their nodes and epochs, as far as nobody else has them: no batch waits for the node of another one
 *   judge      each batch by what is known of its epoch, as commitBatch does
 *   write      containers, then rows of each type
 *   advance    epochs and nodes; each acked seq is read from what is about to be committed
 *   resolve    misses that events of another epoch resolve
 *
 * Any other batch is left to commitBatch: the first one of an epoch, one that declares a loss or has a record that cannot be stored, and so on. So
 * are all batches of a group that fails, because only one of them may be at fault.
 */
import type { Envelope } from '../../protocol/batch.ts';
import { dayOf } from '../../store/partitions.ts';
import type { SqlRunner } from '../../store/runner.ts';
import enqueueReports from '../../store/sql/enqueueReports.sql';
import { knownScope } from './batchScope.ts';
import { type CommitContext, type CommittedBatch, reportUrgency } from './commitBatch.ts';
import { mayResolve, resolveAcrossEpochs } from './crossEpochResolution.ts';
import { implausibleSeq, type LockedEpoch, readLockedEpochs, unbelievedClaims } from './epoch.ts';
import { advanceEpochs } from './epochAdvance.ts';
import type { Partition } from './partitionCache.ts';
import { type StorableRecord, validateRecords } from './recordValidation.ts';
import type { BatchRecords } from './recordWriter.ts';
import { writeRecords, writeResolutions } from './recordWriters.ts';
import { DEFAULT_NODE_ROWS_PER_DAY } from './rowQuota.ts';
import { countSeqs } from './seqRanges.ts';
import lockNodes from './sql/lockNodes.sql';

/** A batch and whether its node signed it. */
export interface AttributedBatch {
  readonly envelope: Envelope;
  readonly isSigned: boolean;
}

/** `busy`: somebody else has locked its node. `alone`: it takes commitBatch. */
export type GroupOutcome = CommittedBatch | { readonly kind: 'busy' } | { readonly kind: 'alone' };

const ALONE = { kind: 'alone' } as const;

type LockState = 'locked' | 'busy' | 'unknown';

interface PlainBatch extends BatchRecords {
  readonly envelope: Envelope;
  readonly locked: LockedEpoch;
}

/** Commits batches, each of another node. Returns what became of each. */
export async function commitGroup(
  context: CommitContext,
  batches: readonly AttributedBatch[],
): Promise<GroupOutcome[]> {
  const made: Partition[] = [];
  const outcomes = await context.store.transaction((runner) => {
    made.length = 0;
    return commitIn(runner, context, batches, made);
  });
  context.partitions.committed(made);
  return outcomes;
}

async function commitIn(
  runner: SqlRunner,
  context: CommitContext,
  batches: readonly AttributedBatch[],
  made: Partition[],
): Promise<GroupOutcome[]> {
  const { clusterId } = context;
  const { rows } = await runner.run<{ state: LockState }>({ name: 'lock_nodes', text: lockNodes }, [
    clusterId,
    batches.map(({ envelope }) => envelope.node),
    batches.map(({ envelope }) => envelope.epoch),
  ]);
  const states = rows.map(({ state }) => state);
  const locked = batches.filter((_, i) => states[i] === 'locked');
  const plain = locked.length === 0 ? [] : await judge(runner, context, locked);
  const committed = plain.length === 0 ? [] : await write(runner, context, plain, made);
  const byEpoch = new Map(plain.map(({ envelope }, i) => [envelope, committed[i]]));
  return batches.map(
    ({ envelope }, i) => byEpoch.get(envelope) ?? (states[i] === 'busy' ? { kind: 'busy' } : ALONE),
  );
}

/** Those of the batches that need nothing but that their records are written. */
async function judge(
  runner: SqlRunner,
  context: CommitContext,
  batches: readonly AttributedBatch[],
): Promise<PlainBatch[]> {
  const { clusterId, settings, partitions, mustBeSigned = false } = context;
  const { nodeRowsPerDay = DEFAULT_NODE_ROWS_PER_DAY } = context;
  const epochs = await readLockedEpochs(
    runner,
    clusterId,
    batches.map(({ envelope, isSigned }) => ({ envelope, mayChangeAttributed: isSigned || !mustBeSigned })),
  );
  return batches.flatMap(({ envelope, isSigned }, i) => {
    const locked = epochs[i];
    if (locked === undefined || locked === null || locked.contextId === null) return [];
    if (implausibleSeq(envelope, locked) !== null) return [];
    if (locked.rowsToday + countSeqs(locked.fresh) > nodeRowsPerDay) return [];
    if (unbelievedClaims(envelope, locked).length > 0) return [];
    const days = { today: dayOf(locked.now), ...settings() };
    const { storable, unstorable } = validateRecords(envelope, locked.fresh, locked.startedAt, days);
    if (unstorable.length > 0 || !partitions.knows(storable, locked.startedAt)) return [];
    const { contextId } = locked;
    const scope = knownScope(clusterId, envelope, { ...locked, contextId, isSigned });
    return [{ envelope, locked, scope, records: storable }];
  });
}

async function write(
  runner: SqlRunner,
  { clusterId, settings, partitions, watches }: CommitContext,
  batches: readonly PlainBatch[],
  made: Partition[],
): Promise<CommittedBatch[]> {
  await writeRecords(runner, clusterId, batches);
  for (const { scope, envelope, locked, records } of batches) {
    const times = { storedAt: locked.now, sealedAt: envelope.mono0, epochStart: scope.epochStart };
    await watches?.enqueue(runner, scope, times, records);
  }
  const replies = await advanceEpochs(
    runner,
    batches.map(({ scope, envelope, locked, records }) => ({
      ...{ scope, envelope, locked, stored: records, missing: { unstorable: [], beyond: [] } },
      addedRows: records.length,
    })),
  );
  const { eventRetentionDays } = settings();
  const resolved = new Map<PlainBatch, StorableRecord[]>();
  for (const batch of await mayResolve(runner, batches, eventRetentionDays)) {
    const { scope, records } = batch;
    const resolutions = await resolveAcrossEpochs(runner, scope, records, eventRetentionDays);
    made.push(...(await partitions.ensure(runner, resolutions, scope.epochStart)));
    await writeResolutions(runner, clusterId, [{ scope, records: resolutions }]);
    resolved.set(batch, resolutions);
  }
  const due = batches.flatMap((batch) => {
    const urgency = reportUrgency([...batch.records, ...(resolved.get(batch) ?? [])], false);
    return urgency === null ? [] : [{ nodeId: batch.scope.nodeId, isUrgent: urgency === 'urgent' }];
  });
  if (due.length > 0) {
    await runner.run({ name: 'enqueue_reports', text: enqueueReports }, [
      clusterId,
      due.map(({ nodeId }) => nodeId),
      due.map(({ isUrgent }) => isUrgent),
    ]);
  }
  return batches.map(({ envelope, records }, i) => {
    const reply = replies[i];
    if (reply === undefined) throw new Error('a batch has no reply');
    const stored = records.length;
    const duplicate = envelope.records.length - stored;
    const counts = { stored, duplicate, unstorable: [], overQuota: 0, closed: [], unbelieved: [] };
    return { kind: 'committed', ...counts, ...reply };
  });
}
