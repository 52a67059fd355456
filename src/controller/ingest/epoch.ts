/*
 * The epoch a batch belongs to: made at first sight, bound to one node for ever, locked while a batch of it is written.
 */
import type { Envelope } from '../../protocol/batch.ts';
import ensureNode from '../store/sql/ensureNode.sql';
import type { Runner } from '../store/store.ts';
import type { Range } from './ranges.ts';
import findEpochOwner from './sql/findEpochOwner.sql';
import insertEpoch from './sql/insertEpoch.sql';
import lockEpochSql from './sql/lockEpoch.sql';

export interface Locked {
  readonly kind: 'locked';
  readonly nodeId: number;
  /** The wall-clock time of the epoch's start, in microseconds. */
  readonly base: number;
  /** The database's time, in microseconds. */
  readonly now: number;
  /** The seqs of the batch that were not received yet. */
  readonly fresh: readonly Range[];
  /** Whether some of them had been declared lost. */
  readonly refills: boolean;
  /** Earlier lives of the node that are open; locked too. */
  readonly earlier: readonly string[];
  readonly contextId: number | null;
  /** Whether this is the first that was heard of the epoch. */
  readonly made: boolean;
}

/** A batch that cannot be what it says it is. */
export interface Refused {
  readonly kind: 'refused';
  readonly reason: 'epoch_of_another_node';
  readonly error: string;
}

type LockRow = {
  node_id: number;
  started_at: string;
  now: string;
  fresh_from: number[];
  fresh_to: number[];
  fills_gap: boolean;
  earlier: string[];
  context_id: number | null;
};

export async function lockEpoch(
  runner: Runner,
  clusterId: number,
  envelope: Envelope,
): Promise<Locked | Refused> {
  const there = await lock(runner, clusterId, envelope, false);
  if (there !== null) return there;
  const { node, nodeUid, epoch, prev, incarnation, bootId, wall0, mono0 } = envelope;
  const owner = await runner.run<{ cluster: string; node: string }>({ text: findEpochOwner }, [epoch]);
  if (owner.rows[0] !== undefined) {
    const error = `epoch ${epoch} belongs to node ${owner.rows[0].node} of cluster ${owner.rows[0].cluster}`;
    return { kind: 'refused', reason: 'epoch_of_another_node', error };
  }
  await runner.run({ text: ensureNode }, [clusterId, node, nodeUid]);
  const values = [clusterId, node, epoch, prev, incarnation, nodeUid, bootId, wall0, mono0];
  await runner.run({ text: insertEpoch }, values);
  const made = await lock(runner, clusterId, envelope, true);
  // Another node has claimed it between the two statements; the next attempt finds that.
  if (made === null) throw new Error(`epoch ${epoch} can neither be made nor found`);
  return made;
}

async function lock(
  runner: Runner,
  clusterId: number,
  { node, epoch, incarnation: life, first, last, context }: Envelope,
  made: boolean,
): Promise<Locked | null> {
  const { rows } = await runner.run<LockRow>({ name: 'lock_epoch', text: lockEpochSql }, [
    clusterId,
    node,
    epoch,
    life,
    first,
    last,
    context.no,
  ]);
  const row = rows[0];
  if (row === undefined) return null;
  return {
    kind: 'locked',
    nodeId: row.node_id,
    base: Number(row.started_at),
    now: Number(row.now),
    fresh: row.fresh_from.map((from, at) => ({ from, to: row.fresh_to[at] ?? from })),
    refills: row.fills_gap,
    earlier: row.earlier,
    contextId: row.context_id,
    made,
  };
}
