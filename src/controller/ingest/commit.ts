/*
 * One batch, one READ COMMITTED transaction.
 *
 *   lock       the epoch and the node's earlier open lives, in key order
 *   subtract   what of the batch is new: its seqs without those received
 *   write      identities, then rows of each kind; rows made must equal records new, else abort
 *   enlist     transitions whose pods are to be read, where impact is measured
 *   declare    holes, and what is below the floor and not here
 *   close      earlier lives that the spool no longer holds
 *   mark       everything from 1 to here is stored or will never come: read from what is about to be committed
 *   resolve    misses that events of another life take back; the row of the node is locked by now
 *
 * Where Postgres refuses a value that passed every check, the batch is done again record by record, and the refused ones
 * become gaps.
 */

import { messageOf } from '../../platform/errors.ts';
import { type Envelope, readObjects } from '../../protocol/batch.ts';
import type { RecordType } from '../../protocol/record.ts';
import { bare } from '../store/array.ts';
import { troubleOf } from '../store/databaseError.ts';
import enqueueReport from '../store/sql/enqueueReport.sql';
import type { Runner, Store, StoreSettings } from '../store/store.ts';
import { resolvedByOthers } from './crossEpochResolution.ts';
import { type Locked, lockEpoch, type Refused } from './epoch.ts';
import { type Identity, identitiesOf, keyCache } from './identities.ts';
import type { Partitions } from './partitions.ts';
import { multirange } from './ranges.ts';
import { dayOf, ofKind, type Placed, refusedByDatabase, takeIn, type Unstored } from './recordValidation.ts';
import { type Place, WRITERS, type Writer } from './recordWriters.ts';
import closeEpochs from './sql/closeEpochs.sql';
import declareLost from './sql/declareLost.sql';
import ensureContext from './sql/ensureContext.sql';
import insertRecordGaps from './sql/insertRecordGaps.sql';
import shrinkFilledGaps from './sql/shrinkFilledGaps.sql';
import updateEpoch from './sql/updateEpoch.sql';
import updateNode from './sql/updateNode.sql';
import upsertContainers from './sql/upsertContainers.sql';

/** What a committed batch did. */
export interface Committed {
  readonly kind: 'committed';
  readonly stored: number;
  readonly duplicate: number;
  readonly unstored: readonly Unstored[];
  /** The reply to the agent. */
  readonly round: number;
  readonly mark: number;
  /** Epochs that are closed from now on. */
  readonly closed: readonly string[];
}

/** A batch of records as it was received. Offsets are from the start of the epoch. */
export interface Received {
  /** When it was stored, by the store's clock. */
  readonly arrived: number;
  /** When it was cut, an offset. */
  readonly cut: number;
  /** The wall-clock time of the epoch's start as the node's clock has it. */
  readonly base: number;
}

export interface Enlisting {
  /** Inside the transaction of the batch. `placed` are the records that it stores. */
  enlist(runner: Runner, place: Place, received: Received, placed: readonly Placed[]): Promise<void>;
}

export interface CommitContext {
  readonly store: Store;
  readonly clusterId: number;
  readonly settings: () => StoreSettings;
  readonly partitions: Partitions;
  /** Absent where the impact of missed events is not measured. */
  readonly impact?: Enlisting | undefined;
}

/** Kinds that change what a report says. */
const REPORTED: ReadonlySet<RecordType> = new Set([
  'finding',
  'finding_resolved',
  'stream_session',
  'gap',
  'mode_change',
  'node_state',
]);

/** The second witness disagrees: the store holds rows that the epoch does not know of. Nothing is committed. */
class WitnessError extends Error {
  override readonly name = 'WitnessError';
}

export async function commitBatch(context: CommitContext, envelope: Envelope): Promise<Committed | Refused> {
  try {
    return await attempt(context, envelope, false);
  } catch (error) {
    if (troubleOf(error) !== 'data') throw error;
    return attempt(context, envelope, true);
  }
}

