/*
 * Refused input, stored once for each content, with how often it came, up to a cap.
 */
import { createHash } from 'node:crypto';
import type { SqlRunner } from '../../store/runner.ts';
import type { AttributionRefusal } from '../keys/attribution.ts';
import { upsertRejected } from './statements.ts';

export interface Rejection {
  readonly queue: number;
  readonly reason:
    | 'not_json'
    | 'not_a_batch'
    | 'other_cluster'
    | 'implausible_seq'
    | 'unknown_node'
    | 'over_quota'
    | 'enrolment'
    | AttributionRefusal;
  readonly error: string;
  /** The node that the input names; it is not believed. */
  readonly claimedNode: string;
  readonly input: string;
}

/** The most rows of a cluster. Queues that see the last free place at the same time each take it. */
export const MAX_REJECTED = 1_000;
const HEAD_BYTES = 1_024;

export async function storeRejection(
  runner: SqlRunner,
  clusterId: number,
  { queue, reason, error, claimedNode, input }: Rejection,
): Promise<void> {
  const bytes = Buffer.from(input, 'utf8');
  await runner.run(upsertRejected, [
    clusterId,
    createHash('sha256').update(reason).update('\0').update(bytes).digest('hex'),
    queue,
    reason,
    error.replaceAll('\0', '\\0'),
    claimedNode.replaceAll('\0', ''),
    bytes.length,
    bytes.subarray(0, HEAD_BYTES).toString('hex'),
    MAX_REJECTED,
  ]);
}
