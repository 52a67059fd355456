/*
 * The epoch that a batch belongs to: added when it is first seen, bound to one node for ever, and locked while a batch of it is
 * written. Also closes the node's earlier epochs that its spool no longer holds.
 */
import type { Envelope } from '../../protocol/batch.ts';
import ensureNode from '../store/sql/ensureNode.sql';
import type { SqlRunner } from '../store/store.ts';
import type { BatchScope } from './batchScope.ts';
import type { StorableRecord, UnstorableRecord } from './recordValidation.ts';
import { multirange, type SeqRange } from './seqRanges.ts';
import closeEpochs from './sql/closeEpochs.sql';
import declareLost from './sql/declareLost.sql';
import findEpochOwner from './sql/findEpochOwner.sql';
import insertEpoch from './sql/insertEpoch.sql';
import insertRecordGaps from './sql/insertRecordGaps.sql';
import lockEpochSql from './sql/lockEpoch.sql';
import shrinkFilledGaps from './sql/shrinkFilledGaps.sql';
import updateEpoch from './sql/updateEpoch.sql';
import updateNode from './sql/updateNode.sql';

/** Another node already has this epoch: the batch cannot be what it says it is. */
export interface ForeignEpoch {
  readonly kind: 'foreign_epoch';
  readonly error: string;
}

export interface LockedEpoch {
  readonly kind: 'locked';
  readonly nodeId: number;
  /** The wall-clock time of the epoch's start, in microseconds. */
  readonly startedAt: number;
  /** The database's time, in microseconds. */
  readonly now: number;
  /** The seqs of the batch that were not received yet. */
  readonly fresh: readonly SeqRange[];
  /** Whether some of these had been declared lost. */
  readonly fillsGap: boolean;
  /** Earlier epochs of the node that are open; locked too. */
  readonly earlier: readonly string[];
  readonly contextId: number | null;
  /** Whether this batch is the first of its epoch. */
  readonly added: boolean;
}

type LockRow = Omit<LockedEpoch, 'kind' | 'added'>;

export async function lockEpoch(
  runner: SqlRunner,
  clusterId: number,
  envelope: Envelope,
): Promise<LockedEpoch | ForeignEpoch> {
  const known = await lock(runner, clusterId, envelope, false);
  if (known !== null) return known;
  const { node, nodeUid, epoch, prev, incarnation, bootId, startedMono, wall0, mono0 } = envelope;
  const owner = await runner.run<{ cluster: string; node: string }>({ text: findEpochOwner }, [epoch]);
  if (owner.rows[0] !== undefined) {
    const error = `epoch ${epoch} belongs to node ${owner.rows[0].node} of cluster ${owner.rows[0].cluster}`;
    return { kind: 'foreign_epoch', error };
  }
  await runner.run({ text: ensureNode }, [clusterId, node, nodeUid]);
  const values = [clusterId, node, epoch, prev, incarnation, nodeUid, bootId, wall0, mono0, startedMono];
  await runner.run({ text: insertEpoch }, values);
  const added = await lock(runner, clusterId, envelope, true);
  // Another node has claimed it between the two statements; the next attempt finds that.
  if (added === null) throw new Error(`epoch ${epoch} can neither be added nor found`);
  return added;
}

async function lock(
  runner: SqlRunner,
  clusterId: number,
  { node, epoch, incarnation, first, last, context }: Envelope,
  added: boolean,
): Promise<LockedEpoch | null> {
  const values = [clusterId, node, epoch, incarnation, first, last, context.no];
  const { rows } = await runner.run<LockRow>({ name: 'lock_epoch', text: lockEpochSql }, values);
  return rows[0] === undefined ? null : { kind: 'locked', ...rows[0], added };
}

