/*
 * Handles one input of a queue, whatever it is.
 *
 *   not JSON, not a batch, another cluster's, another node's epoch   a row in `rejected`; no acked seq moves
 *   a newer version                                                  left unacknowledged: the agent reads what we accept
 *   a batch                                                          committed, then its reply is published
 *
 * If Postgres or Redis is unavailable it waits here, then asks for the job to be delayed. Our own faults are logged and retried
 * later. Nothing is discarded and nothing is acknowledged early.
 */
import { Backoff } from '../../platform/backoff.ts';
import { messageOf } from '../../platform/errors.ts';
import type { RedisClient } from '../../platform/redis.ts';
import { sleep } from '../../platform/sleep.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import { decodeBatch, type Envelope, type RefusedBatch } from '../../protocol/batch.ts';
import type { IngestIntervals } from '../config.ts';
import type { ControllerMetrics } from '../metrics.ts';
import { databaseErrorKind } from '../store/databaseError.ts';
import type { Store } from '../store/store.ts';
import { type CommitContext, type CommittedBatch, commitBatch } from './commitBatch.ts';
import { type JobHandler, type JobOutcome, NotJson } from './queueWorker.ts';
import { inputText, type Rejection, storeRejection } from './rejections.ts';
import { publishReply, ReplyError } from './replies.ts';

export interface JobHandlerOptions extends CommitContext {
  readonly store: Pick<Store, 'run' | 'transaction'>;
  readonly cluster: string;
  readonly intervals: IngestIntervals;
  readonly redis: RedisClient;
  readonly metrics: ControllerMetrics;
  readonly log: Pick<ThrottledLog, 'warn' | 'error'>;
  /** Aborted when the controller stops: no more waiting. */
  readonly signal: AbortSignal;
}

const BACKOFF = { firstMs: 250, maxMs: 4_000 };

export function createJobHandler(options: JobHandlerOptions): JobHandler {
  return {
    handle: (queue, data) => retry(options, queue, () => handleInput(options, queue, data)),
    async handleUnreadable(queue, { id, raw }) {
      const error = `job ${id} cannot be read`;
      const rejection: Rejection = { queue, reason: 'not_json', error, claimedNode: '', input: raw };
      await retry(options, queue, () => reject(options, rejection));
    },
  };
}

async function retry(
  { log, intervals, partitions, signal }: JobHandlerOptions,
  queue: number,
  work: () => Promise<void>,
): Promise<JobOutcome> {
  const deadline = performance.now() + intervals.intervalStoreWait / 1000;
  const backoff = new Backoff(BACKOFF);
  for (;;) {
    try {
      await work();
      return { done: true };
    } catch (failure) {
      const error = messageOf(failure);
      if (!isUnavailable(failure)) {
        log.error({ queue, error }, 'batch could not be stored and will be retried');
        partitions.forget();
        return { done: false, delayMs: intervals.intervalFaultDelay / 1000 };
      }
      log.warn({ queue, error }, 'waiting to store a batch');
      if (signal.aborted || performance.now() > deadline) {
        return { done: false, delayMs: intervals.intervalJobDelay / 1000 };
      }
      await sleep(backoff.next(), signal);
    }
  }
}

/** Publishing replies is all that is done over Redis here, so every other error is Postgres's or ours. */
const isUnavailable = (error: unknown): boolean =>
  error instanceof ReplyError || ['outage', 'conflict'].includes(databaseErrorKind(error));

async function handleInput(options: JobHandlerOptions, queue: number, data: unknown): Promise<void> {
  const { cluster, metrics, log } = options;
  const started = performance.now();
  if (data instanceof NotJson) {
    const error = 'the data of the job is not JSON';
    return reject(options, { queue, reason: 'not_json', error, claimedNode: '', input: data.raw });
  }
  const decoded = await decodeBatch(data);
  if (!decoded.ok) return refuse(options, queue, data, decoded);
  const envelope = decoded.value;
  const { node, epoch } = envelope;
  const refused = { queue, claimedNode: node };
  if (envelope.cluster !== cluster) {
    const error = `cluster: ${envelope.cluster} is not ${cluster}`;
    return reject(options, { ...refused, reason: 'other_cluster', error, input: inputText(data) });
  }
  const outcome = await commitBatch(options, envelope);
  if (outcome.kind === 'foreign_epoch') {
    const { error } = outcome;
    return reject(options, { ...refused, reason: 'epoch_of_another_node', error, input: inputText(data) });
  }
  metrics.batchSeconds.observe((performance.now() - started) / 1000);
  count(metrics, outcome, envelope);
  for (const { seq, cause, error } of outcome.unstorable) {
    log.warn({ node, epoch, seq, cause, error }, 'record became a gap');
  }
  await publishReply(options, envelope, outcome);
}

async function refuse(
  options: JobHandlerOptions,
  queue: number,
  data: unknown,
  { reason, error, claimedNode }: RefusedBatch,
): Promise<void> {
  if (reason !== 'version') {
    return reject(options, { queue, reason, error, claimedNode, input: inputText(data) });
  }
  options.metrics.records.inc({ result: 'version' });
  options.log.warn({ queue, claimedNode, error }, 'batch of a newer version left unacknowledged');
}

async function reject(options: JobHandlerOptions, rejection: Rejection): Promise<void> {
  await storeRejection(options.store, options.clusterId, rejection);
  options.metrics.records.inc({ result: 'rejected' });
  const { queue, reason, error, claimedNode } = rejection;
  options.log.warn({ queue, reason, error, claimedNode }, 'input rejected');
}

function count(metrics: ControllerMetrics, outcome: CommittedBatch, { wall0 }: Envelope): void {
  metrics.records.inc({ result: 'stored' }, outcome.stored);
  metrics.records.inc({ result: 'duplicate' }, outcome.duplicate);
  metrics.records.inc({ result: 'lost' }, outcome.unstorable.length);
  metrics.lagSeconds.set(Math.max(0, Date.now() / 1000 - wall0 / 1e6));
}
