/*
 * What a stored batch changes about its epoch and its node. The acked seq is read from what is about to be committed.
 */
import type { Envelope } from '../../protocol/batch.ts';
import type { SqlRunner } from '../../store/runner.ts';
import type { BatchScope } from './batchScope.ts';
import { type LockedEpoch, type MissingRecords, sealedTime } from './epoch.ts';
import type { StorableRecord } from './recordValidation.ts';
import { multirange, seqsOf } from './seqRanges.ts';
import restoreEpoch from './sql/restoreEpoch.sql';
import shrinkFilledGaps from './sql/shrinkFilledGaps.sql';
import updateEpochs from './sql/updateEpochs.sql';
import updateNodes from './sql/updateNodes.sql';

/** What a batch changes about its epoch and its node. */
export interface EpochAdvance {
  readonly scope: BatchScope;
  readonly envelope: Envelope;
  readonly locked: LockedEpoch;
  readonly stored: readonly StorableRecord[];
  readonly missing: MissingRecords;
  readonly addedRows: number;
}

/** The reply that may be published once this is committed. */
interface EpochReply {
  readonly ackGeneration: number;
  readonly ackedSeq: number;
}

/** Applies the batch to its epoch and its node. */
export async function advanceEpoch(
  runner: SqlRunner,
  advance: EpochAdvance,
): Promise<EpochReply & { readonly overtakes: boolean }> {
  const { scope, locked } = advance;
  const { nodeId, epoch } = scope;
  const [reply] = await applyToEpochs(runner, [advance]);
  const restored = await restoreSuperseded(runner, nodeId, epoch, locked);
  if (locked.fillsGap) await runner.run({ text: shrinkFilledGaps }, [nodeId, epoch]);
  await applyToNodes(runner, [advance], restored?.incarnation ?? locked.incarnation);
  if (reply === undefined) throw new Error('a locked epoch does not exist');
  return { ...reply, overtakes: restored?.overtakes ?? false };
}

/** Applies batches to their epochs and their nodes, each to another node and none of an epoch that is superseded. */
export async function advanceEpochs(
  runner: SqlRunner,
  advances: readonly EpochAdvance[],
): Promise<EpochReply[]> {
  const replies = await applyToEpochs(runner, advances);
  await applyToNodes(runner, advances);
  return replies;
}

async function applyToEpochs(runner: SqlRunner, advances: readonly EpochAdvance[]): Promise<EpochReply[]> {
  const scrapes = advances.map(({ stored, scope }) =>
    stored.flatMap((record) => scrapesOf(record, scope.epochStart)),
  );
  const { rows } = await runner.run<{ node_id: number; acked_seq: number; ack_generation: number }>(
    { name: 'update_epochs', text: updateEpochs },
    [
      advances.map(({ scope }) => scope.nodeId),
      advances.map(({ scope }) => scope.epoch),
      advances.map(({ envelope }) => envelope.ackGeneration),
      advances.map(({ envelope }) => envelope.last),
      advances.map(({ envelope, locked }) => sealedTime(envelope, locked)),
      advances.map(({ stored }) => multirange(stored.map(({ seq }) => seq))),
      advances.map(({ missing: { unstorable, beyond } }) =>
        multirange([...unstorable.map(({ seq }) => seq), ...seqsOf(beyond)]),
      ),
      advances.map(({ stored }) => latestOf(stored.map(({ at }) => at))),
      scrapes.map(earliestOf),
      scrapes.map(latestOf),
      advances.map(({ stored, scope }) =>
        latestOf(stored.flatMap((record) => decidedOf(record, scope.epochStart))),
      ),
      advances.map(({ envelope }) => envelope.wall0),
      advances.map(({ envelope }) => envelope.records.length > 0),
      advances.map(({ scope }) => scope.isSigned),
    ],
  );
  const ofNode = new Map(rows.map((row) => [row.node_id, row]));
  return advances.map(({ scope }) => {
    const row = ofNode.get(scope.nodeId);
    if (row === undefined) throw new Error('a locked epoch does not exist');
    return { ackGeneration: row.ack_generation, ackedSeq: row.acked_seq };
  });
}

/** `incarnation`: instead of that of the epochs. */
async function applyToNodes(
  runner: SqlRunner,
  advances: readonly EpochAdvance[],
  incarnation?: number,
): Promise<void> {
  await runner.run({ name: 'update_nodes', text: updateNodes }, [
    advances.map(({ scope }) => scope.nodeId),
    advances.map(({ locked }) => incarnation ?? locked.incarnation),
    advances.map(({ envelope }) => envelope.context.no),
    advances.map(({ scope }) => scope.contextId),
    advances.map(({ scope }) => scope.epoch),
    advances.map(({ addedRows }) => addedRows),
  ]);
}

interface RestoredEpoch extends Record<string, unknown> {
  readonly incarnation: number;
  /** Other epochs had superseded it. */
  readonly overtakes: boolean;
}

/** Makes an epoch the latest again whose agent proves to run after what superseded it; null if it does not. */
async function restoreSuperseded(
  runner: SqlRunner,
  nodeId: number,
  epoch: string,
  { isSuperseded, added }: LockedEpoch,
): Promise<RestoredEpoch | null> {
  if (!isSuperseded || added) return null;
  const { rows } = await runner.run<RestoredEpoch>({ text: restoreEpoch }, [nodeId, epoch]);
  return rows[0] ?? null;
}

/** When the kubelet was scraped, as far as a record says. A change to `Unknown` for want of scrapes has the time of the last one. */
function scrapesOf({ at, record }: StorableRecord, epochStart: number): number[] {
  if (record.type === 'mode_change') return [at];
  if (record.type !== 'relist_minute' || record.kubelet === undefined) return [];
  const { from, to } = record.kubelet.scraped;
  return [epochStart + from, epochStart + to];
}

const decidedOf = ({ record }: StorableRecord, epochStart: number): number[] =>
  record.type === 'relist_minute' ? [epochStart + record.decided] : [];

const latestOf = (times: readonly number[]): number | null =>
  times.reduce<number | null>((latest, at) => Math.max(latest ?? at, at), null);
const earliestOf = (times: readonly number[]): number | null =>
  times.reduce<number | null>((earliest, at) => Math.min(earliest ?? at, at), null);
