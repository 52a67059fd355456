/*
 * The changes of a stored batch to its epoch and its node. The acked seq is read from what is about to be committed.
 */

import { invariant } from '../../platform/invariant.ts';
import type { Envelope, Known, SignedHead } from '../../protocol/batch.ts';
import { packHead } from '../../protocol/recordChain.ts';
import type { SqlRunner } from '../../store/runner.ts';
import type { RowOf } from '../../store/statement.ts';
import { type LockedEpoch, type MissingRecords, sealedTime } from './epoch.ts';
import type { StorableRecord } from './recordValidation.ts';
import type { BatchRecords } from './recordWriter.ts';
import { multirange, seqsOf } from './seqRanges.ts';
import { restoreEpoch, shrinkFilledGaps, updateEpochs, updateNodes } from './statements.ts';

/** A batch whose records are written: `records` are those that are stored. */
export interface EpochAdvance extends BatchRecords {
  readonly envelope: Envelope;
  readonly locked: LockedEpoch;
  readonly missing: MissingRecords;
  readonly addedRows: number;
}

/** The reply that may be published once this is committed. */
export interface EpochReply {
  readonly ackGeneration: number;
  readonly ackedSeq: number;
  /** Whether other epochs had superseded this one, which is the latest again. */
  readonly overtakes: boolean;
}

/** Applies batches to their epochs and their nodes, each to another node. */
export async function advanceEpochs(
  runner: SqlRunner,
  advances: readonly EpochAdvance[],
): Promise<EpochReply[]> {
  const replies = await applyToEpochs(runner, advances);
  const restored: (RestoredEpoch | undefined)[] = [];
  for (const { scope, locked } of advances) {
    restored.push(await restoreSuperseded(runner, scope, locked));
    if (locked.fills_gap) await runner.run(shrinkFilledGaps, [scope.nodeId, scope.epoch]);
  }
  await runner.run(updateNodes, [
    advances.map(({ scope }) => scope.nodeId),
    advances.map(({ locked }, i) => restored[i]?.incarnation ?? locked.incarnation),
    advances.map(({ envelope }) => envelope.context.no),
    advances.map(({ scope }) => scope.contextId),
    advances.map(({ scope }) => scope.epoch),
    // A head may be kept: a node that signs one chain after another has no more rows for it.
    advances.map((advance) => advance.addedRows + (headOf(advance) === null ? 0 : 1)),
    advances.map(({ scope }) => scope.isSigned),
  ]);
  const ofNode = new Map(replies.map((row) => [row.node_id, row]));
  return advances.map(({ scope }, i) => {
    const reply = ofNode.get(scope.nodeId);
    invariant(reply, 'a locked epoch exists');
    const overtakes = restored[i]?.overtakes ?? false;
    return { ackGeneration: reply.ack_generation, ackedSeq: reply.acked_seq, overtakes };
  });
}

async function applyToEpochs(
  runner: SqlRunner,
  advances: readonly EpochAdvance[],
): Promise<RowOf<typeof updateEpochs>[]> {
  const scrapes = advances.map(({ records, scope }) =>
    records.flatMap((record) => scrapesOf(record, scope.epochStart)),
  );
  const heads = advances.map(headOf);
  const { rows } = await runner.run(updateEpochs, [
    advances.map(({ scope }) => scope.nodeId),
    advances.map(({ scope }) => scope.epoch),
    advances.map(({ envelope }) => envelope.ackGeneration),
    advances.map(({ envelope }) => envelope.last),
    advances.map(({ envelope, locked }) => sealedTime(envelope, locked)),
    advances.map(({ records }) => multirange(records.map(({ seq }) => seq))),
    advances.map(({ missing: { unstorable, beyond } }) =>
      multirange([...unstorable.map(({ seq }) => seq), ...seqsOf(beyond)]),
    ),
    advances.map(({ records }) => latestOf(records.map(({ at }) => at))),
    scrapes.map(earliestOf),
    scrapes.map(latestOf),
    advances.map(({ records, scope }) =>
      latestOf(records.flatMap((record) => decidedOf(record, scope.epochStart))),
    ),
    advances.map(({ envelope }) => envelope.wall0),
    advances.map(({ envelope }) => envelope.records.length > 0),
    advances.map(({ scope }) => scope.isSigned),
    heads.map((head) => head?.from ?? null),
    heads.map((head) => head?.at ?? null),
    heads.map((head) => (head === null ? null : packHead(head))),
    heads.map((head) => (head === null ? null : Buffer.from(head.hints, 'base64'))),
    advances.map((advance) => knownOf(advance, 'decided')),
    advances.map((advance) => knownOf(advance, 'scraped')),
  ]);
  return rows;
}

/** The head of a signed batch only, so that nobody else can let a chain end; and of one that is stored, so that repeated batches add no rows. */
const headOf = ({ envelope: { head }, scope, records }: EpochAdvance): SignedHead | null =>
  scope.isSigned && records.length > 0 && head !== undefined ? head : null;

type RestoredEpoch = RowOf<typeof restoreEpoch>;

/** Makes an epoch the latest again whose agent proves to run after what superseded it. */
async function restoreSuperseded(
  runner: SqlRunner,
  { nodeId, epoch }: EpochAdvance['scope'],
  { is_superseded, added }: LockedEpoch,
): Promise<RestoredEpoch | undefined> {
  if (!is_superseded || added) return undefined;
  return (await runner.run(restoreEpoch, [nodeId, epoch])).rows[0];
}

/** When the kubelet was scraped, as far as a record says. A change to `Unknown` for want of scrapes has the time of the last one. */
function scrapesOf({ at, record }: StorableRecord, epochStart: number): number[] {
  if (record.type === 'mode_change') return [at];
  if (record.type !== 'relist_minute' || record.kubelet === undefined) return [];
  const { from, to } = record.kubelet.scraped;
  return [epochStart + from, epochStart + to];
}

/** Nothing of what an agent knows when it seals a batch is later than that. */
function knownOf(
  { envelope, locked, scope: { epochStart } }: EpochAdvance,
  what: keyof Known,
): number | null {
  const at = envelope.known?.[what] ?? null;
  return at === null ? null : Math.min(epochStart + at, sealedTime(envelope, locked));
}

const decidedOf = ({ record }: StorableRecord, epochStart: number): number[] =>
  record.type === 'relist_minute' ? [epochStart + record.decided] : [];

const latestOf = (times: readonly number[]): number | null =>
  times.reduce<number | null>((latest, at) => Math.max(latest ?? at, at), null);
const earliestOf = (times: readonly number[]): number | null =>
  times.reduce<number | null>((earliest, at) => Math.min(earliest ?? at, at), null);
