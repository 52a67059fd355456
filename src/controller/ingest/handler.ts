/*
 * What happens to one input of a lane, whatever it is.
 *
 *   not JSON, not a batch, another cluster's, another node's epoch   a row in `rejected`; no mark moves
 *   a newer version                                                  left unacknowledged: the agent reads what we accept
 *   a batch                                                          committed, then told
 *
 * Postgres or Redis away: it waits here, then asks for the job to be delayed. A fault of ours is said, and tried again
 * later. Nothing is thrown away and nothing is acknowledged early.
 */
import { Backoff } from '../../platform/backoff.ts';
import { messageOf } from '../../platform/errors.ts';
import { sleep } from '../../platform/sleep.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import { decodeBatch, type Envelope, type RefusedBatch } from '../../protocol/batch.ts';
import type { IngestIntervals } from '../internalSettings.ts';
import type { ControllerMetrics } from '../metrics.ts';
import { troubleOf } from '../store/databaseError.ts';
import { asText } from './asText.ts';
import { type CommitContext, type Committed, commitBatch } from './commit.ts';
import { type LaneHandler, NotJson, type Verdict } from './queueWorker.ts';
import { type Rejection, reject } from './reject.ts';
import type { Replies } from './reply.ts';

export interface HandlerOptions extends CommitContext {
  readonly cluster: string;
  readonly replies: Replies;
  readonly intervals: IngestIntervals;
  readonly metrics: ControllerMetrics;
  readonly log: Pick<ThrottledLog, 'warn' | 'error'>;
  /** Aborted when the controller stops: whoever waits gives up at once. */
  readonly signal: AbortSignal;
}

const BACKOFF = { firstMs: 250, maxMs: 4_000 };

const DONE: Verdict = { done: true };

export function createHandler(options: HandlerOptions): LaneHandler {
  const { log, intervals } = options;
  const handle = async (lane: number, work: () => Promise<void>): Promise<Verdict> => {
    const givesUpAt = performance.now() + intervals.intervalStoreWait / 1000;
    const backoff = new Backoff(BACKOFF);
    for (;;) {
      try {
        await work();
        return DONE;
      } catch (error) {
        const message = messageOf(error);
        if (!isAway(error)) {
          log.error({ lane, error: message }, 'a batch could not be stored and will be tried again');
          options.partitions.forget();
          return { done: false, delayMs: intervals.intervalFaultDelay / 1000 };
        }
        log.warn({ lane, error: message }, 'waiting to store a batch');
        if (options.signal.aborted || performance.now() > givesUpAt)
          return { done: false, delayMs: intervals.intervalJobDelay / 1000 };
        await sleep(backoff.next(), options.signal);
      }
    }
  };
  return {
    handle: (lane, data) => handle(lane, () => handleInput(options, lane, data)),
    async unreadable(lane, job) {
      const rejection: Rejection = {
        lane,
        reason: 'not_json',
        error: `job ${job.id} cannot be read`,
        claimedNode: '',
        input: job.raw,
      };
      await handle(lane, () => keepRejection(options, rejection));
    },
  };
}

/** Publishing is the only thing done over Redis, so what is not Postgres's error is Redis's. */
class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

const isAway = (error: unknown): boolean =>
  error instanceof ReplyError || troubleOf(error) === 'outage' || troubleOf(error) === 'conflict';

async function handleInput(options: HandlerOptions, lane: number, data: unknown): Promise<void> {
  const { cluster, metrics, log } = options;
  const started = performance.now();
  if (data instanceof NotJson) {
    const error = 'the data of the job is not JSON';
    return keepRejection(options, { lane, reason: 'not_json', error, claimedNode: '', input: data.raw });
  }
  const decoded = await decodeBatch(data);
  if (!decoded.ok) return refuse(options, lane, data, decoded);
  const envelope = decoded.value;
  if (envelope.cluster !== cluster) {
    const error = `cluster: ${envelope.cluster} is not ${cluster}`;
    const claimedNode = envelope.node;
    return keepRejection(options, {
      lane,
      reason: 'other_cluster',
      error,
      claimedNode,
      input: asText(data),
    });
  }
  const outcome = await commitBatch(options, envelope);
  if (outcome.kind === 'refused') {
    const { reason, error } = outcome;
    return keepRejection(options, { lane, reason, error, claimedNode: envelope.node, input: asText(data) });
  }
  metrics.batchSeconds.observe((performance.now() - started) / 1000);
  count(metrics, outcome, envelope);
  for (const { seq, cause, error } of outcome.unstored) {
    log.warn({ node: envelope.node, epoch: envelope.epoch, seq, cause, error }, 'a record became a gap');
  }
  await tell(options, envelope, outcome);
}

async function refuse(
  options: HandlerOptions,
  lane: number,
  data: unknown,
  refusal: RefusedBatch,
): Promise<void> {
  const { error, claimedNode } = refusal;
  if (refusal.reason === 'version') {
    options.metrics.records.inc({ result: 'version' });
    options.log.warn({ lane, claimedNode, error }, 'a batch of a newer version is left unacknowledged');
    return;
  }
  const input = asText(data);
  return keepRejection(options, { lane, reason: 'not_a_batch', error, claimedNode, input });
}

async function keepRejection(options: HandlerOptions, rejection: Rejection): Promise<void> {
  await reject(options.store, options.clusterId, rejection);
  options.metrics.records.inc({ result: 'rejected' });
  const { lane, reason, error, claimedNode } = rejection;
  options.log.warn({ lane, reason, error, claimedNode }, 'an input was rejected');
}

async function tell(options: HandlerOptions, { node, epoch }: Envelope, outcome: Committed): Promise<void> {
  const { round, mark, closed } = outcome;
  try {
    await options.replies.publish(node, epoch, { ackGeneration: round, ackedSeq: mark }, closed);
  } catch (error) {
    throw new ReplyError(`the reply to ${node} could not be told: ${messageOf(error)}`, { cause: error });
  }
}

function count(metrics: ControllerMetrics, outcome: Committed, { wall0 }: Envelope): void {
  metrics.records.inc({ result: 'stored' }, outcome.stored);
  metrics.records.inc({ result: 'duplicate' }, outcome.duplicate);
  metrics.records.inc({ result: 'lost' }, outcome.unstored.length);
  metrics.lagSeconds.set(Math.max(0, Date.now() / 1000 - wall0 / 1e6));
}