async function attempt(
  context: CommitContext,
  envelope: Envelope,
  oneByOne: boolean,
): Promise<Committed | Refused> {
  const { store, clusterId, partitions } = context;
  const made: string[] = [];
  const outcome = await store.transaction(async (runner): Promise<Committed | Refused> => {
    made.length = 0;
    const locked = await lockEpoch(runner, clusterId, envelope);
    if (locked.kind === 'refused') return locked;
    const place = await placeOf(runner, clusterId, envelope, locked);
    const { retentionDays, keepDays } = context.settings();
    const horizon = { today: dayOf(locked.now), retentionDays, keepDays };
    const { placed, unstored } = takeIn(envelope, locked.fresh, locked.base, horizon);
    made.push(...(await partitions.ensure(runner, placed, place.base)));
    const stored = oneByOne
      ? await writeOneByOne(runner, place, placed, unstored)
      : await write(runner, place, placed);
    const { mono0: cut } = envelope;
    await context.impact?.enlist(runner, place, { arrived: locked.now, cut, base: place.base }, stored);
    const closed = await settle(runner, place, envelope, locked, unstored);
    const after = await advance(runner, place, envelope, locked, stored, unstored);
    const resolved = await resolvedByOthers(runner, place, stored, retentionDays);
    made.push(...(await partitions.ensure(runner, resolved, place.base)));
    await writeKind(runner, place, resolved, WRITERS.resolutions);
    await queue(runner, place, locked, [...placed, ...resolved], unstored.length > 0 || closed.length > 0);
    return {
      kind: 'committed',
      stored: stored.length,
      duplicate: envelope.records.length - stored.length - unstored.length,
      unstored,
      closed,
      ...after,
    };
  });
  partitions.committed(made);
  return outcome;
}

async function placeOf(
  runner: Runner,
  clusterId: number,
  envelope: Envelope,
  locked: Locked,
): Promise<Place> {
  const { epoch, incarnation: life, context } = envelope;
  const { nodeId, base } = locked;
  const contextId = locked.contextId ?? (await makeContext(runner, nodeId, epoch, context));
  const objects = new Map(readObjects(envelope).objects.map((object) => [object.id, object]));
  return { nodeId, clusterId, contextId, epoch, life, base, objects, keyOf: keyCache() };
}

async function makeContext(
  runner: Runner,
  nodeId: number,
  epoch: string,
  { no, runtime, kubelet, agent }: Envelope['context'],
): Promise<number> {
  const values = [nodeId, epoch, no, runtime.name, runtime.version, kubelet, agent];
  const { rows } = await runner.run<{ context_id: number }>({ text: ensureContext }, values);
  if (rows[0] === undefined) throw new Error('a context was not returned');
  return rows[0].context_id;
}

/** Writes records of any kinds; returns the ones written, which is all of them. */
async function write(runner: Runner, place: Place, placed: readonly Placed[]): Promise<readonly Placed[]> {
  await writeIdentities(runner, place, identitiesOf(placed, [...place.objects.values()], place.keyOf));
  const w = WRITERS;
  await writeKind(runner, place, placed, w.events);
  await writeKind(runner, place, placed, w.changes);
  await writeKind(runner, place, placed, w.minutes);
  await writeKind(runner, place, placed, w.findings);
  await writeKind(runner, place, placed, w.resolutions);
  await writeKind(runner, place, placed, w.overdue);
  await writeKind(runner, place, placed, w.sessions);
  await writeKind(runner, place, placed, w.gaps);
  await writeKind(runner, place, placed, w.modes);
  await writeKind(runner, place, placed, w.states);
  return placed;
}

async function writeKind<K extends RecordType>(
  runner: Runner,
  place: Place,
  placed: readonly Placed[],
  writer: Writer<K>,
): Promise<void> {
  const rows = ofKind(placed, writer.type);
  if (rows.length === 0) return;
  const { count } = await runner.run(writer.statement, writer.values(place, rows));
  if (writer.counted && count !== rows.length) {
    throw new WitnessError(`${rows.length} records of kind ${writer.type} are new, ${count} rows were made`);
  }
}

async function writeIdentities(runner: Runner, place: Place, all: readonly Identity[]): Promise<void> {
  if (all.length === 0) return;
  await runner.run({ name: 'insert_objects', text: upsertContainers }, [
    place.nodeId,
    place.clusterId,
    bare(all.map((one) => one.obj)),
    bare(all.map((one) => one.sandbox)),
    bare(all.map((one) => one.day)),
    bare(all.map((one) => one.bits)),
    bare(all.map((one) => one.attempt)),
    bare(all.map((one) => one.cid)),
    all.map((one) => one.podUid),
    all.map((one) => one.namespace),
    all.map((one) => one.pod),
    all.map((one) => one.container),
  ]);
}