/** Records as gaps what will never arrive: records that cannot be stored, and seqs that the agent declares lost. */
export async function declareGaps(
  runner: SqlRunner,
  { nodeId, clusterId, epoch, epochStart }: BatchScope,
  { oldestSeq, first, lost, mono0 }: Envelope,
  unstorable: readonly UnstorableRecord[],
): Promise<void> {
  const cutAt = epochStart + mono0;
  if (unstorable.length > 0) {
    await runner.run({ text: insertRecordGaps }, [
      nodeId,
      clusterId,
      epoch,
      cutAt,
      unstorable.map(({ seq }) => seq),
      unstorable.map(({ cause }) => cause),
      unstorable.map(({ bytes }) => (bytes === null ? null : Buffer.from(bytes, 'utf8').toString('hex'))),
    ]);
  }
  // The spool may have dropped the records of this batch since: they are here all the same.
  const oldest = Math.min(oldestSeq, first);
  if (lost.length === 0 && oldest <= 1) return;
  await runner.run({ name: 'declare_lost', text: declareLost }, [
    nodeId,
    epoch,
    oldest,
    cutAt,
    lost.map(({ from }) => from),
    lost.map(({ to }) => to),
    lost.map(({ cause }) => cause),
  ]);
}

/** Closes the earlier epochs that the spool no longer holds, and returns them. */
export async function closeEarlier(
  runner: SqlRunner,
  { nodeId }: BatchScope,
  envelope: Envelope,
  { earlier }: LockedEpoch,
): Promise<string[]> {
  if (earlier.length === 0) return [];
  const held = envelope.held.filter(({ epoch }) => earlier.includes(epoch));
  const { rows } = await runner.run<{ epoch: string }>({ text: closeEpochs }, [
    nodeId,
    earlier,
    held.map(({ epoch }) => epoch),
    held.map(({ last }) => last),
  ]);
  return rows.map(({ epoch }) => epoch);
}

/** Applies the batch to its epoch and its node. Returns the reply that may be published once this is committed. */
export async function advanceEpoch(
  runner: SqlRunner,
  { nodeId, contextId, epoch, incarnation, epochStart }: BatchScope,
  envelope: Envelope,
  { fillsGap }: LockedEpoch,
  stored: readonly StorableRecord[],
  unstorable: readonly UnstorableRecord[],
): Promise<{ ackGeneration: number; ackedSeq: number }> {
  const scrapes = stored.flatMap((record) => scrapesOf(record, epochStart));
  const { rows } = await runner.run<{ acked_seq: number; ack_generation: number }>(
    { name: 'update_epoch', text: updateEpoch },
    [
      nodeId,
      epoch,
      envelope.ackGeneration,
      envelope.last,
      epochStart + envelope.mono0,
      multirange(stored.map(({ seq }) => seq)),
      multirange(unstorable.map(({ seq }) => seq)),
      latestOf(stored.map(({ at }) => at)),
      earliestOf(scrapes),
      latestOf(scrapes),
    ],
  );
  if (fillsGap) await runner.run({ text: shrinkFilledGaps }, [nodeId, epoch]);
  await runner.run({ name: 'update_node', text: updateNode }, [
    nodeId,
    envelope.nodeUid,
    incarnation,
    envelope.context.no,
    contextId,
  ]);
  const row = rows[0];
  if (row === undefined) throw new Error('a locked epoch does not exist');
  return { ackGeneration: row.ack_generation, ackedSeq: row.acked_seq };
}

/** When the kubelet was scraped, as far as a record says. A change to `Unknown` for want of scrapes has the time of the last one. */
function scrapesOf({ at, record }: StorableRecord, epochStart: number): number[] {
  if (record.type === 'mode_change') return [at];
  if (record.type !== 'relist_minute' || record.kubelet === undefined) return [];
  const { from, to } = record.kubelet.scraped;
  return [epochStart + from, epochStart + to];
}

const latestOf = (times: readonly number[]): number | null =>
  times.reduce<number | null>((latest, at) => Math.max(latest ?? at, at), null);
const earliestOf = (times: readonly number[]): number | null =>
  times.reduce<number | null>((earliest, at) => Math.min(earliest ?? at, at), null);
