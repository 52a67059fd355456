/*
 * Input that belongs to nobody: kept once for each content, with how often it came, and never more of it than a cap.
 */
import { createHash } from 'node:crypto';
import type { Runner } from '../store/store.ts';
import upsertRejected from './sql/upsertRejected.sql';

export interface Rejection {
  readonly lane: number;
  readonly reason: 'not_json' | 'not_a_batch' | 'other_cluster' | 'epoch_of_another_node';
  readonly error: string;
  /** What the input says of itself. */
  readonly claimedNode: string;
  /** The input, as it was in the queue. */
  readonly input: string;
}

/** The most rows of refused input that are kept for a cluster; lanes that see the same last place free each take it. */
export const REJECTED_CAP = 1_000;
const HEAD_BYTES = 1_024;

export async function reject(
  runner: Runner,
  clusterId: number,
  { lane, reason, error, claimedNode, input }: Rejection,
): Promise<void> {
  const bytes = Buffer.from(input, 'utf8');
  await runner.run({ text: upsertRejected }, [
    clusterId,
    createHash('sha256').update(reason).update('\0').update(bytes).digest('hex'),
    lane,
    reason,
    error.replaceAll('\0', '\\0'),
    claimedNode.replaceAll('\0', ''),
    bytes.length,
    bytes.subarray(0, HEAD_BYTES).toString('hex'),
    REJECTED_CAP,
  ]);
}