/** Writes each record under a savepoint of its own; those that the database refuses are added to `unstored`. */
async function writeOneByOne(
  runner: Runner,
  place: Place,
  placed: readonly Placed[],
  unstored: Unstored[],
): Promise<readonly Placed[]> {
  const stored: Placed[] = [];
  for (const one of placed) {
    await runner.run({ text: 'SAVEPOINT record' });
    try {
      await write(runner, place, [one]);
      stored.push(one);
    } catch (error) {
      if (troubleOf(error) !== 'data') throw error;
      await runner.run({ text: 'ROLLBACK TO SAVEPOINT record' });
      unstored.push(refusedByDatabase(one, messageOf(error)));
    }
    await runner.run({ text: 'RELEASE SAVEPOINT record' });
  }
  return stored;
}

/** Writes down what will never come: returns the epochs that this batch closes. */
async function settle(
  runner: Runner,
  place: Place,
  envelope: Envelope,
  locked: Locked,
  unstored: readonly Unstored[],
): Promise<string[]> {
  const { nodeId, clusterId, epoch } = place;
  const cut = place.base + envelope.mono0;
  if (unstored.length > 0) {
    await runner.run({ text: insertRecordGaps }, [
      nodeId,
      clusterId,
      epoch,
      cut,
      unstored.map(({ seq }) => seq),
      unstored.map(({ cause }) => cause),
      unstored.map(({ bytes }) => (bytes === null ? null : Buffer.from(bytes, 'utf8').toString('hex'))),
    ]);
  }
  // The floor of a batch's own records says nothing about them: they are here.
  const floor = Math.min(envelope.oldestSeq, envelope.first);
  const { lost } = envelope;
  if (lost.length > 0 || floor > 1) {
    await runner.run({ name: 'declare_lost', text: declareLost }, [
      nodeId,
      epoch,
      floor,
      cut,
      lost.map(({ from }) => from),
      lost.map(({ to }) => to),
      lost.map(({ cause }) => cause),
    ]);
  }
  if (locked.earlier.length === 0) return [];
  const held = envelope.held.filter((one) => locked.earlier.includes(one.epoch));
  const { rows } = await runner.run<{ epoch: string }>({ text: closeEpochs }, [
    nodeId,
    locked.earlier,
    held.map((one) => one.epoch),
    held.map((one) => one.last),
  ]);
  return rows.map((row) => row.epoch);
}

async function advance(
  runner: Runner,
  place: Place,
  envelope: Envelope,
  locked: Locked,
  stored: readonly Placed[],
  unstored: readonly Unstored[],
): Promise<{ round: number; mark: number }> {
  const { nodeId, contextId, epoch, life } = place;
  const latest = stored.reduce<number | null>((at, one) => Math.max(at ?? one.at, one.at), null);
  const { rows } = await runner.run<{ acked_seq: number; ack_generation: number }>(
    { name: 'update_epoch', text: updateEpoch },
    [
      nodeId,
      epoch,
      envelope.ackGeneration,
      envelope.last,
      place.base + envelope.mono0,
      multirange(stored.map(({ seq }) => seq)),
      multirange(unstored.map(({ seq }) => seq)),
      latest,
    ],
  );
  if (locked.refills) await runner.run({ text: shrinkFilledGaps }, [nodeId, epoch]);
  await runner.run({ name: 'update_node', text: updateNode }, [
    nodeId,
    envelope.nodeUid,
    life,
    envelope.context.no,
    contextId,
  ]);
  const row = rows[0];
  if (row === undefined) throw new Error('a locked epoch is gone');
  return { round: row.ack_generation, mark: row.acked_seq };
}

async function queue(
  runner: Runner,
  place: Place,
  locked: Locked,
  placed: readonly Placed[],
  holes: boolean,
): Promise<void> {
  const urgent = holes || locked.made || placed.some(({ record }) => REPORTED.has(record.type));
  if (!urgent && !placed.some(({ record }) => record.type === 'relist_minute')) return;
  await runner.run({ text: enqueueReport }, [place.nodeId, place.clusterId, urgent]);
}
